"""Protects what is said when exporter and firmware have different schemas of a program: a mismatch
before anything is built or run, and a note where they only grew apart."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.config.loading import load_target
from harness.core.verdict import Verdict
from harness.export.checkout import CheckoutExporter
from harness.export.exporter import ExporterFacts
from harness.firmware.source import source_named
from harness.formats.schema import PTE
from harness.run.pipeline import SchemaMismatch, build_firmware, schema_notes
from harness.sim.simulator import pick
from harness.system.paths import executorch_package

BUNDLED, EXECUTORCH = source_named("bundled"), source_named("executorch")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))


def checkout(folder: Path, old: str = "", new: str = "") -> Path:
    """A checkout's schemas: the wheel's, with one piece of text replaced."""
    shutil.copytree((executorch_package() / PTE).parent, folder / "schema")
    file = folder / PTE
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1) if old else text)
    return folder


def exporter(root: Path) -> ExporterFacts:
    return ExporterFacts(str(root), "cff6f4dd320000", "main", False, "1.5.0", "1.5.1")


def test_equal_schemas_need_no_word(tmp_path: Path) -> None:
    there = checkout(tmp_path / "c")
    assert schema_notes(None, BUNDLED, None) == ()
    assert schema_notes(None, EXECUTORCH, there) == ()
    assert schema_notes(exporter(there), BUNDLED, None) == ()
    assert schema_notes(exporter(there), EXECUTORCH, there) == ()


def test_the_wheel_writes_what_the_checkout_would_misread(tmp_path: Path) -> None:
    there = checkout(tmp_path / "c", "sizes: [int];", "strides: [int];\n  sizes: [int];")
    with pytest.raises(SchemaMismatch) as caught:
        schema_notes(None, EXECUTORCH, there)
    error = caught.value
    assert (error.kind, error.verdict) == ("schema_mismatch", Verdict.BUILD_ERROR)
    assert error.facts == {
        "exporter": "wheel",
        "firmware": "executorch",
        "where": "Tensor.sizes",
        "written": "field 2, sizes: vector of int32",
        "read": "field 2, strides: vector of int32",
        "path": str(there / PTE),
    }
    assert "would misread the program: Tensor.sizes is 'field 2, sizes" in error.message
    assert "--exporter checkout" in str(error.hint)


def test_the_checkout_writes_what_the_bundled_runner_would_misread(tmp_path: Path) -> None:
    there = checkout(tmp_path / "c", 'file_identifier "ET12"', 'file_identifier "ET13"')
    with pytest.raises(SchemaMismatch, match="file_identifier is 'ET13'") as caught:
        schema_notes(exporter(there), BUNDLED, None)
    assert caught.value.exporter == "checkout cff6f4dd32"
    assert "--firmware executorch" in str(caught.value.hint)
    assert schema_notes(exporter(there), EXECUTORCH, there) == (), "it reads its own"


def test_what_only_grew_is_a_note(tmp_path: Path) -> None:
    there = checkout(
        tmp_path / "c", "named_data: [NamedData];", "named_data: [NamedData];\n  checksum: ulong;"
    )
    (newer_writer,) = schema_notes(exporter(there), BUNDLED, None)
    assert newer_writer.endswith("only the writer knows Program.checksum")
    (newer_reader,) = schema_notes(None, EXECUTORCH, there)
    assert newer_reader.endswith("only the reader knows Program.checksum")


def test_with_both_runners_each_is_held_against_its_own(tmp_path: Path) -> None:
    """Beside `--firmware both` there is a checkout, and the bundled runner has nothing of it."""
    there = checkout(tmp_path / "c", 'file_identifier "ET12"', 'file_identifier "ET13"')
    schema_notes(None, BUNDLED, there)
    schema_notes(exporter(there), EXECUTORCH, there)
    with pytest.raises(SchemaMismatch):
        schema_notes(None, EXECUTORCH, there)
    with pytest.raises(SchemaMismatch):
        schema_notes(exporter(there), BUNDLED, there)


def test_nothing_is_built_for_what_would_be_misread(tmp_path: Path) -> None:
    there = checkout(tmp_path / "c", 'file_identifier "ET12"', 'file_identifier "ET13"')
    by = CheckoutExporter(there, tmp_path, "", {}, "", exporter(there))
    chosen = pick(load_target("corstone-300-m55"), "qemu")
    said: list[str] = []
    with pytest.raises(SchemaMismatch):
        build_firmware(BUNDLED, chosen, by, None, False, said.append)
    assert said == []
    assert not (tmp_path / "hil" / "cache" / "firmware").exists()
