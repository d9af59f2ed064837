"""Protects what a resident stand-in shares between simulations: what it loaded, nothing else."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.standin.install import packages_of_npu
from harness.standin.resident import PLACE, resident
from tests.standin.conftest import U55, Guest, semihosting


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    with resident(packages_of_npu(), os.environ) as given:
        yield given


UART0 = ("-C", "mps3_board.uart0.out_file=-")


def started(directory: Path, place: str | None, *words: object) -> subprocess.Popen[bytes]:
    environment = {**os.environ, **({} if place is None else {PLACE: place})}
    return subprocess.Popen(
        [directory / U55, *map(str, words)],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_it_does_what_the_command_does_alone(
    standin_directory: Path, place: str, guest: Guest, tmp_path: Path
) -> None:
    """Both streams, the status, the directory and the environment of whoever asks."""
    (tmp_path / ":semihosting-features").write_bytes(b"SHFB\x01")
    (tmp_path / "in.bin").write_bytes(b"abcd")
    elf = guest(ADD=1, STATUS=7)
    found = []
    for where in (None, place, "hil-nobody-listens-here"):
        process = started(standin_directory, where, *semihosting(tmp_path), "-a", elf)
        out, err = process.communicate(timeout=60)
        found.append((process.returncode, out, err, (tmp_path / "out.bin").read_bytes()))
        (tmp_path / "out.bin").unlink()
    assert found[0][0] == 7
    assert found[0][3] == b"bcde"
    assert found[1:] == [found[0]] * 2
    process = started(standin_directory, place, "-a", elf, "--no-such-option")
    assert b"--no-such-option" in process.communicate(timeout=60)[1]
    assert process.returncode == 1


def test_a_simulation_ends_with_whoever_asked(
    standin_directory: Path, place: str, guest: Guest
) -> None:
    """Standard output is at its end only when the last process that has it is gone."""
    process = started(standin_directory, place, *UART0, "-a", guest(LOOP=1))
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.read(5) == b"hello"
    process.kill()
    process.wait()
    for stream in (process.stdout, process.stderr):
        assert select.select([stream], [], [], 60)[0]
        stream.read()
        stream.close()


def test_nothing_is_left_of_a_resident_that_is_killed(
    standin_directory: Path, guest: Guest
) -> None:
    """Its simulations end with it, and whoever waits for one is told."""
    with resident(packages_of_npu(), os.environ) as given:
        process = started(standin_directory, given, *UART0, "-a", guest(LOOP=1))
        assert process.stdout is not None
        assert process.stdout.read(5) == b"hello"
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        own = [int(c) for c in children if given.encode() in _words(int(c))]
        os.kill(own[0], signal.SIGKILL)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 75
    assert b"the resident stand-in" in said.splitlines()[-1]


def _words(process: int) -> list[bytes]:
    return Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
