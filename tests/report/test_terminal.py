"""Protects what a terminal says of a fault: its place is a line of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.console import Console

from harness.core.judgement import Cause, Judgement
from harness.core.verdict import Verdict
from harness.report.terminal import fault_details, fault_place, print_records
from tests.run.test_record import record

PC = {"pc": "0x10000104", "pc_symbol": "work+0x4", "pc_source": "planted.c:60"}
LR = {"lr": "0x10000108", "lr_symbol": "run+0x8", "lr_source": "planted.c:71"}


def shown(text: str, facts: dict[str, str]) -> list[str]:
    console = Console(record=True, width=100)
    judgement = Judgement(Verdict.FAULT, Cause("hard_fault", text, 3, facts))
    print_records(console, [replace(record(verdict="FAULT"), judgement=judgement)])
    return [line.rstrip() for line in console.export_text().splitlines()]


@pytest.mark.parametrize(
    ("facts", "place"),
    [
        (PC | LR, "in work+0x4 (planted.c:60)"),
        ({"pc_symbol": "work+0x4"}, "in work+0x4"),
        ({"pc": "0x00000000"} | LR, "called from run+0x8 (planted.c:71)"),
        (PC | {"which": "Division by zero"}, "Division by zero, in work+0x4 (planted.c:60)"),
        (
            PC | LR | {"assertion": "a == b", "reason": "4"},
            "in run+0x8 (planted.c:71)",
        ),  # pc is in its handler
    ],
)
def test_function_and_source_line_of_a_fault(facts: dict[str, str], place: str) -> None:
    """Of the caller, where the CPU jumped to nowhere: pc = 0 is no source line."""
    lines = shown("HardFault", facts)
    assert lines[lines.index("  HardFault") + 1] == f"  {place}"


def test_a_place_that_the_cause_names_is_not_repeated() -> None:
    lines = shown("HardFault in work+0x4 (planted.c:60)", PC)
    assert not [line for line in lines if line.startswith("  in ")]


def test_a_fault_that_no_elf_explains_has_no_place() -> None:
    assert fault_place({"pc": "0x00000000", "lr": "0x1"}) is None


def test_a_reset_loop_says_what_came_before_and_what_can_reset() -> None:
    facts = {"boots": "3", "above": "meter starts", "resets": "sys_reboot"}
    assert fault_details(facts) == (
        "the last line before the banner: meter starts, of what can reset the board the firmware "
        "has sys_reboot"
    )
    assert fault_details({"boots": "3", "above": ""}) is None


@pytest.mark.parametrize(
    ("confined", "reason", "said"),
    [
        (True, None, "on qemu 7.2;"),
        (True, "no filter for system calls", "on qemu 7.2, confined in part;"),
        (False, "no bwrap", "on qemu 7.2, not confined;"),
    ],
)
def test_how_far_a_guest_was_confined(confined: bool, reason: str | None, said: str) -> None:
    console, run = Console(record=True, width=100), record()
    assert run.simulator is not None
    simulator = replace(run.simulator, confined=confined, unconfined_reason=reason)
    print_records(console, [replace(run, simulator=simulator)])
    assert said in console.export_text()
