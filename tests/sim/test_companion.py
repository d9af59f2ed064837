"""Programs of other people on QEMU: served as the FVP does, and recorded as our own are."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from harness.config.loading import load_target, target_directories
from harness.config.target import Limits, Target
from harness.core.errors import UsageError
from harness.core.judgement import Reason
from harness.core.verdict import Verdict
from harness.judge.ending import execution_cause
from harness.sim import qemu, qemu_command
from harness.sim.companion import npu_of, served
from harness.sim.gdbstub.host_calls import HeapInfo, HostCalls
from harness.sim.simulation import simulate
from harness.sim.simulator import GuestJob, NpuResult, NpuUse, pick
from harness.sim.transcript import Transcript
from harness.system.process import Stop
from tests.sim.gdbstub import guests

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
U55, U85, M55 = "corstone-300-u55-128", "corstone-320-u85-256", "corstone-300-m55"
U85_256 = {"CONFIG": "0x20000118", "ID": "0x20007000"}
LIMITS = Limits(host=60.0, stall=20.0)


@dataclass(frozen=True)
class Elf:
    elf: Path
    key: str = "0" * 32
    one_set_per_process: bool = False
    takes_flags: bool = False
    program: str = ""
    root: Path | None = None


def target(name: str) -> Target:
    return load_target(name, target_directories({}))


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Transcript]:
    (tmp_path / "m.pte").write_bytes(b"model")

    def on(name: str, elf: Path, **limits: float) -> Transcript:
        board = replace(target(name), limits=replace_limits(**limits))
        return simulate(
            pick(board, "qemu"), Elf(elf), tmp_path / "m.pte", [[]], run_dir=tmp_path / "run"
        )

    return on


def replace_limits(**limits: float) -> Limits:
    return replace(LIMITS, **limits)


def guest(folder: Path, **macros: object) -> Path:
    return guests.bare(folder / "guest.elf", guests.NPU_GUEST, **macros)


def said(transcript: Transcript) -> list[str]:
    return transcript.console().decode().splitlines()


def test_newlibs_start_up(run: Callable[..., Transcript], tmp_path: Path) -> None:
    """The FVP's answer for this target, and the program's memory is where it was linked."""
    transcript = run(M55, guests.newlib(tmp_path / "e"))
    assert said(transcript) == [
        "block 0 0 0 20700000",
        "errors 0 1",
        "arguments 5 s0",
        "malloc behind the program",
        "file 1",
    ]
    assert (transcript.run_dir / "work" / "out.txt").is_file()
    assert (transcript.ending.stop, transcript.ending.exit_status, transcript.npu) == (
        Stop.EXITED,
        0,
        None,
    )
    assert "-gdb" in transcript.simulator.argv


def test_only_early_calls_stop_the_program(run: Callable[..., Transcript], tmp_path: Path) -> None:
    """Later ones are QEMU's to answer: its stack is not 0."""
    lines = said(run(M55, guests.newlib(tmp_path / "e", LATE=100)))
    assert lines[0].startswith("block ")
    assert lines[0] != "block 0 0 0 20700000"
    assert lines[3:] == ["malloc behind the program", "file 1"]


@pytest.mark.parametrize("status", [255, 134])
def test_a_status_is_the_programs_own(
    run: Callable[..., Transcript], tmp_path: Path, status: int
) -> None:
    """Under bubblewrap 134 is also a QEMU that aborted; the debugger interface knows better."""
    transcript = run(M55, guests.newlib(tmp_path / "e", STATUS=status))
    assert (transcript.ending.stop, transcript.ending.exit_status) == (Stop.EXITED, status)
    assert transcript.ending.signal is None
    assert transcript.observation is not None
    finding = execution_cause(transcript.observation, transcript.ending, None)
    assert finding is not None
    assert (finding[0], finding[1].kind) == (Verdict.FAULT, Reason.EXIT_STATUS)


@pytest.mark.parametrize(
    ("name", "place", "macros"),
    [(U55, "0x31000000", {}), (U55, "0x70010000", {}), (U85, "0x31000000", U85_256)],
)
def test_the_drivers_calls_reach_the_model(
    run: Callable[..., Transcript], tmp_path: Path, name: str, place: str, macros: dict[str, object]
) -> None:
    """In memory that is shared and in memory that is not; the hooks are called, and the record
    has the jobs as it has our own runner's."""
    transcript = run(name, guest(tmp_path, PLACE=place, **macros))
    lines = said(transcript)
    assert lines[:2] == ["init 0", "reserved 1"]
    assert "PMU counters read 0" in lines[2]
    assert lines[3:] == [
        "result 0",
        "result 0",
        "fast 1",
        "begun 2",
        "ended 2",
        "wrong 0",
        "cycles 1",
        "copied 16",
    ]
    assert transcript.npu == NpuUse(2)
    assert transcript.ending.exit_status == 0
    assert [path.name for path in (transcript.run_dir / "work").iterdir()] == ["program.pte"]


def test_a_stream_for_another_npu(run: Callable[..., Transcript], tmp_path: Path) -> None:
    """In the driver's own words, in their place on the console."""
    transcript = run(U55, guest(tmp_path, CONFIG="0x3008"))
    lines = said(transcript)
    mismatch = "E: NPU config mismatch. npu.macs_per_cc=7, optimizer.macs_per_cc=8 (stand-in)"
    assert lines.index(mismatch) < lines.index("result -1")
    assert transcript.npu == NpuUse(0)


def test_what_stops_the_npu_is_in_the_record(
    run: Callable[..., Transcript], tmp_path: Path
) -> None:
    npu = run(U55, guest(tmp_path, TO=56)).npu
    assert npu is not None
    assert npu.stop is not None
    assert (npu.stop.job, npu.stop.result) == (1, NpuResult.FAULT)
    assert "region 1 (scratch) has 0x40 bytes" in npu.stop.message


def test_a_target_without_an_npu_refuses(run: Callable[..., Transcript], tmp_path: Path) -> None:
    """ExecuTorch's Cortex-M runner has the driver in it, and a delegate has no place on it."""
    transcript = run(M55, guest(tmp_path))
    assert "E: the NPU stand-in refused: the board has no NPU (stand-in)" in said(transcript)
    assert transcript.npu is not None
    assert transcript.npu.stop is not None
    assert transcript.npu.stop.result is NpuResult.REFUSED


@pytest.mark.parametrize(
    ("macros", "message"),
    [
        ({"WITHOUT_INIT": 1}, "called ethosu_reserve_driver before ethosu_init"),
        ({"SIZES": "(void*)0xF0000000"}, "12 bytes at 0xf0000000, and not all of them are memory"),
    ],
)
def test_a_guest_that_would_wait_for_ever_is_ended(
    run: Callable[..., Transcript], tmp_path: Path, macros: dict[str, object], message: str
) -> None:
    transcript = run(U55, guest(tmp_path, **macros))
    assert transcript.ending.stop is Stop.EXITED
    assert transcript.npu is not None
    assert transcript.npu.stop is not None
    assert transcript.npu.stop.result is NpuResult.REFUSED
    assert message in transcript.npu.stop.message


def test_a_stripped_driver_is_refused_before_the_start(
    run: Callable[..., Transcript], tmp_path: Path
) -> None:
    elf = guests.stripped(guest(tmp_path, MESSAGES=1))
    with pytest.raises(UsageError) as caught:
        run(U55, elf)
    assert (caught.value.kind, caught.value.path) == ("symbols_missing", str(elf))
    assert not (tmp_path / "run").exists()


def test_nothing_is_left_of_a_guest_that_is_killed(
    run: Callable[..., Transcript], tmp_path: Path
) -> None:
    """Our limit ends QEMU while it runs: no thread waits for it, no socket stays."""
    before = threading.active_count()
    transcript = run(U55, guest(tmp_path, ENDLESS=1), host=1.5)
    assert transcript.ending.stop is Stop.DEADLINE
    assert threading.active_count() == before
    assert sorted(path.name for path in (tmp_path / "run" / "work").iterdir()) == ["program.pte"]


def test_a_qemu_that_never_comes_is_not_waited_for(tmp_path: Path) -> None:
    before, board = threading.active_count(), target(U55).on(qemu.SIMULATOR.name)
    settings = board.simulators.qemu
    assert settings is not None
    program = HostCalls(functions={"ethosu_init": 16})
    npu = npu_of(board.npu, settings.shared_memory)
    with served(npu, program, tmp_path) as (_, companions):
        assert any("chardev:gdb" in one.words for one in companions)
    assert all(one.status is None for one in companions)
    assert threading.active_count() == before
    assert not os.listdir(tmp_path)


def test_our_own_runner_is_started_as_ever(tmp_path: Path) -> None:
    board = target(U55).on(qemu.SIMULATOR.name)
    settings, tool = board.simulators.qemu, qemu.SIMULATOR.require(board)
    assert settings is not None
    elf = guest(tmp_path, DOORBELL=1)
    launch = qemu.SIMULATOR.launch(board, tool, GuestJob(elf, ("runner",), tmp_path, LIMITS))
    assert launch.argv == qemu_command.argv(str(tool.path), settings, elf, ("runner",))


def test_the_heap_is_what_the_targets_fvp_says() -> None:
    """Both boards' parameters have names of their own; a target without an FVP has zeros."""
    assert (
        qemu.heap_info(target(M55)) == qemu.heap_info(target(U85)) == HeapInfo(0, 0, 0, 0x20700000)
    )
    assert qemu.heap_info(target("host")) == HeapInfo(0, 0, 0, 0)
