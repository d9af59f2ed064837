"""What the list of figures protects: a name means one thing, and a misspelt one means nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.config.figures import UNLISTED, figure, figures
from tools.clone import project_root

ACCEPTED = sorted((project_root() / "references").glob("*/*.json"))


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("elf_ITCM", "elf_<REGION>"),
        ("elf_DDR_pools", "elf_<REGION>_pools"),
        ("elf_DDR_no_pools", "elf_<REGION>_no_pools"),
        ("elf_text", "elf_text"),
        ("temp_allocator_total", "<pool>_total"),
        ("stack_high_water", "stack_<use>"),
        ("method_allocator_used_total", "<pool>_total"),
        ("ticks_set12", "ticks_set<number>"),
        ("cycles_set0", "cycles_set<number>"),
        ("method_allocator_used", "method_allocator_used"),
        ("planned_bytes", "planned_bytes"),
    ],
)
def test_the_row_of_a_name(name: str, row: str) -> None:
    found = figure(name)
    assert found.name == row
    assert found.meaning


@pytest.mark.parametrize("name", ["pte_byte", "elf_loded", "elf_ITCM_pool", "", "text"])
def test_a_misspelt_name_has_no_row(name: str) -> None:
    assert figure(name) is UNLISTED


def test_no_row_hides_a_later_one() -> None:
    for row in figures():
        example = row.name.replace("<REGION>", "DDR").replace("<number>", "0")
        example = example.replace("<pool>", "heap").replace("<use>", "most")
        assert figure(example) is row


def test_what_is_accepted_and_for_whom() -> None:
    assert not figure("ticks_set0").gated
    assert not figure("temp_allocator_total").gated
    assert figure("unheard_of").gated
    assert figure("unheard_of").per_toolchain
    assert not figure("method_allocator_planned").per_toolchain
    assert figure("unheard_of").measured_by(("run",))
    assert not figure("unheard_of").measured_by(("program", "firmware"))


@pytest.mark.parametrize("path", ACCEPTED, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_every_accepted_figure_has_a_row(path: Path) -> None:
    fields = json.loads(path.read_text())
    for name in fields["program"]:
        assert figure(name) is not UNLISTED
        assert not figure(name).per_toolchain
    for name in (n for measured in fields["firmware"].values() for n in measured):
        assert figure(name) is not UNLISTED
        assert figure(name).per_toolchain
