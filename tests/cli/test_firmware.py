"""Protects what the runner promises about memory: sizes, no heap, figures that agree."""

from __future__ import annotations

import re
import subprocess

import pytest

from harness.config.loading import load_target
from harness.config.target import Target
from harness.firmware.source import Firmware
from harness.firmware.sources.bundled import build
from harness.size.elf_anatomy import LOAD_IMAGE, NO_REGION, section_parts
from harness.size.measure import figures_of_program, measure_file

from .conftest import Exported, Hil

TARGET = "corstone-300-m55"
TEXT_LIMIT = 112 << 10  # of the 512 KiB of the ITCM, so that a leap is seen


@pytest.fixture(scope="module")
def target() -> Target:
    return load_target(TARGET)


@pytest.fixture(scope="module")
def firmware(target: Target) -> Firmware:
    return build(target)


def test_no_allocator_is_linked(firmware: Firmware) -> None:
    """What is not in the ELF cannot be called after load, or ever."""
    symbols = subprocess.run(
        ["arm-none-eabi-nm", str(firmware.elf)], capture_output=True, text=True, check=True
    ).stdout
    assert " T " in symbols
    heap = r" [TtWw] (_?malloc(_r)?|_?free(_r)?|_?calloc(_r)?|_sbrk(_r)?|_Zn[wa]\w+)$"
    assert re.findall(heap, symbols, re.MULTILINE) == []


def test_regions_agree_with_the_linker_map(target: Target, firmware: Firmware) -> None:
    output_section = re.compile(
        r"^\.[\w.-]+\s+0x([0-9a-f]+)\s+0x([0-9a-f]+)(?: load address 0x[0-9a-f]+)?$", re.MULTILINE
    )
    sections = [
        (int(a, 16), int(n, 16)) for a, n in output_section.findall(firmware.map.read_text())
    ]
    parts = section_parts(firmware.elf, target.memory)
    for region in target.memory:
        mapped = sum(n for a, n in sections if region.origin <= a < region.end)
        used = sum(p.bytes for p in parts if p.path[0] == region.name and p.path[1] != LOAD_IMAGE)
        assert used == mapped, region.name


def test_everything_lies_in_a_region_of_the_board(target: Target, firmware: Firmware) -> None:
    parts = section_parts(firmware.elf, target.memory)
    assert parts
    assert NO_REGION not in {p.path[0] for p in parts}


def test_figures_of_a_run_agree_with_planner_and_program(hil: Hil, exported: Exported) -> None:
    program = exported("ds_cnn")
    planned = figures_of_program(measure_file(program.pte_path))["planned_bytes"]
    metrics = hil("run", TARGET, "ds_cnn", "--json").json["metrics"]
    assert metrics["method_allocator_planned"] == planned
    assert metrics["model_pte_program_size"] == program.pte_path.stat().st_size
    assert metrics["elf_text"] <= TEXT_LIMIT
    assert 0 < metrics["stack_high_water"] < metrics["stack_high_water_total"]
    used = metrics["method_allocator_planned"] + metrics["method_allocator_loaded"]
    assert used == metrics["method_allocator_used"]


def test_counts_repeat_exactly(hil: Hil) -> None:
    """Instructions are counted, not timed: two runs of the same thing agree."""
    first, second = (hil("run", TARGET, "softmax", "--json").json["metrics"] for _ in range(2))
    assert first["ticks_set0"] == second["ticks_set0"] > 0
