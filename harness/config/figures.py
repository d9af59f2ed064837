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
    stages: tuple[MeasuredIn, ...]
    meaning: str
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
    Figure("pte_bytes", ("program", "run"), "the .pte file", per_toolchain=False),
    Figure("planned_bytes", ("program",), "all buffers of the memory plan", per_toolchain=False),
    Figure(
        "npu_scratch_bytes",
        ("program",),
        "the largest working memory that a delegate asks for",
        per_toolchain=False,
    ),
    Figure("elf_loaded", ("firmware", "run"), "code and initialised data, stored copies too"),
    Figure("elf_text", ("firmware", "run"), "executable sections"),
    Figure(
        "elf_stripped",
        ("firmware", "run"),
        "the ELF without symbols, as a board stores it; "
        "not of a checkout's runner, which has every kernel there is",
        bundled_only=True,
    ),
    Figure("elf_outside", ("firmware", "run"), "bytes outside all memory regions of the target"),
    Figure(
        "elf_memory",
        ("firmware", "run"),
        "all that it takes when loaded, without regions: of a program under Linux",
    ),
    Figure("elf_memory_no_pools", ("firmware", "run"), "the same without the pools"),
    Figure("elf_<REGION>_pools", ("firmware", "run"), "the runner's pools in a memory region"),
    Figure("elf_<REGION>_no_pools", ("firmware", "run"), "a memory region without the pools"),
    Figure(
        "elf_<REGION>",
        ("firmware", "run"),
        "all that the linker put into a memory region: "
        "code, data, stored copies of data, and what it reserved (.bss, stacks, pools)",
    ),
    Figure("<pool>_total", ("run",), "the size of a pool or stack", gated=False),
    Figure("ticks_set<number>", ("run",), "time of an input set", "ticks", gated=False),
    Figure(
        "cycles_set<number>",
        ("run",),
        "cycles of a board's core for an input set; never compared with ticks",
        "cycles",
        gated=False,
    ),
    Figure(
        "method_allocator_planned",
        ("run",),
        "buffers of the memory plan, as allocated",
        per_toolchain=False,
    ),
    Figure("method_allocator_loaded", ("run",), "what the loaded method takes"),
    Figure("method_allocator_input", ("run",), "what preparing the inputs took"),
    Figure("method_allocator_executor", ("run",), "what executing took of the method's pool"),
    Figure("method_allocator_used", ("run",), "all that was used of the method's pool"),
    Figure("input_file_allocator_used", ("run",), "what the files took: the program, its inputs"),
    Figure("temp_allocator", ("run",), "the most that operators and delegates took at a time"),
    Figure("<pool>_allocator_<use>", ("run",), "the use of another allocator"),
    Figure("model_pte_program_size", ("run",), "the program as the runner found it"),
    Figure("model_pte_loaded_size", ("run",), "the program as the runner loaded it"),
    Figure("planned_<use>", ("run",), "planned memory, as another runner prints it"),
    Figure(
        "vm_hwm",
        ("run",),
        "the most memory that the process had at a time, as Linux counts",
        gated=False,
    ),
    Figure("stack_<use>", ("run",), "the deepest that the stack was"),
)


# A figure that only a third-party runner prints.
UNLISTED = Figure("", ("run",), "")


def figure(name: str) -> Figure:
    """The row of a figure, or UNLISTED."""
    return next((row for row in FIGURES if row.pattern.fullmatch(name)), UNLISTED)


def gated_figures(figures: Mapping[str, int], stages: Iterable[MeasuredIn]) -> dict[str, int]:
    """The gated figures that one of the stages measures."""
    wanted = frozenset(stages)
    rows = {name: figure(name) for name in figures}
    return {n: figures[n] for n, row in rows.items() if row.gated and row.measured_by(wanted)}
