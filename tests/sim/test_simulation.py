"""The simulate stage as a whole: real programs on the host, real firmware on QEMU."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from harness.config.loading import load_target, target_directories
from harness.config.target import Target
from harness.core.errors import InfraError
from harness.core.verdict import Verdict
from harness.sim import simulator_process
from harness.sim.run_files import executorch_arguments, runner_arguments
from harness.sim.simulation import simulate
from harness.sim.simulator import pick
from harness.sim.transcript import Transcript
from harness.system import confine
from harness.system.confine import NotConfined, why_not
from harness.system.files import DiskError
from harness.system.process import Stop
from harness.system.quota import Excess

needs_bwrap = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


@dataclass(frozen=True)
class Elf:
    """As much of a Firmware as simulate needs."""

    elf: Path
    one_set_per_process: bool = False
    takes_flags: bool = False
    program: str = ""
    root: Path | None = None


@pytest.fixture
def native() -> Target:
    return load_target("host", target_directories({}))


@pytest.fixture
def board() -> Target:
    return load_target("corstone-300-m55", target_directories({}))


def test_runner_arguments() -> None:
    """Each ``-o`` starts an input set; a bundled program keeps its suffix."""
    assert runner_arguments(Path("x/ds_cnn.pte"), [1]) == (
        *("executor_runner", "-m", "program.pte"),
        *("-o", "s0", "-i", "s0i0.bin"),
    )
    assert runner_arguments(Path("m.bpte"), [2, 0], profile=True) == (
        *("executor_runner", "-m", "program.bpte", "-p"),
        *("-o", "s0", "-i", "s0i0.bin", "-i", "s0i1.bin"),
        *("-o", "s1"),
    )


def test_executorch_arguments() -> None:
    """As ExecuTorch's runner reads them: one input set, and all of it in pairs."""
    assert executorch_arguments(Path("x/ds_cnn.pte"), 3, 2) == (
        *("executor_runner", "-m", "program.pte"),
        *("-i", "s3i0.bin", "-i", "s3i1.bin", "-o", "s3"),
    )


@pytest.fixture
def script(tmp_path: Path, native: Target) -> Callable[..., Transcript]:
    """Run a shell script in place of the native runner, with two input sets."""
    program = tmp_path / "model.pte"
    program.write_bytes(b"program")
    inputs = []
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(name.encode())
        inputs.append([tmp_path / name])

    def run(
        text: str, target: Target = native, run_dir: str = "run", *, one_set: bool = False
    ) -> Transcript:
        elf = tmp_path / "runner"
        elf.write_text(f"#!/bin/sh\n{text}\n")
        elf.chmod(0o755)
        firmware = Elf(elf, one_set_per_process=one_set)
        return simulate(pick(target), firmware, program, inputs, run_dir=tmp_path / run_dir)

    return run


def how(transcript: Transcript) -> tuple[Stop, int | None, int | None]:
    ending = transcript.ending
    return ending.stop, ending.exit_status, ending.signal


def test_run_directory(script: Callable[..., Transcript]) -> None:
    """The guest finds the program and its inputs under short names; what it leaves is
    in its directory."""
    transcript = script('echo "$@"; ls; cat program.pte s0i0.bin s1i0.bin >s0-0.bin; exit 3')
    said = transcript.console().decode().splitlines()
    assert said[0] == "-m program.pte -o s0 -i s0i0.bin -o s1 -i s1i0.bin"
    assert said[1:] == ["program.pte", "s0i0.bin", "s1i0.bin"]
    assert (transcript.ending.stop, transcript.ending.exit_status, transcript.ending.signal) == (
        "exited",
        3,
        None,
    )
    assert (transcript.run_dir / "work" / "s0-0.bin").read_bytes() == b"programab"
    assert transcript.simulator.name == "host"


def test_when_a_line_came(script: Callable[..., Transcript]) -> None:
    """Of several writes, which are kept with their times: the one that ended the line."""
    said = replace(
        script('printf "one\\ntwo\\nthree"'),
        console_times=((2, 0.5), (5, 1.0), (9, 2.0), (13, 3.0)),
    )
    assert said.console() == b"one\ntwo\nthree"
    assert [said.came(line) for line in (1, 2, None)] == [1.0, 2.0, 3.0]
    assert replace(said, console_times=(), ending=replace(said.ending, seconds=4.0)).came(1) == 4.0


def test_inputs_cannot_be_changed_through_the_run(
    script: Callable[..., Transcript], tmp_path: Path
) -> None:
    """The guest has copies: what it does to them does not reach the cache they come from."""
    script("echo spoilt > program.pte; echo spoilt > s0i0.bin")
    assert (tmp_path / "model.pte").read_bytes() == b"program"
    assert (tmp_path / "a").read_bytes() == b"a"


def test_used_directory_is_refused(script: Callable[..., Transcript]) -> None:
    """Outputs of an earlier run could be taken for this one's."""
    script("exit 0")
    with pytest.raises(InfraError, match="preparing the run directory: File exists"):
        script("exit 0")


def test_signal_and_limits(script: Callable[..., Transcript], native: Target) -> None:
    """A signal is reported as one also through bubblewrap; a limit leaves no status."""
    crashed = script("kill -SEGV $$", run_dir="crashed")
    assert (crashed.ending.stop, crashed.ending.exit_status, crashed.ending.signal) == (
        "exited",
        None,
        signal.SIGSEGV,
    )
    short = replace(native, limits=native.limits.scaled(0.005))
    late = script("while :; do :; done", target=short, run_dir="late")
    assert (late.ending.stop, late.ending.exit_status, late.ending.signal) == (
        "deadline",
        None,
        None,
    )


MARKER = 'echo "I [executorch:x.cpp:1 main()] Program complete, exiting."'


def test_a_process_for_each_set(script: Callable[..., Transcript]) -> None:
    """One after the other in one directory and on one console; each finds its own inputs, as they
    were, and the program."""
    transcript = script(
        f'echo "$@"; cat program.pte "$4"; echo; echo spoilt > program.pte; cp "$4" "$6-0.bin"; '
        f"{MARKER}",
        one_set=True,
    )
    said = transcript.console().decode().splitlines()
    assert said[:2] == ["-m program.pte -i s0i0.bin -o s0", "programa"]
    assert said[3:5] == ["-m program.pte -i s1i0.bin -o s1", "programb"]
    first = transcript.console().index(b"\n", transcript.console().index(b"exiting")) + 1
    assert transcript.starts == (0, first)
    work = transcript.run_dir / "work"
    assert [path.name for path in sorted(work.glob("*.bin"))] == ["s0-0.bin", "s1-0.bin"]
    assert transcript.ending.console_bytes == len(transcript.console())
    sizes, seconds = zip(*transcript.console_times, strict=True)
    assert sizes[-1] == transcript.ending.console_bytes
    assert [*seconds, transcript.ending.seconds] == sorted([*seconds, transcript.ending.seconds])
    assert transcript.simulator.argv[-1] == "s1"
    assert transcript.observation is not None
    assert transcript.observation.completed == (3, 6)


@pytest.mark.parametrize(
    ("end", "status", "signalled"),
    [
        (f"{MARKER}; exit 3", 3, None),
        (f"{MARKER}; kill -SEGV $$", None, signal.SIGSEGV),
        ("exit 0", 0, None),
        (f'echo "E [executorch:x.cpp:1 main()] broken"; {MARKER}', 0, None),
    ],
    ids=["exit status", "signal", "no end marker", "an error before a good end"],
)
def test_the_first_process_that_does_not_end_well_is_the_last(
    script: Callable[..., Transcript], end: str, status: int | None, signalled: int | None
) -> None:
    transcript = script(end, one_set=True)
    assert transcript.starts == (0,)
    assert (transcript.ending.exit_status, transcript.ending.signal) == (status, signalled)
    assert transcript.simulator.argv[-1] == "s0"


def test_environment_is_our_own(
    script: Callable[..., Transcript], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the caller's environment leaks in, and the record has all of it."""
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    transcript = script("env")
    assert b"SECRET_TOKEN" not in transcript.console()
    names = {line.split("=")[0] for line in transcript.console().decode().splitlines()}
    assert set(transcript.simulator.environment) <= names
    assert names - set(transcript.simulator.environment) <= {"PWD", "_", "SHLVL", "OLDPWD"}


@needs_bwrap
def test_record_says_confined(script: Callable[..., Transcript]) -> None:
    transcript = script(f"echo x > {Path.home()}/hil-test; echo x > /usr/lib/hil; exit 0")
    assert transcript.simulator.confined
    assert transcript.simulator.unconfined_reason is None
    assert b"Read-only" in transcript.console()


def test_disk_full_is_infrastructure(script: Callable[..., Transcript], tmp_path: Path) -> None:
    """A console that cannot be written ends the run as what it is."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "console.log").symlink_to("/dev/full")
    with pytest.raises(DiskError, match="No space left on device") as caught:
        script("yes | head -c 100000", run_dir="full")
    assert caught.value.errno == "ENOSPC"


def test_missing_program_is_infrastructure(native: Target, tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="preparing the run directory: No such file"):
        simulate(
            pick(native), Elf(tmp_path), tmp_path / "absent.pte", [[]], run_dir=tmp_path / "run"
        )


@needs_bwrap
def test_firmware_that_cannot_be_executed(native: Target, tmp_path: Path) -> None:
    """bubblewrap's own failure is no run of the target."""
    program = tmp_path / "p.pte"
    program.write_bytes(b"")
    with pytest.raises(InfraError, match="could not be confined: bwrap: execvp") as caught:
        simulate(pick(native), Elf(program), program, [[]], run_dir=tmp_path / "run")
    assert caught.value.path == str(tmp_path / "run" / "console.log")


# Arm semihosting specification 2.0: the operation in r0, its parameter block in r1, BKPT 0xAB.
FIRMWARE = """
.syntax unified
.thumb
.section .vectors, "a"
.word 0x30008000, start + 1
.text
start:
  ldr r1, =text
  movs r0, #4        @ SYS_WRITE0
  bkpt 0xab
  ldr r1, =command
  movs r0, #0x15     @ SYS_GET_CMDLINE
  bkpt 0xab
  ldr r1, =buffer
  movs r0, #4
  bkpt 0xab
  ldr r1, =file
  movs r0, #1        @ SYS_OPEN
  bkpt 0xab
  ldr r1, =stop
  movs r0, #0x20     @ SYS_EXIT_EXTENDED
  bkpt 0xab
  b .
.align 2
command: .word buffer, 200
file: .word name, 4, 8   @ mode 4: "w"
stop: .word 0x20026, {status}
text: .asciz "hello\\n"
name: .asciz "s0-0.bin"
.bss
buffer: .space 200
"""


@pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
@pytest.mark.parametrize("status", [0, 9])
def test_qemu_for_real(board: Target, tmp_path: Path, status: int) -> None:
    """A firmware of 20 instructions: its text, its command line, its file and its exit status
    come back through semihosting, from inside the confinement."""
    source, elf = tmp_path / "f.S", tmp_path / "f.elf"
    source.write_text(FIRMWARE.replace("{status}", str(status)))
    subprocess.run(
        [
            "arm-none-eabi-gcc",
            "-mcpu=cortex-m55",
            "-nostdlib",
            "-Wl,-Ttext=0x10000100",
            "-Wl,--section-start=.vectors=0x10000000",
            "-Wl,-Tbss=0x30000000",
            "-Wl,-e,start",
            "-o",
            elf,
            source,
        ],
        check=True,
    )
    program = tmp_path / "p.pte"
    program.write_bytes(b"x")
    transcript = simulate(
        pick(board, "qemu"), Elf(elf), program, [[]], run_dir=tmp_path / "run", limit_factor=0.1
    )
    said = transcript.console().decode()
    assert (transcript.ending.stop, transcript.ending.exit_status) == ("exited", status), said
    assert said == "hello\nexecutor_runner -m program.pte -o s0"
    assert (transcript.run_dir / "work" / "s0-0.bin").is_file()
    assert transcript.simulator.version[0].isdigit()
    assert os.path.basename(transcript.simulator.argv[0]) == "qemu-system-arm"


def test_what_cannot_be_confined_is_not_run_where_that_is_required(
    script: Callable[..., Transcript], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when only a part of the walls lacks; otherwise it is run, and the record says so."""
    monkeypatch.setattr(
        simulator_process, "what_lacks", lambda: "no filter for system calls: planted"
    )
    monkeypatch.setenv("HIL_REQUIRE_CONFINEMENT", "1")
    with pytest.raises(NotConfined, match="no filter for system calls: planted") as caught:
        script("exit 0")
    assert "HIL_REQUIRE_CONFINEMENT=0" in (caught.value.hint or "")
    assert caught.value.verdict is Verdict.INFRA


def test_a_lack_is_in_the_record(
    script: Callable[..., Transcript], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIL_REQUIRE_CONFINEMENT", "0")
    monkeypatch.setattr(confine, "_probe", lambda: (False, "planted"))
    transcript = script("exit 0")
    assert not transcript.simulator.confined
    assert transcript.simulator.unconfined_reason == "planted"


def test_files_of_a_guest_that_wrote_too_many_are_not_kept(
    script: Callable[..., Transcript],
) -> None:
    transcript = script("i=0; while [ $i -lt 5000 ]; do : > f$i; i=$((i+1)); done; sleep 100")
    assert (transcript.ending.stop, transcript.ending.excess) == (Stop.OUTPUT_LIMIT, Excess.FILES)
    assert not list((transcript.run_dir / "work").glob("f*"))


def test_folders_of_a_guest_deeper_than_a_path_are_not_kept(
    script: Callable[..., Transcript],
) -> None:
    """A folder that nobody can look into by its path, and what is in it."""
    name = "d" * 250
    deeper = f"mkdir {name}; cd {name}; head -c 10000 /dev/zero > f; chmod 0300 ."
    transcript = script(f"i=0; while [ $i -lt 30 ]; do {deeper}; i=$((i+1)); done")
    assert (transcript.ending.stop, transcript.ending.excess) == (
        Stop.OUTPUT_LIMIT,
        Excess.UNCOUNTED,
    )
    assert not (transcript.run_dir / "work" / name).exists()
