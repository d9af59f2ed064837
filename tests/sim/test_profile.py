"""Protects instructions per operator that are counted from outside, at a function's name.

The guest has newlib's start-up and ExecuTorch's name for the function; its nth instruction takes
two more than the one before. It runs on the real QEMU.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.config.loading import load_target
from harness.export.program import Program
from harness.formats.pte import CuttableProgram
from harness.log.parser import parse_console
from harness.sim.run_files import CONSOLE
from harness.sim.simulation import simulate
from harness.sim.simulator import pick
from harness.sim.transcript import Transcript
from tests.export.conftest import exported
from tests.sim.gdbstub import guests

__all__ = ["exported"]
pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


@dataclass(frozen=True)
class Foreign:
    elf: Path
    key: str = "0" * 32
    one_set_per_process: bool = True
    takes_flags: bool = False
    program: str = ""
    root: Path | None = None


def run(elf: Path, program: Program, folder: Path, *, profile: bool) -> Transcript:
    inputs = [program.directory / name for name in program.sets[0].inputs]
    chosen = pick(load_target("corstone-300-m55"), "qemu")
    return simulate(
        chosen, Foreign(elf), program.pte_path, [inputs, inputs], run_dir=folder, profile=profile
    )


def test_each_operator_has_its_count(exported: Callable[..., Program], tmp_path: Path) -> None:
    program = exported("deep_autoencoder")
    steps = CuttableProgram(program.pte_path).instructions()
    elf = guests.newlib(tmp_path / "e", "steps.c", STEPS=len(steps))
    transcript = run(elf, program, tmp_path / "run", profile=True)
    assert transcript.ending.exit_status == 0
    seen = parse_console((tmp_path / "run" / CONSOLE).read_bytes())
    first = [entry for entry in seen.op_ticks if entry.input_set == 0]
    assert [entry.operator for entry in first] == [step.operator for step in steps]
    ticks = [entry.ticks for entry in first]
    # "nop", n times "subs, bne", and the return: to the instruction
    assert ticks == [2 * n + 2 for n in range(1, len(steps) + 1)]
    whole = seen.metrics["ticks_set0"]
    assert whole > sum(ticks)  # what is between them, too


def test_nobody_asked(exported: Callable[..., Program], tmp_path: Path) -> None:
    program = exported("deep_autoencoder")
    elf = guests.newlib(tmp_path / "e", "steps.c", STEPS=3)
    run(elf, program, tmp_path / "run", profile=False)
    assert b"op_ticks" not in (tmp_path / "run" / CONSOLE).read_bytes()


def test_a_runtime_without_that_name_is_not_counted(
    exported: Callable[..., Program], tmp_path: Path
) -> None:
    program = exported("deep_autoencoder")
    elf = guests.newlib(tmp_path / "e", "steps.c", STEPS=3, NAME='"another"')
    transcript = run(elf, program, tmp_path / "run", profile=True)
    assert transcript.ending.exit_status == 0
    assert b"op_ticks" not in (tmp_path / "run" / CONSOLE).read_bytes()
