"""Protects how a result is told from one of the bundled runner."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.build.firmware import Firmware, load_firmware, write_stamp
from harness.build.source import CheckoutFacts, FirmwareSource, checkout_facts, label
from harness.system.files import sha256_of

FACTS = CheckoutFacts("/src/executorch", "cff6f4dd32ab", "main", False, "", "hil", ("linked so",))


@pytest.mark.parametrize(
    ("source", "checkout", "said"),
    [
        (FirmwareSource.BUNDLED, None, ""),
        (FirmwareSource.EXECUTORCH, None, "executorch"),
        (FirmwareSource.WHEEL, None, "wheel"),
        (FirmwareSource.EXECUTORCH, FACTS, "executorch cff6f4dd"),
        (FirmwareSource.EXECUTORCH, replace(FACTS, dirty=True), "executorch cff6f4dd+edits"),
    ],
)
def test_the_label(source: FirmwareSource, checkout: CheckoutFacts | None, said: str) -> None:
    assert label(source, checkout) == said


def test_facts_come_back_from_json() -> None:
    assert checkout_facts(json.loads(json.dumps(FACTS.to_fields()))) == FACTS
    assert checkout_facts(None) is None


def firmware(folder: Path) -> Firmware:
    for name in ("executor_runner", "executor_runner.map"):
        (folder / name).write_bytes(name.encode())
    return Firmware(
        folder, "t", "plain", "k", "gcc", "id", sha256_of(folder / "executor_runner"), 1.0
    )


def test_the_stamp_keeps_whose_firmware_it_is(tmp_path: Path) -> None:
    theirs = replace(firmware(tmp_path), source=FirmwareSource.EXECUTORCH, checkout=FACTS,
                     notes=("said",))  # fmt: skip
    write_stamp(theirs)
    found = load_firmware(tmp_path)
    assert found == theirs
    assert found is not None
    assert found.one_set_per_process


def test_without_its_libraries_it_is_no_firmware(tmp_path: Path) -> None:
    """A program that could not start; it is built again."""
    write_stamp(replace(firmware(tmp_path), source=FirmwareSource.WHEEL))
    assert load_firmware(tmp_path) is None
    (tmp_path / "root").mkdir()
    found = load_firmware(tmp_path)
    assert found is not None
    assert found.root == tmp_path / "root"


def test_a_stamp_of_before_there_were_checkouts_is_ours(tmp_path: Path) -> None:
    write_stamp(firmware(tmp_path))
    stamp = json.loads((tmp_path / "firmware.json").read_text())
    del stamp["source"], stamp["checkout"]
    (tmp_path / "firmware.json").write_text(json.dumps(stamp))
    found = load_firmware(tmp_path)
    assert found == firmware(tmp_path)
    assert found is not None
    assert not found.one_set_per_process


@pytest.mark.parametrize("change", [{"source": "else"}, {"checkout": {"path": "/x"}}])
def test_a_damaged_stamp_is_no_firmware(tmp_path: Path, change: dict[str, object]) -> None:
    """It is built again, never taken for something that it is not."""
    write_stamp(firmware(tmp_path))
    stamp = json.loads((tmp_path / "firmware.json").read_text())
    (tmp_path / "firmware.json").write_text(json.dumps({**stamp, **change}))
    assert load_firmware(tmp_path) is None
