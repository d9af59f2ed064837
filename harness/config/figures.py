"""The figures of a program, a firmware and a run: what each means, its unit, who measures it.

A stage measures figures: "program" those of the ``.pte``, "firmware" those of the ELF, "run" what
the runner prints (``harness.log.figures``) and the sizes that need no disassembly. The
formulas of the first two are in ``harness.size.budgeted_figures``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

MeasuredIn = Literal["program", "firmware", "run"]


@dataclass(frozen=True)
class Figure:
    """One row. ``<REGION>`` and ``<word>`` in the name stand for many.

    ``gated``: its growth has to be accepted, and a budget may limit it; else it is only
    reported. ``per_toolchain``: another compiler makes another value.
    """

    name: str
    meaning: str
    stages: tuple[MeasuredIn, ...] = ("run",)
    unit: str = "bytes"
    per_toolchain: bool = True
    gated: bool = True
    bundled_only: bool = False  # the bundled runner's alone

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        many = re.sub("<[a-z]+>", "[a-z0-9_]+", self.name)
        return re.compile(many.replace("<REGION>", "[A-Z][A-Z0-9_]*"))

    def measured_by(self, stages: Iterable[MeasuredIn]) -> bool:
        """Whether one of the stages measures it."""
        return not set(self.stages).isdisjoint(stages)


# The first matching row applies.
FIGURES: tuple[Figure, ...] = (
    Figure("pte_bytes", "the .pte file", ("program", "run"), per_toolchain=False),
    Figure("planned_bytes", "all buffers of the memory plan", ("program",), per_toolchain=False),
    Figure(
        "npu_scratch_bytes",
        "the largest working memory that a delegate asks for",
        ("program",),
        per_toolchain=False,
    ),
    Figure(
        "npu_cycles_estimated",
        "an inference on the NPU, all delegates: an estimate of Vela's, not a measurement",
        ("program", "run"),
        unit="cycles",
        per_toolchain=False,
    ),
    Figure(
        "cpu_instructions",
        "instructions of the CPU for an inference on QEMU, the most of any input set",
        unit="instructions",
        bundled_only=True,
    ),
    Figure("elf_loaded", "code and initialised data, stored copies too", ("firmware", "run")),
    Figure("elf_text", "executable sections", ("firmware", "run")),
    Figure(
        "elf_stripped",
        "the ELF without symbols, as a board stores it; "
        "not of a checkout's runner, which has every kernel there is",
        ("firmware", "run"),
        bundled_only=True,
    ),
    Figure("elf_outside", "bytes outside all memory regions of the target", ("firmware", "run")),
    Figure(
        "elf_memory",
        "all that it takes when loaded, without regions: of a program under Linux",
        ("firmware", "run"),
    ),
    Figure("elf_memory_no_pools", "the same without the pools", ("firmware", "run")),
    Figure("elf_<REGION>_pools", "the runner's pools in a memory region", ("firmware", "run")),
    Figure("elf_<REGION>_no_pools", "a memory region without the pools", ("firmware", "run")),
    Figure(
        "elf_<REGION>",
        "all that the linker put into a memory region: "
        "code, data, stored copies of data, and what it reserved (.bss, stacks, pools)",
        ("firmware", "run"),
    ),
    Figure("<pool>_total", "the size of a pool or stack", gated=False),
    Figure("ticks_set<number>", "time of an input set", unit="ticks", gated=False),
    Figure(
        "cycles_set<number>",
        "cycles of a board's core for an input set; never compared with ticks",
        unit="cycles",
        gated=False,
    ),
    Figure(
        "method_allocator_planned", "buffers of the memory plan, as allocated", per_toolchain=False
    ),
    Figure("method_allocator_loaded", "what the loaded method takes"),
    Figure("method_allocator_input", "what preparing the inputs took"),
    Figure("method_allocator_executor", "what executing took of the method's pool"),
    Figure("method_allocator_used", "all that was used of the method's pool"),
    Figure("input_file_allocator_used", "what the files took: the program, its inputs"),
    Figure("temp_allocator", "the most that operators and delegates took at a time"),
    Figure("<pool>_allocator_<use>", "the use of another allocator"),
    Figure("model_pte_program_size", "the program as the runner found it"),
    Figure("model_pte_loaded_size", "the program as the runner loaded it"),
    Figure("planned_<use>", "planned memory, as another runner prints it"),
    Figure(
        "vm_hwm", "the most memory that the process had at a time, as Linux counts", gated=False
    ),
    Figure("stack_<use>", "the deepest that the stack was"),
)


# A figure that only a third-party runner prints.
UNLISTED = Figure("", "")


def figure(name: str) -> Figure:
    """The row of a figure, or UNLISTED."""
    return next((row for row in FIGURES if row.pattern.fullmatch(name)), UNLISTED)


def gated_figures(figures: Mapping[str, int], stages: Iterable[MeasuredIn]) -> dict[str, int]:
    """The gated figures that one of the stages measures."""
    wanted = frozenset(stages)
    rows = {name: figure(name) for name in figures}
    return {n: figures[n] for n, row in rows.items() if row.gated and row.measured_by(wanted)}
