"""The stand-in's NPU: reached by the doorbell, and by taking over the driver of any program."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from harness.suites.standin.install import start_code
from harness.system.confine import REQUIRE
from tests.sim.gdbstub.guests import NPU_GUEST
from tests.thorough import cases

from .conftest import SSE_320, U55, U65, Fvp, Guest, semihosting

DDR, SRAM, DTCM = "0x70010000", "0x31000000", "0x30001000"
MISMATCH = "E: NPU config mismatch. npu."
SSE_320_SEMIHOSTING = (
    *("-C", "mps4_board.subsystem.cpu0.semihosting-enable=1"),
    *("-C", "mps4_board.subsystem.iotss3_systemcontrol.INITSVTOR_RST=0"),
)


@pytest.mark.parametrize("place", cases(DDR, DTCM, thorough=[SRAM]))
def test_a_unknown_tests_driver_works_wherever_its_buffers_are(
    fvp: Fvp, guest: Guest, place: str
) -> None:
    """The guest's own functions wait for an NPU that is not there: it must not get into them."""
    done = fvp("-a", guest(source=NPU_GUEST, PLACE=place), *semihosting())
    assert done.stdout.splitlines()[:11] == [
        "init 0",
        "reserved 1",
        "ethos-u : cycle_cnt : 0 cycles (a functional stand-in: results, "
        "not time; PMU counters read 0)",
        "result 0",
        "result 0",
        "fast 1",
        "begun 2",
        "ended 2",
        "wrong 0",
        "cycles 1",
        "copied 16",
    ]
    assert "Ethos-U55 with 128 MACs (results, not time), with its driver's functions emulated" in (
        done.stderr
    )


def test_the_asynchronous_functions(fvp: Fvp, guest: Guest) -> None:
    """A second start before the wait, and a wait without a start, are refused as by the driver."""
    done = fvp("-a", guest(source=NPU_GUEST, ASYNC=1), *semihosting())
    assert done.stdout.count("started 0\n") == 2
    assert done.stdout.count("again -1\n") == 2
    assert done.stdout.count("wait 0\n") == done.stdout.count("wait -2\n") == 2
    assert "E: Inference already running, or waiting to be cleared... (stand-in)" in done.stdout
    assert "E: Inference job not running... (stand-in)" in done.stdout
    assert "copied 16" in done.stdout
    # The driver calls the hook of the end when the program waits for the end, not before.
    hooks = [line for line in done.stdout.splitlines() if line.startswith(("begun", "ended"))]
    assert hooks == [
        "begun 1",
        "ended 0",
        "begun 2",
        "ended 1",
        "begun 2",
        "ended 2",
    ]
    assert "wrong 0" in done.stdout


def test_a_job_that_is_released_is_waited_for(fvp: Fvp, guest: Guest) -> None:
    done = fvp("-a", guest(source=NPU_GUEST, RELEASE_A_RUNNING_JOB=1), *semihosting())
    assert "begun 3\nended 3\n" in done.stdout
    assert "wait -2" in done.stdout


@pytest.mark.parametrize(
    "npu",
    cases(
        (U55, 32, 0x1005),
        (U65, 256, 0x10003008),
        thorough=((U55, 64, 0x1006), (U55, 256, 0x3008), (U65, 512, 0x10006009)),
    ),
)
def test_every_mac_count(fvp: Fvp, guest: Guest, npu: tuple[str, int, int]) -> None:
    """A stream runs on the NPU that it was compiled for, and on no other."""
    model, macs, config = npu
    right = guest(source=NPU_GUEST, CONFIG=hex(config))
    count = ("-C", f"ethosu.num_macs={macs}")
    assert "copied 16" in fvp("-a", right, *count, *semihosting(), model=model).stdout
    other = fvp("-a", guest(source=NPU_GUEST), *count, *semihosting(), model=model).stdout
    assert "result -1" in other
    assert "copied 0" in other
    assert f"{MISMATCH}macs_per_cc={config & 15}, optimizer.macs_per_cc=7 (stand-in)" in other


@pytest.mark.parametrize(
    "npu",
    cases(
        (512, 0x20001119),
        thorough=((128, 0x20000117), (256, 0x20000118), (1024, 0x2000251A), (2048, 0x2000261B)),
    ),
)
def test_every_mac_count_of_the_u85(fvp: Fvp, guest: Guest, npu: tuple[int, int]) -> None:
    macs, config = npu
    elf = guest(source=NPU_GUEST, CONFIG=hex(config), ID="0x20007000")
    count = ("-C", f"mps4_board.subsystem.ethosu.num_macs={macs}")
    done = fvp("-a", elf, *count, *SSE_320_SEMIHOSTING, model=SSE_320)
    assert "copied 16" in done.stdout
    assert f"Ethos-U85 with {macs} MACs" in done.stderr


@pytest.mark.parametrize(
    "case",
    cases(
        (U65, {}, [f"{MISMATCH}product=1, optimizer.product=0", "macs_per_cc=9, optimizer"]),
        (U55, {"CONFIG": "0x08001807"}, [f"{MISMATCH}custom_dma=0, optimizer.custom_dma=1"]),
        (U55, {"FAST_BYTES": 32}, ["E: Fast memory area too small. fast_memory_size=32, "]),
        (U55, {"CUT": 4}, ["the action at byte 28 is cut off"]),
        (U55, {"PLACE": "0x31000008"}, ["E: Base addr 1: 0x31000008 not aligned to 16 bytes"]),
        thorough=(  # tests/sim/gdbstub/test_driver.py has these without a guest
            (
                U55,
                {"ID": "0x20007000"},
                ["E: NPU arch mismatch. npu.arch=1.0.6, optimizer.arch=2.0.0"],
            ),
            (
                U55,
                {"FIRST": "0x31504F44"},
                ["E: Custom Operator Payload: 827346756 is not correct"],
            ),
            (U55, {"CUT": 1}, ["E: custom_data_size=0x53 not a multiple of 4"]),
            (U55, {"CUT": 56}, ["there is no command stream in it"]),
        ),
    ),
)
def test_what_the_driver_refuses(
    fvp: Fvp, guest: Guest, case: tuple[str, dict[str, object], list[str]]
) -> None:
    """In the real driver's words, which scripts look for, and with its result."""
    model, macros, lines = case
    done = fvp("-a", guest(source=NPU_GUEST, **macros), *semihosting(), model=model)
    for line in lines:
        assert line in done.stdout
    assert "E: Failed to invoke inference. (stand-in)" in done.stdout
    assert "result -1" in done.stdout
    assert "copied 0" in done.stdout


def test_a_stream_without_a_configuration_runs(fvp: Fvp, guest: Guest) -> None:
    elf = guest(source=NPU_GUEST, WITHOUT_CONFIG=1)
    assert "copied 16" in fvp("-a", elf, *semihosting(), model=U65).stdout


def test_a_fault_of_the_npu(fvp: Fvp, guest: Guest) -> None:
    """An access outside of its region stops the NPU and not the stand-in."""
    done = fvp("-a", guest(source=NPU_GUEST, TO=56), *semihosting())
    assert "E: the NPU stand-in stopped: " in done.stdout
    assert "region 1 (scratch) has 0x40 bytes" in done.stdout
    assert "E: NPU error(s) occured during inference. (stand-in)" in done.stdout
    assert "E: NPU status=0x00000006, qread=" in done.stdout
    assert "cmd_end_reached=0" in done.stdout
    assert "result -1" in done.stdout


@pytest.mark.parametrize(
    ("macros", "message"),
    [
        ({"WITHOUT_INIT": 1}, "called ethosu_reserve_driver before ethosu_init"),
        ({"SIZES": 0}, "the program gives no sizes of its base addresses"),
        ({"SIZES": "(void*)0xF0000000"}, "gave its NPU's driver 12 bytes at 0xf0000000, and not"),
    ],
)
def test_what_cannot_be_done_ends_the_run(
    fvp: Fvp, guest: Guest, macros: dict[str, object], message: str
) -> None:
    """A guest that waits for an answer would wait for ever."""
    done = fvp("-a", guest(source=NPU_GUEST, **macros), *semihosting())
    assert done.returncode == 1
    assert message in done.stderr


@pytest.mark.parametrize(
    ("model", "macs", "config"),
    [
        (U55, "ethosu.num_macs=64", 0x1006),
        (U65, "ethosu.num_macs=512", 0x10006009),
        (SSE_320, "mps4_board.subsystem.ethosu.num_macs=2048", 0x2000261B),
    ],
)
def test_the_doorbell(
    standin_directory: Path, guest: Guest, tmp_path: Path, model: str, macs: str, config: int
) -> None:
    """Programs with a doorbell are built for the stand-in: on SSE-320 too they start in ITCM. The
    command is the installed one, which leaves nothing where it is called."""
    enable = SSE_320_SEMIHOSTING[:2] if model == SSE_320 else semihosting()
    elf = guest(source=NPU_GUEST, DOORBELL=1)
    argv = [standin_directory / model, "-a", elf, "-C", macs, *enable]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[:6] == [
        "answered 1",
        "result 0",
        "answered 2",
        "result 0",
        f"config {config}",
        "copied 16",
    ]
    assert "reached by its doorbell" in done.stderr
    assert not list(tmp_path.iterdir())


def test_fifos_of_a_killed_run_are_no_obstacle(
    fvp: Fvp, guest: Guest, tmp_path: Path, standin_directory: Path
) -> None:
    looping = guest(source=NPU_GUEST, DOORBELL=1, LOOP=1)
    model = subprocess.Popen(
        [standin_directory / U55, "-a", looping, *semihosting()],
        cwd=tmp_path / "cwd",
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert model.stdout is not None
    assert model.stdout.readline() == b"answered 1\n"
    model.kill()
    model.communicate(timeout=30)
    left = list((tmp_path / "cwd").iterdir())
    assert len(left) == 2
    assert all(stat.S_ISFIFO(path.stat().st_mode) for path in left)
    done = fvp("-a", guest(source=NPU_GUEST, DOORBELL=1), *semihosting())
    assert "copied 16" in done.stdout


def test_a_file_in_the_fifos_place_is_not_removed(fvp: Fvp, guest: Guest, tmp_path: Path) -> None:
    precious = tmp_path / "cwd" / "npu-request"
    precious.write_text("mine")
    done = fvp("-a", guest(source=NPU_GUEST, DOORBELL=1), *semihosting())
    assert done.returncode == 1
    assert "npu-request exists and is not a FIFO" in done.stderr
    assert precious.read_text() == "mine"


def test_a_program_without_a_driver_gets_no_npu(fvp: Fvp, guest: Guest, tmp_path: Path) -> None:
    done = fvp("-a", guest(), *semihosting())
    assert "which the program has no driver for" in done.stderr


@pytest.mark.parametrize("how", [{"DOORBELL": 1}, {}])
def test_without_numpy_the_npu_is_named(
    guest: Guest, tmp_path: Path, how: dict[str, object]
) -> None:
    """The other packages are there, but for the filter's, which CI requires."""
    packages = tmp_path / "packages"
    packages.mkdir()
    for name in ("pexpect", "ptyprocess", "yaml"):
        (packages / name).symlink_to(Path(np.__file__).parents[1] / name)
    code = f"import sys; sys.path.append({str(packages)!r}); {start_code(U55)}"
    elf = guest(source=NPU_GUEST, **how)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, "-a", elf, *semihosting()],
        cwd=tmp_path,
        env={**os.environ, REQUIRE: "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "the NPU model cannot be loaded: No module named 'numpy'" in done.stderr
