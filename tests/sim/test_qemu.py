"""QEMU's command line, word by word."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.config.loading import load_target, target_directories
from harness.config.target import Qemu
from harness.sim import qemu, qemu_command
from harness.sim.gdbstub.host_calls import HostCalls
from harness.sim.simulator import GuestJob
from harness.system.toolchain import Tool


def test_argv() -> None:
    settings = load_target("corstone-300-m55", target_directories({})).simulators.qemu
    assert settings is not None
    runner = ["executor_runner", "-m", "program.pte"]
    argv = qemu_command.argv("/usr/bin/qemu-system-arm", settings, Path("/f/elf"), runner)
    assert argv == (
        "/usr/bin/qemu-system-arm",
        *("-M", "mps3-an547"),
        "-nographic",
        *("-monitor", "none"),
        *("-serial", "none"),
        *("-icount", "shift=5"),
        "-semihosting-config",
        "enable=on,target=native,arg=executor_runner,arg=-m,arg=program.pte",
        *("-kernel", "/f/elf"),
    )


def test_comma_is_doubled() -> None:
    """QEMU splits its options at single commas."""
    assert qemu_command.semihosting(["a,b", "c=d"]) == "enable=on,target=native,arg=a,,b,arg=c=d"


def test_memory() -> None:
    argv = qemu_command.argv("q", Qemu(executable="q", machine="m", memory="2G"), Path("e"), ["a"])
    assert argv[3:5] == ("-m", "2G")


def test_memory_that_the_host_shares() -> None:
    """The whole of the machine's RAM is what the companion has; its words come behind these."""
    settings = load_target("corstone-300-u55-128", target_directories({})).simulators.qemu
    assert settings is not None
    argv = qemu_command.argv("q", settings, Path("e"), ["a"])
    assert argv[1:5] == ("-M", "mps3-an547,memory-backend=ddr", "-m", "2048M")


@pytest.mark.parametrize(
    ("target", "functions", "said"),
    [
        ("corstone-300-u55-128", {"ethosu_invoke_v3": 0x100}, (qemu.DRIVER_OUTSIDE,)),
        ("corstone-300-u55-128", {}, ()),
        ("corstone-300-m55", {"ethosu_invoke_v3": 0x100}, ()),  # nobody calls it there
    ],
)
def test_a_driver_that_is_not_run_is_said(
    monkeypatch: pytest.MonkeyPatch, target: str, functions: dict[str, int], said: tuple[str, ...]
) -> None:
    """A result with the NPU's model in place of the driver's code says nothing about that code."""
    monkeypatch.setattr(qemu, "read_host_calls", lambda elf: HostCalls(functions=functions))
    board = load_target(target, target_directories({}))
    job = GuestJob(Path("elf"), ("executor_runner",), Path("work"), board.limits)
    tool = Tool("qemu-system-arm", Path("/usr/bin/qemu-system-arm"), "7.2")
    assert qemu.SIMULATOR.launch(board, tool, job).stands_in == said
