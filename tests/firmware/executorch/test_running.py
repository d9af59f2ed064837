"""Protects that what is built from a checkout runs as ExecuTorch's runner does: newlib, its files,
one input set, the NPU's driver served; and that its kernels are the ones that are run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.config.loading import load_target
from harness.config.models import find_model
from harness.export.batch import export
from harness.export.process import ExportProcess
from harness.export.program import Program
from harness.export.request import ExportRequest
from harness.firmware.source import Firmware
from harness.log.parser import parse_console
from harness.sim.run_files import CONSOLE, WORK
from harness.sim.simulation import simulate
from harness.sim.simulator import pick
from tests.firmware.executorch.conftest import Source
from tests.firmware.executorch.products import M55, U55, U85, built
from tests.firmware.executorch.small import KERNEL, edit
from tests.thorough import cases

TARGETS = {M55: "cortex-m55", U55: "ethos-u55-128", U85: "ethos-u85-256"}
Run = Callable[[Firmware, Program], tuple[str, list[bytes]]]

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture(scope="session")
def exported(shared_hil_home: str, hil_export_process: ExportProcess) -> Callable[[str], Program]:
    """A sum of two quantised tensors, for a target."""

    def make(target: str) -> Program:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HIL_HOME", shared_hil_home)
            request = ExportRequest(find_model("qadd"), TARGETS[target])
            return export([request], process=hil_export_process)[0].unwrap()

    return make


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Console and outputs of the first input set."""

    def once(firmware: Firmware, program: Program) -> tuple[str, list[bytes]]:
        directory = tmp_path / f"run{len(list(tmp_path.glob('run*')))}"
        directory.mkdir()
        inputs = [program.directory / name for name in program.sets[0].inputs]
        chosen = pick(load_target(firmware.target), "qemu")
        transcript = simulate(
            chosen, firmware, program=program.pte_path, sets=[inputs], run_dir=directory
        )
        assert transcript.ending.exit_status == 0
        outputs = sorted((directory / WORK).glob("s0-*.bin"))
        return (directory / CONSOLE).read_text(), [path.read_bytes() for path in outputs]

    return once


def expected(program: Program) -> list[bytes]:
    return [(program.directory / name).read_bytes() for name in program.sets[0].expected]


@pytest.mark.parametrize("target", cases(U55, U85, thorough=[M55]))
def test_a_program_runs(
    source: Source, target: str, exported: Callable[[str], Program], run: Run
) -> None:
    program = exported(target)
    console, outputs = run(built(source, target), program)
    assert outputs == expected(program)
    assert console.rstrip().endswith("Program complete, exiting.")
    observation = parse_console(console.encode())
    assert observation.complete_line is not None
    assert not observation.failures
    assert "build id" not in console, "nothing of the bundled runner stands for it"


def test_a_bug_in_a_kernel_is_run(
    small: Source, exported: Callable[[str], Program], run: Run
) -> None:
    program = exported(M55)
    edit(small.root / KERNEL, "pairs.out + r * pairs.row, pairs.row)", "pairs.out, pairs.row - 1)")
    _, outputs = run(built(small, M55), program)
    assert outputs != expected(program)
