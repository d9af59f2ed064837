"""The runner as a program of this machine: no simulator in front of it."""

from __future__ import annotations

from pathlib import Path

from harness.config.loading import load_target, target_directories
from harness.sim.host import SIMULATOR
from harness.sim.simulator import Job

RUNNER = ("executor_runner", "-m", "program.pte")


def test_launch() -> None:
    """The program itself is argv[0]."""
    native = load_target("host", target_directories({}))
    job = Job(Path("/f/elf"), RUNNER, Path("/w"), native.limits)
    launch = SIMULATOR.launch(native, SIMULATOR.find(native), job)
    assert launch.argv == ("/f/elf", *RUNNER[1:])
