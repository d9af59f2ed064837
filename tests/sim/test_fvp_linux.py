"""The command line of the FVP that boots Linux, word by word. None was ever started."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.config.loading import Limits, load_target, target_directories
from harness.core.errors import UsageError
from harness.sim import fvp
from harness.sim.fvp import NotServed
from harness.sim.simulator import Job, pick


def test_argv() -> None:
    """The boot ROM, the board's image at its place in flash, the card with the run's files, and no
    terminal that opens a window."""
    settings = load_target("corstone-1000-a320", target_directories({})).simulators.fvp
    assert settings is not None
    limits = Limits(host=9, stall=9, model=240)
    words = fvp.linux_argv("/f/FVP", settings, limits)
    assert words[0] == "/f/FVP"
    assert words[-4:] == (
        "--data",
        "board.flash0=corstone1000.wic@0x68000000",
        "--timelimit",
        "240",
    )
    assert set(words[1:-4:2]) == {"-C"}
    assert set(words[2:-4:2]) == {
        "host.ethosu.num_macs=256",
        "host.host_terminal_0.mode=raw",
        "host.host_terminal_0.start_telnet=0",
        "host.host_terminal_1.start_telnet=0",
        "se.secenc_terminal.start_telnet=0",
        "board.hostbridge.userNetPorts=2222=22",
        "board.virtio_net.hostbridge.userNetPorts=2222=22",
        "se.trustedBootROMloader.fname=bl1.bin",
        "board.msd_mmc.p_mmc_file=card.img",
    }


def test_it_is_not_run_yet_and_says_how_to_start_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rather than a run that nobody ever saw work."""
    model = tmp_path / "FVP_Corstone-1000-A320"
    model.write_text("#!/bin/sh\n")
    model.chmod(0o755)
    monkeypatch.setenv("HIL_FVP_DIR", str(tmp_path))
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))
    target = load_target("corstone-1000-a320", target_directories({}))
    chosen = pick(target, "fvp")
    job = Job(tmp_path / "elf", ("executor_runner",), tmp_path / "work", target.limits)
    with pytest.raises(NotServed, match="console and memory card are not served") as caught:
        chosen.simulator.launch(target, chosen.require(), job)
    assert caught.value.argv[0] == str(model)
    assert "se.trustedBootROMloader.fname=bl1.bin" in str(caught.value.hint)
    assert "meta-arm" in str(caught.value.hint)
    assert pick(target).name == "qemu"  # an installed one is no reason to fail


def test_a_model_without_an_operating_system() -> None:
    settings = load_target("corstone-300-m55", target_directories({})).simulators.fvp
    assert settings is not None
    with pytest.raises(UsageError, match="not known to boot an operating system"):
        fvp.linux_argv("/f", settings, Limits(host=9, stall=9))
