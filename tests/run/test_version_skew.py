"""Protects what is said when exporter and firmware are of different versions: of the program's
schema a mismatch before anything is built or run, and a note where they only grew apart; of
operators an error, or a program that the checkout exports."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.config.case import Case
from harness.config.loading import load_target
from harness.config.models import find_model
from harness.core.errors import HarnessError
from harness.core.verdict import Verdict
from harness.export.batch import ExportOptions, export
from harness.export.exporter import ExporterChoice, ExporterFacts
from harness.export.process import ExportProcess
from harness.export.program import Program
from harness.export.request import ExportRequest
from harness.firmware.checkout import Checkout
from harness.firmware.choice import FirmwareChoice
from harness.firmware.source import CheckoutFacts, FirmwareSource, source_named
from harness.formats.schema import PTE
from harness.run.pipeline import RunOptions, run_case
from harness.run.version_skew import (
    VersionSkew,
    declared,
    export_to_fit,
    pinned_release,
    require_fit,
)
from harness.sim.simulator import pick
from harness.system.git import Revision
from harness.system.paths import executorch_package
from harness.system.progress import silent
from tests.export.checkout.conftest import Tree, tree, worker
from tests.firmware.executorch.small import OPS
from tools.doubles import double_firmware

__all__ = ["tree", "worker"]
BUNDLED, EXECUTORCH = source_named("bundled"), source_named("executorch")
CASE = Case("corstone-300-m55", "qadd")
OPERATORS = OPS / "operators.yaml"
SHORTER = ("int self_shift, ", "")  # another cortex_m::quantized_add.out


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))


@pytest.fixture
def qadd(
    shared_hil_home: str, hil_export_process: ExportProcess, monkeypatch: pytest.MonkeyPatch
) -> Program:
    """The wheel's."""
    with monkeypatch.context() as patch:
        patch.setenv("HIL_HOME", shared_hil_home)
        return export([ExportRequest(find_model("qadd"))], process=hil_export_process)[0].unwrap()


def checkout(folder: Path, old: str = "", new: str = "") -> Path:
    """A checkout's schemas and operators: the wheel's, with one piece of text replaced."""
    shutil.copytree((executorch_package() / PTE).parent, folder / "schema")
    (folder / OPS).mkdir(parents=True)
    shutil.copyfile(executorch_package() / OPERATORS, folder / OPERATORS)
    for file in (folder / PTE, folder / OPERATORS):
        text = file.read_text()
        file.write_text(text.replace(old, new, 1) if old else text)
    return folder


def exporter(root: Path) -> ExporterFacts:
    return ExporterFacts(str(root), "cff6f4dd320000", "main", False, "1.5.0", "1.5.1")


def test_a_program_of_another_wheel_than_the_kernels_are_written_for(
    qadd: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`./hil +1.4.1`: what is installed declares what its own exporter writes."""
    assert fit(qadd, BUNDLED) == ()
    name = "cortex_m::quantized_add.out"
    fewer = {name: BUNDLED.arguments()[name][:-1]}
    monkeypatch.setattr(type(BUNDLED), "arguments", lambda _self: fewer)
    with pytest.raises(VersionSkew, match=f"the runner is {pinned_release()}: {name} takes 13 arg"):
        fit(qadd, BUNDLED)


def test_kernels_name_the_arguments_of_the_pinned_release() -> None:
    declares, named = declared(executorch_package()), BUNDLED.arguments()
    assert len(named) > 10
    assert {name: len(words) for name, words in named.items()} == {
        name: len(declares[name]) for name in named
    }


def fit(program: Program, firmware: FirmwareSource, root: Path | None = None) -> tuple[str, ...]:
    return require_fit(program.pte_path, program, firmware, root)


def test_equal_versions_need_no_word(qadd: Program, tmp_path: Path) -> None:
    there = checkout(tmp_path / "c")
    theirs = replace(qadd, exporter=exporter(there))
    assert fit(qadd, BUNDLED) == ()
    assert fit(qadd, EXECUTORCH, there) == ()
    assert fit(theirs, BUNDLED) == ()
    assert fit(theirs, EXECUTORCH, there) == ()


def test_the_wheel_writes_what_the_checkout_would_misread(qadd: Program, tmp_path: Path) -> None:
    there = checkout(tmp_path / "c", "sizes: [int];", "strides: [int];\n  sizes: [int];")
    with pytest.raises(VersionSkew) as caught:
        fit(qadd, EXECUTORCH, there)
    error, wheel = caught.value, qadd.versions["executorch"]
    assert (error.kind, error.verdict) == ("version_skew", Verdict.EXPORT_ERROR)
    assert error.facts == {
        "exporter": f"the wheel {wheel}",
        "firmware": "executorch",
        "version": wheel,
        "what": "Tensor.sizes",
        "path": str(there),
    }
    assert "Tensor.sizes is 'field 2, strides: vector of int32' there, and 'field 2, si" in str(
        error
    )
    assert "--exporter checkout" in str(error.hint)


def test_the_checkout_writes_what_the_bundled_runner_would_misread(
    qadd: Program, tmp_path: Path
) -> None:
    """Beside `--firmware both` there is a checkout, and the bundled runner has nothing of it."""
    there = checkout(tmp_path / "c", 'file_identifier "ET12"', 'file_identifier "ET13"')
    theirs = replace(qadd, exporter=exporter(there))
    with pytest.raises(VersionSkew, match="file_identifier is 'ET12' there") as caught:
        fit(theirs, BUNDLED)
    assert caught.value.exporter == "the checkout cff6f4dd"
    assert "--firmware executorch" in str(caught.value.hint)
    assert fit(theirs, EXECUTORCH, there) == (), "it reads its own"
    with pytest.raises(VersionSkew):
        fit(theirs, BUNDLED, there)


def test_what_only_grew_is_a_note(qadd: Program, tmp_path: Path) -> None:
    there = checkout(
        tmp_path / "c", "named_data: [NamedData];", "named_data: [NamedData];\n  checksum: ulong;"
    )
    (newer_writer,) = fit(replace(qadd, exporter=exporter(there)), BUNDLED)
    assert newer_writer.endswith("only the writer knows Program.checksum")
    (newer_reader,) = fit(qadd, EXECUTORCH, there)
    assert newer_reader.endswith("only the reader knows Program.checksum")


def test_an_operator_with_other_arguments_is_an_error_before_the_run(
    qadd: Program, tmp_path: Path
) -> None:
    there = checkout(tmp_path / "c", *SHORTER)
    (there / "version.txt").write_text("1.4.1\n")
    facts = CheckoutFacts(str(there), "c" * 40, "main", False, "", "hil")
    firmware = replace(double_firmware(tmp_path), source=EXECUTORCH, checkout=facts)
    chosen = pick(load_target(CASE.target), "qemu")
    with pytest.raises(VersionSkew) as caught:
        run_case(CASE, chosen, qadd, firmware, RunOptions())  # type: ignore[arg-type]
    assert caught.value.message == (
        f"exported by the wheel {qadd.versions['executorch']}, the checkout is 1.4.1: "
        "cortex_m::quantized_add.out takes 13 arguments there, and the program gives it 14"
    )
    given = RunOptions(pte=qadd.pte_path)
    with pytest.raises(VersionSkew, match="exported by another version, the checkout"):
        run_case(CASE, chosen, qadd, firmware, given)  # type: ignore[arg-type]


def test_what_a_checkout_exported_may_not_fit_the_bundled_runner(
    qadd: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = replace(qadd, exporter=exporter(checkout(tmp_path / "c")))
    older = checkout(tmp_path / "older", *SHORTER)
    monkeypatch.setattr("harness.firmware.source.executorch_package", lambda: older)
    with pytest.raises(VersionSkew) as caught:
        fit(theirs, BUNDLED)
    own = f"exported by the checkout cff6f4dd, the runner is {qadd.versions['executorch']}: "
    assert caught.value.message.startswith(f"{own}cortex_m::quantized_add.out takes 13")
    assert "--exporter wheel" in str(caught.value.hint)


def operators(tree: Tree, old: str = "", new: str = "") -> None:
    text = (executorch_package() / OPERATORS).read_text()
    tree.write(str(OPERATORS), text.replace(old, new, 1) if old else text)


def fitted(qadd: Program, tree: Tree) -> Program | HarnessError:
    """What is run of ``qadd`` with the firmware of ``tree``."""
    checkout = Checkout(tree.root, Revision("", "", ""), {})
    targets = {CASE.target: load_target(CASE.target)}
    (program,) = export_to_fit(
        {CASE: qadd}, targets, checkout, EXECUTORCH, ExportOptions(), silent
    ).values()
    return program


@pytest.mark.usefixtures("worker")
def test_a_checkout_that_the_wheel_does_not_fit_exports_itself(qadd: Program, tree: Tree) -> None:
    operators(tree)
    assert fitted(qadd, tree) is qadd
    operators(tree, *SHORTER)
    program = fitted(qadd, tree)
    assert isinstance(program, Program)
    assert program.pte_path.read_bytes() == b"the checkout"
    (note,) = program.notes
    assert note.startswith("exported with the checkout, for the wheel's program does not fit: ")
    assert "cortex_m::quantized_add.out takes 13 arguments there" in note


def test_a_checkout_that_cannot_export_either_says_both(qadd: Program, tree: Tree) -> None:
    operators(tree, *SHORTER)
    shutil.rmtree(tree.root / "exir")
    program = fitted(qadd, tree)
    assert isinstance(program, VersionSkew)
    assert "--exporter checkout, which was tried: the checkout has no exir/__init__.py" in str(
        program.hint
    )


@pytest.mark.parametrize(
    "given",
    [
        {"exporter": ExporterChoice(fixed=True)},
        {"pte": Path("a.pte")},
        {"isolate_export": True},
        {"firmware": FirmwareChoice((BUNDLED, EXECUTORCH))},
        {"firmware": FirmwareChoice()},
    ],
)
def test_who_exports_is_only_changed_where_nothing_else_was_asked(given: dict[str, Any]) -> None:
    free = RunOptions(firmware=FirmwareChoice((EXECUTORCH,)))
    assert free.may_export_with_checkout
    assert not replace(free, **given).may_export_with_checkout
