"""One formula for each figure of a program and a firmware."""

from __future__ import annotations

from harness.size.anatomy import Anatomy, Change, Difference, Part
from harness.size.elf_anatomy import LOAD_IMAGE, NO_REGION
from harness.size.measure import changes_behind, figures_of_firmware, figures_of_program

PARTS = (
    Part(("ITCM", "code", ".text", "f"), 10),
    Part(("ITCM", LOAD_IMAGE, ".data"), 4),
    Part(("DTCM", "data", ".data", "d"), 4),
    Part(("DTCM", "reserved", ".bss", "b"), 100),
    Part(("DTCM", "reserved", ".pool.x", "p"), 9),
    Part((NO_REGION, "data", ".lost", "l"), 3),
)


def test_firmware_figures() -> None:
    assert figures_of_firmware(PARTS, ["ITCM", "SRAM"]) == {
        "elf_loaded": 21,
        "elf_text": 10,
        "elf_outside": 3,
        "elf_ITCM": 14,
        "elf_ITCM_no_pools": 14,
        "elf_ITCM_pools": 0,
        "elf_DTCM": 113,
        "elf_DTCM_no_pools": 104,
        "elf_DTCM_pools": 9,
        "elf_SRAM": 0,
        "elf_SRAM_no_pools": 0,
        "elf_SRAM_pools": 0,
    }


def test_program_figures() -> None:
    memory = (
        Part(("planned buffer 1 of forward", "x"), 30),
        Part(("planned buffer 2 of forward",), 5),
        Part(("NPU scratch of EthosUBackend", "working memory"), 70),
        Part(("NPU scratch of EthosUBackend #2", "working memory"), 80),
    )
    figures = figures_of_program(Anatomy("pte", 12, (), memory))
    assert figures == {"pte_bytes": 12, "planned_bytes": 35, "npu_scratch_bytes": 80}


def test_a_change_concerns_the_figures_it_is_counted_in() -> None:
    parts = tuple(Change(p.path, 0, p.bytes) for p in PARTS)
    memory = (
        Change(("planned buffer 1 of forward", "x"), 0, 30),
        Change(("NPU scratch of EthosUBackend", "working memory"), 0, 70),
    )
    found = Difference(0, 0, parts, memory)
    figures = figures_of_firmware(PARTS)
    assert figures
    for figure, size in figures.items():
        assert sum(c.delta for c in changes_behind(figure, found)) == size, figure
    assert changes_behind("planned_bytes", found) == [memory[0]]
    assert changes_behind("npu_scratch_bytes", found) == [memory[1]]
    assert changes_behind("pte_bytes", found) == list(parts)
