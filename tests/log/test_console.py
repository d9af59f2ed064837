"""What simulators, boots and shells say: stops, versions, stages, launch failures."""

from __future__ import annotations

import pytest

from harness.log.events import Kind, Stage
from harness.log.parser import parse_console
from tests.log.lines import log

STOPS = {
    "CPU time has been exceeded.": "wall_limit",
    "Simulated time has been exceeded.": "simulated_limit",
    "Cycle limit has been exceeded.": "cycle_limit",
}


@pytest.mark.parametrize("text", STOPS)
def test_model_stop_reasons(text: str) -> None:
    """The limit is the reason, also when "stopped by user" follows as it does in 11.2x."""
    data = (
        f"Info: Simulation is stopping. Reason: {text}\n\n"
        "Info: /OSCI/SystemC: Simulation stopped by user.\n"
        "[warning ][main@0][1300 ns] Simulation stopped by user\n"
    )
    seen = parse_console(data.encode())
    assert seen.stop is not None
    assert (seen.stop.reason, seen.stop.line) == (STOPS[text], 1)


def test_boot_banners_may_come_last() -> None:
    data = log("mid 2025", "Method loaded.", "Program complete, exiting.") + (
        b"*** Booting Zephyr OS build v4.2.0 ***\n    Ethos-U rev 136b7d75 --- Apr 12 2023\n"
        b"telnetterminal5: Listening for serial connection on port 5003\n"
        b"Fast Models [11.27.42 (Dec  9 2024)]\n"
    )
    seen = parse_console(data)
    assert seen.complete_line == 2
    assert seen.versions["zephyr"] == "v4.2.0"
    assert seen.versions["fast_models"] == "11.27.42"
    assert seen.strays == ()
    assert seen.failures == ()


def test_linux_boot_login_and_shell() -> None:
    data = (
        b"[    0.000000] Booting Linux on physical CPU 0x0000000000 [0x411fd040]\n"
        b"[    0.000000] Linux version 6.12.0-yocto (oe@host)\n"
        b"[    0.1] psci: failed to boot CPU1 (-95)\n"
        b"[    0.2] ARM FF-A: Notification setup failed -95, not enabled\n"
        b"corstone1000-fvp login: root\nroot@corstone1000-fvp:~# ls\n"
    )
    seen = parse_console(data)
    assert [p.stage for p in seen.progress] == [
        Stage.BOOTED,
        Stage.BOOTED,
        Stage.LOGIN,
        Stage.SHELL,
    ]
    assert seen.failures == ()
    oops = parse_console(data + b"[ 9.1] Internal error: Oops: 0000000096000004 [#1] SMP\n")
    assert oops.failures[0].kind is Kind.LINUX_OOPS


LAUNCHES = {
    "./FVP_X: error while loading shared libraries: libpython3.9.so.1.0: cannot open shared "
    "object file: No such file or directory": Kind.LIBRARY_MISSING,
    "Error: (E549) uncaught exception: /f/libarmctmodel.so: cannot enable executable stack as "
    "shared object requires: Invalid argument": Kind.EXECSTACK,
    "Error: (E549) uncaught exception: Resource temporarily unavailable": Kind.HOST_LIMITS,
    "Error: License checkout failed for feature FM_Simulator": Kind.LICENCE,
    "FlexNet Licensing error:-1,359": Kind.LICENCE,
    "You have to accept the EULA before the model can be used": Kind.EULA,
    "Error: FVP_MPS3: mps3_board.uart0: cannot open file": Kind.SIMULATOR_ERROR,
    "/opt/FVP_Corstone_SSE-300_Ethos-U55: error: something": Kind.SIMULATOR_ERROR,
    "qemu-system-arm: unsupported machine type": Kind.SIMULATOR_ERROR,
}


@pytest.mark.parametrize("line", LAUNCHES)
def test_launch_failures(line: str) -> None:
    (failure,) = parse_console(line.encode() + b"\n").failures
    assert failure.kind is LAUNCHES[line]


SUSPICIONS = {
    "Killed": True,
    "Killed 3 stale terminals": False,
    "##[error]Process completed with exit code 1.": True,
    "Process completed with exit code 0.": False,
    "[run_fvp] Simulation complete, 137": True,
    "[run_fvp] Simulation complete, 0": False,
}


@pytest.mark.parametrize("line", SUSPICIONS)
def test_words_that_may_explain_a_bad_end(line: str) -> None:
    seen = parse_console(line.encode() + b"\n")
    assert [event.kind for event in seen.suspects] == [Kind.JOB_FAILED] * SUSPICIONS[line]
    assert seen.failures == ()


def test_the_first_version_that_is_named_is_what_ran() -> None:
    banner = "*** Booting Zephyr OS build {} ***\n"
    seen = parse_console((banner.format("v4.1.0") + banner.format("v4.2.0")).encode())
    assert seen.versions == {"zephyr": "v4.1.0"}
