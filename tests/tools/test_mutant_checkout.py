"""Bugs planted in a small checkout and in a part of its build, built and run for real."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.config.schema import checked
from harness.core.errors import Unknown
from harness.firmware.choice import FirmwareChoice
from harness.firmware.source import source_named
from harness.system.paths import cache_dir
from harness.system.progress import silent
from tests.firmware.executorch.small import KERNEL, git, head, small_checkout
from tests.run.bisect.homes import own_home
from tools.bench.mutant_ground import prepared
from tools.bench.mutant_list import CheckoutMutant
from tools.bench.mutants import Fate, measure

CASE = "corstone-300-m55/qadd"


@pytest.fixture
def firmware(
    tmp_path: Path, shared_hil_home: str, monkeypatch: pytest.MonkeyPatch
) -> FirmwareChoice:
    own_home(tmp_path / "home", shared_hil_home, monkeypatch)
    root, parts = small_checkout(tmp_path)
    return FirmwareChoice((source_named("executorch"),), root, parts)


def mutant(file: str | Path, find: str, put: str, part: str | None = None) -> CheckoutMutant:
    return checked(
        CheckoutMutant,
        {"bug": "b", "file": str(file), "find": find, "put": put, "part": part, "cases": (CASE,)},
    )


@pytest.mark.thorough
def test_bugs_in_a_kernel_and_in_a_part(firmware: FirmwareChoice) -> None:
    """Each is alone in what is built: after one comes a change that no run can notice."""
    assert firmware.root is not None
    first = (firmware.root / KERNEL).read_text().splitlines()[0]
    mutants = {
        "kernel": mutant(KERNEL, "pairs.out + r * pairs.row, pairs.row)", "pairs.out, 1)"),
        "blank": mutant(KERNEL, first, f"{first} "),
        "broken": mutant(KERNEL, first, "#error broken"),
        "part": mutant("Include/kernels/requantize.h", "#pragma once", "#error x", "cmsis-nn"),
    }
    said: list[str] = []
    with prepared(firmware, ["cmsis-nn"], said.append) as (ground, commit):
        assert commit == head(firmware.root)
        rows = measure(mutants, [ground], said.append)
        kept = list(cache_dir("firmware").glob("*/firmware.json"))
    assert [(row.name, row.fate) for row in rows] == [
        ("kernel", Fate.CAUGHT),
        ("blank", Fate.SURVIVED),
        ("broken", Fate.NOT_BUILT),
        ("part", Fate.NOT_BUILT),
    ]
    assert rows[0].verdict == "MISMATCH"
    assert len(kept) == 1, "only the firmware without a bug is kept"
    assert git(firmware.root, "status", "--porcelain") == ""
    assert git(firmware.parts["cmsis-nn"], "status", "--porcelain") == ""


def test_a_part_that_there_is_not(firmware: FirmwareChoice) -> None:
    with (
        pytest.raises(Unknown, match="has no part 'cmsis-n'"),
        prepared(firmware, ["cmsis-n"], silent),
    ):
        pass
