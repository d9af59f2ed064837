"""The runner as a program of this machine: no simulator in front of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.config.case import Case
from harness.config.loading import load_target, target_directories
from harness.core.verdict import Verdict
from harness.run.pipeline import RunOptions, run_case
from harness.sim.host import SIMULATOR
from harness.sim.simulator import GuestJob, pick
from harness.system.confine import why_not
from tools.doubles import FakeFirmware, double_program

RUNNER = ("executor_runner", "-m", "program.pte")


def test_launch() -> None:
    """The program itself is argv[0]."""
    native = load_target("host", target_directories({}))
    job = GuestJob(Path("/f/elf"), RUNNER, Path("/w"), native.limits)
    launch = SIMULATOR.launch(native, SIMULATOR.find(native), job)
    assert launch.argv == ("/f/elf", *RUNNER[1:])


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_a_program_that_speaks_as_bubblewrap_has_failed_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was INFRA, which a night takes for no regression."""
    monkeypatch.setenv("HIL_HOME", str(tmp_path / ".hil"))
    elf = tmp_path / "program"
    elf.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied'\nexit 1\n")
    elf.chmod(0o755)
    native = load_target("host", target_directories({}))
    program = double_program(tmp_path / "double")
    record = run_case(
        Case("host", "add"),
        pick(native),
        program,
        FakeFirmware(elf),  # type: ignore[arg-type]
        RunOptions(),
    )
    assert record.verdict is Verdict.FAULT, record.cause
