"""A run on a Linux board: log in on its console, send the files by ssh, run, fetch the outputs.

An FVP that boots Linux (``linux_fvp``) and hardware through labgrid (``lab``) are such boards. The
process that drives one works in the run's directory. Only ``ssh``, ``tar``, ``wc`` and a shell are
used, which busybox has.
"""

from __future__ import annotations

import io
import secrets
import shlex
import subprocess
import tarfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.config.schema import Data
from harness.config.target import Limits, Linux, Target
from harness.core.errors import UsageError
from harness.sim.driving_process import BEGAN, STATUS, Reporter, record
from harness.sim.guest.console import ConsoleStream, GuestConsole, GuestProblem
from harness.sim.run_files import is_output
from harness.sim.simulator import GuestJob
from harness.system.quota import QUOTA

COMMANDS = "run.sh"
_RUNNER = "executor_runner"
_STRIPPED = ".stripped"  # the end of the name of the file that a board stores
_REFUSED = 255  # ssh's own exit status (ssh(1))
_RETRY_SECONDS = 1.0  # the ssh server starts at about the same time as the login
_LOST = "the guest's outputs cannot be fetched"
_MOST_HEADER = 100  # bytes of a line of wc


def commands(runner: str, arguments: Sequence[str]) -> bytes:
    """Return the script that the guest's shell runs: the runner's command line."""
    return f"exec {shlex.join((runner, *arguments[1:]))}\n".encode()


def linux_files(job: GuestJob) -> dict[str, bytes]:
    """Files in a run's directory for a board, in addition to program and inputs."""
    return {COMMANDS: commands(f"./{_RUNNER}", job.arguments)}


def stored_runner(elf: Path) -> Path:
    """Return the file that a board stores: without symbols, where the build made one."""
    stripped = elf.with_name(elf.name + _STRIPPED)
    return stripped if stripped.is_file() else elf


@dataclass(frozen=True)
class LinuxJob(Data):
    """A run on a board with Linux.

    ``runner``: its ELF. ``folder``: the run's own on the board, of a name that no other run has:
    what answers there is the board whose console this is."""

    linux: Linux
    limits: Limits
    runner: str
    folder: str


def linux_job(target: Target, job: GuestJob) -> LinuxJob:
    """Raise UsageError for a runner with libraries of its own."""
    linux = target.linux
    assert linux is not None, "asked only of a target with Linux"
    if job.root is not None:
        raise UsageError(
            "this runner needs the C library of ExecuTorch's wheel in the root file system, which "
            "belongs to the board",
            hint="run it on QEMU (--simulator qemu), or the bundled runner here",
        )
    folder = f"{linux.folder}/hil-{secrets.token_hex(4)}"
    return LinuxJob(linux, job.limits, str(stored_runner(job.elf)), folder)


def run_session(
    job: LinuxJob,
    files: Sequence[Path],
    line: ConsoleStream,
    ssh: Callable[[], Sequence[str]],
    report: Reporter,
) -> None:
    """Run the job on a board.

    ``files``: to send besides the runner. ``ssh``: the command that runs another on the board;
    asked when somebody is logged in. Raises GuestProblem, Closed."""
    console = GuestConsole(line, job.linux, job.limits, record)
    console.log_in()
    remote, folder = ssh(), shlex.quote(job.folder)
    _send(remote, job, files)
    if console.command(f"cd {folder}", job.limits.shell):
        raise GuestProblem(f"the guest has no directory {job.folder}")
    report(BEGAN)
    report(f"{STATUS}{console.command(f'sh {COMMANDS}', job.limits.host)}")
    _fetch(remote, folder)
    console.command(f"cd /; rm -rf {folder}; sync", job.limits.shell)


def _send(ssh: Sequence[str], job: LinuxJob, files: Sequence[Path]) -> None:
    """Copy the runner and ``files`` to the board. Raises GuestProblem."""
    packed, folder = io.BytesIO(), shlex.quote(job.folder)
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path, name in ((Path(job.runner), _RUNNER), *((f, f.name) for f in files)):
            archive.add(path, name)
    words = [*ssh, f"mkdir -p {folder} && tar -x -f - -C {folder}"]
    until, out = time.monotonic() + job.limits.shell, subprocess.PIPE
    while True:
        content = packed.getvalue()
        done = subprocess.run(
            words, input=content, stdout=out, stderr=subprocess.STDOUT, check=False
        )
        if done.returncode != _REFUSED:
            break
        if time.monotonic() > until:
            raise GuestProblem(f"the guest refuses ssh: {_last_line(done.stdout)}")
        time.sleep(_RETRY_SECONDS)
    if b"no space left" in done.stdout.lower():
        raise GuestProblem(f"the guest's file system is full at {job.folder}")
    if done.returncode:
        raise GuestProblem(f"the guest refuses the files: {_last_line(done.stdout)}")


def _fetch(ssh: Sequence[str], folder: str) -> None:
    """Write the outputs into the current directory. Raises GuestProblem."""
    each = 'if [ -f "$f" ]; then wc -c "$f" && cat "$f"; fi'
    words = [*ssh, f"cd {folder} && for f in s*-*.bin; do {each}; done"]
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        assert child.stdout is not None
        while header := child.stdout.readline(_MOST_HEADER):
            size, _, name = header.decode("ascii", "replace").strip().partition(" ")
            if not (size.isdigit() and int(size) <= QUOTA.file_bytes and is_output(name)):
                child.kill()
                raise GuestProblem(f"{_LOST}: what it sent is not the runner's")
            content = child.stdout.read(int(size))
            if len(content) < int(size):
                break
            Path(name).write_bytes(content)
    if child.returncode:
        raise GuestProblem(f"{_LOST}: ssh ended with {child.returncode}")


def _last_line(text: bytes) -> str:
    lines = text.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "no reason given"
