"""Protects accepted figures: what counts as growth, and that only accepting changes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.case.case import Case, parse_case
from harness.errors import UsageError
from harness.judge.reference import diff, limit, load_reference, propose, reference_path, render

CASE = Case("corstone-300-m55", "ds_cnn")
METRICS = {"pte_bytes": 51_000, "elf_text": 40_000, "stack_high_water": 900, "ticks_set0": 5}


def test_round_trip_through_the_file(tmp_path: Path) -> None:
    reference = propose(
        None, pte_sha256="aa", outputs=(("11",),), metrics=METRICS, toolchain="gcc 12",
        reason="first", when="2026-01-01",
    )  # fmt: skip
    path = reference_path(tmp_path, CASE)
    path.parent.mkdir()
    path.write_text(render(reference))
    assert load_reference(tmp_path, CASE) == reference
    assert "ticks_set0" not in path.read_text()  # time is not a footprint


def test_another_toolchain_keeps_the_first() -> None:
    first = propose(
        None, pte_sha256="aa", outputs=(), metrics=METRICS, toolchain="gcc 12",
        reason="first", when="2026-01-01",
    )  # fmt: skip
    second = propose(
        first, pte_sha256="aa", outputs=(), metrics=METRICS | {"elf_text": 41_000},
        toolchain="gcc 14", reason="new compiler", when="2026-02-01",
    )  # fmt: skip
    assert second.firmware["gcc 12"]["elf_text"] == 40_000
    assert second.firmware["gcc 14"]["elf_text"] == 41_000
    assert [h["why"] for h in second.history] == ["first", "new compiler"]
    assert '+   "elf_text": 41000' in diff(Path("r.json"), first, second)


@pytest.mark.parametrize(("accepted", "allowed"), [(0, 256), (1000, 1256), (100_000, 100_500)])
def test_slack(accepted: int, allowed: int) -> None:
    assert limit(accepted) == allowed


def test_no_file_is_no_reference(tmp_path: Path) -> None:
    assert load_reference(tmp_path, CASE) is None


def test_a_malformed_file_is_an_error_not_a_missing_reference(tmp_path: Path) -> None:
    path = reference_path(tmp_path, CASE)
    path.parent.mkdir()
    path.write_text('{"pte_sha256": "aa"}')
    with pytest.raises(UsageError, match=r"ds_cnn\.json is not a reference"):
        load_reference(tmp_path, CASE)


@pytest.mark.parametrize("text", ["ds_cnn", "/ds_cnn", "corstone-300-m55/"])
def test_what_is_not_a_case(text: str) -> None:
    with pytest.raises(UsageError, match="is not a case"):
        parse_case(text)
