"""Protects the cut of a program: it must end where it says, and give what that place computed.

The program is an exported one; the bundled runner runs it on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.config.loading import load_target
from harness.core.errors import MalformedFile
from harness.export.program import Program
from harness.firmware.source import Firmware
from harness.firmware.sources.bundled import build
from harness.formats.pte import CuttableProgram
from harness.sim.run_files import WORK, output_base, output_name
from harness.sim.simulation import simulate
from harness.sim.simulator import Chosen, pick
from harness.system.process import Stop
from tests.export.conftest import exported

__all__ = ["exported"]


@pytest.fixture(scope="module")
def host() -> tuple[Chosen, Firmware]:
    chosen = pick(load_target("host"))
    return chosen, build(chosen.target)


def result(host: tuple[Chosen, Firmware], program: Program, pte: bytes, folder: Path) -> bytes:
    """What the runner gives for the first input set."""
    folder.mkdir()
    (folder / "program.pte").write_bytes(pte)
    inputs = [program.directory / name for name in program.sets[0].inputs]
    ended = simulate(*host, program=folder / "program.pte", sets=[inputs], run_dir=folder)
    assert (ended.ending.stop, ended.ending.exit_status) == (Stop.EXITED, 0)
    return (folder / WORK / output_name(output_base(0), 0)).read_bytes()


def test_every_cut_runs_and_the_last_is_the_whole_program(
    exported: Callable[..., Program], host: tuple[Chosen, Firmware], tmp_path: Path
) -> None:
    program = exported("deep_autoencoder")
    whole = CuttableProgram(program.pte_path)
    steps = whole.instructions()
    assert [s.number for s in steps] == list(range(len(steps)))
    assert steps[0].operator == "cortex_m::quantize_per_tensor.out"
    assert {s.operator for s in steps} <= set(program.operators)
    results = [
        result(host, program, whole.cut(step, step.values[0]), tmp_path / str(step.number))
        for step in steps
    ]
    assert results[-1] == (program.directory / program.sets[0].expected[0]).read_bytes()
    # int8 between the first operator and the last: another tensor at every place
    sizes = {len(r) for r in results[:-1]}
    assert len(results[-1]) == 4 * len(results[-2])
    assert len(set(results)) == len(results)
    assert len(sizes) > 1


def test_the_cut_changes_two_numbers_and_nothing_else(exported: Callable[..., Program]) -> None:
    program = exported("deep_autoencoder")
    before = program.pte_path.read_bytes()
    whole = CuttableProgram(program.pte_path)
    step = whole.instructions()[2]
    after = whole.cut(step, step.values[0])
    assert len(before) == len(after)
    assert sum(a != b for a, b in zip(before, after, strict=True)) <= 8
    assert program.pte_path.read_bytes() == before


def test_what_is_not_a_program_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "x.pte").write_bytes(b"\x40\0\0\0ET12" + b"\xff" * 40)
    with pytest.raises(MalformedFile):
        CuttableProgram(tmp_path / "x.pte")
