"""Protects the figures of a program from the run that counts its ticks by operator."""

from __future__ import annotations

from harness.log.parser import parse_console
from harness.run.judging import program_figures

CONSOLE = """\
I [executorch:r.cpp:9 report()] method_allocator_used:      {used} / 8000 free: 7000 ( used: 1 % )
I [executorch:r.cpp:9 report()] method_allocator_planned:  400 bytes
I [executorch:r.cpp:9 report()] method_allocator_executor: {executor} bytes
I [executorch:r.cpp:9 report()] temp_allocator:             16 / 512 free: 496 ( used: 3 % )
"""
TICKS = "I [executorch:runner.cpp:225 report()] op_ticks: 0 {} cortex_m::quantized_add.out 450\n"


def figures(executor: int, ticks: str = "") -> dict[str, int]:
    used = 500 + executor
    console = CONSOLE.format(used=used, executor=executor) + ticks
    found = program_figures(parse_console(console.encode()))
    assert {"method_allocator_used", "method_allocator_executor"} <= found.keys()
    return found


def test_memory_for_counting_is_not_the_programs() -> None:
    """`hil run --profile` was OVER_BUDGET for each program with an accepted reference."""
    counted = figures(executor=96, ticks=TICKS.format(0) + TICKS.format(1))
    assert counted == figures(executor=0)


def test_another_runners_executor_is_its_own() -> None:
    """ExecuTorch's runner has the same words for what its method takes while it executes."""
    assert figures(executor=96)["method_allocator_used"] == 596
