"""The NPU's model in a process of its own, which can be ended whatever it is doing.

A guest decides what the model works on, and for how long. Here that is somebody else's time and
memory: ``stop`` ends a job at once, and a job that kills its process kills nothing else.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from harness.core.errors import InfraError
from harness.npu.doorbell import Outcome, Result, SharedMemory
from harness.system import toolchain
from harness.system.locks import die_with_parent

_WORKER = Path(__file__).with_name("npu_worker.py")


class NpuModelFailed(InfraError):
    """The model itself failed, or its process."""

    kind = "npu_model"


# Of a job that was not done to its end, for somebody called ``stop``.
STOPPED = Outcome(Result.REFUSED, "the run was ended", status=0)


class Forked:
    """A fork of this process that does ``work`` between two pipes, and what one asks of a Popen."""

    def __init__(self, work: Callable[[], None], kept: Sequence[int]) -> None:
        """``kept``: the descriptors that it needs besides."""
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            _work_between(theirs_in, theirs_out, parent, work, kept)
        with suppress(PermissionError, ProcessLookupError):  # it does the same, soon
            os.setpgid(self.pid, self.pid)
        os.close(theirs_in)
        os.close(theirs_out)
        self.stdin: BinaryIO = os.fdopen(ours_in, "wb")
        self.stdout: BinaryIO = os.fdopen(ours_out, "rb")
        self._status: int | None = None

    def wait(self) -> int:
        if self._status is None:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._status


def _work_between(
    requests: int, answers: int, parent: int, work: Callable[[], None], kept: Sequence[int]
) -> NoReturn:
    """As the standard input and output of a process group of its own, with no other descriptor."""
    try:
        die_with_parent(parent)
        os.setpgid(0, 0)
        os.dup2(requests, 0)
        os.dup2(answers, 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        ends = sorted((2, *kept, os.sysconf("SC_OPEN_MAX")))
        for low, high in itertools.pairwise(ends):
            os.closerange(low + 1, high)
        sys.stdin = os.fdopen(0, "r", closefd=False)
        work()
    finally:
        os._exit(1)


class NpuProcess:
    """A ``Run`` whose work is done elsewhere. It is started at once, unless ``later``: then with
    the first job. Views of ``memory`` are worked on in place; others are copied there and back."""

    def __init__(
        self,
        product: str,
        macs: int,
        memory: SharedMemory | None,
        packages: Sequence[str] = (),
        *,
        later: bool = False,
        forked: bool = False,
    ) -> None:
        """``packages``: where else the model finds what it imports. ``forked``: nowhere, for this
        process has loaded it, is only loaded for that, and has no second thread yet."""
        self._forked = forked
        self._path = [path for path in (*sys.path, *packages) if path]
        self._words = (product, str(macs))
        self._memory = memory
        self._stopped = False
        self._process: subprocess.Popen[bytes] | Forked | None = None
        if not later:
            self._process = self._started()

    def __call__(self, commands: memoryview, regions: Sequence[memoryview | None]) -> Outcome:
        """Raises NpuModelFailed."""
        if self._process is None and not self._stopped:
            self._process = self._started()
        if self._stopped or self._process is None:
            return STOPPED
        try:
            return self._asked(self._process, commands, regions)
        except (OSError, ValueError) as error:  # ValueError: of a pipe that stop() has closed
            if self._stopped:
                return STOPPED
            status = self._process.wait()
            raise NpuModelFailed(f"its process ended with status {status}") from error

    def stop(self) -> None:
        """End it, and whatever it has started. Nothing of it is left."""
        self._stopped = True
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def __enter__(self) -> NpuProcess:
        return self

    def __exit__(self, *_: object) -> None:
        """When nobody is waiting for a job any more."""
        self.stop()
        for pipe in (self._process.stdin, self._process.stdout) if self._process else ():
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _started(self) -> subprocess.Popen[bytes] | Forked:
        memory = self._memory
        shared = () if memory is None else (memory.descriptor,)
        size = 0 if memory is None else memory.size
        given = {"path": self._path, "memory": shared, "size": size}
        if self._forked:
            from harness.npu.npu_worker import main

            product, macs = self._words
            return Forked(lambda: main(given, product, int(macs)), shared)
        tied = (str(toolchain.locate("setpriv")), "--pdeathsig", "KILL", "--")
        return subprocess.Popen(
            [*tied, sys.executable, "-I", "-S", str(_WORKER), json.dumps(given), *self._words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=shared,
            start_new_session=True,
        )

    def _asked(
        self,
        process: subprocess.Popen[bytes] | Forked,
        commands: memoryview,
        regions: Sequence[memoryview | None],
    ) -> Outcome:
        assert process.stdin is not None
        assert process.stdout is not None
        pieces = [commands, *regions]
        spans = [None if piece is None else self._span(piece) for piece in pieces]
        head = json.dumps(spans).encode()
        process.stdin.write(len(head).to_bytes(4, "little") + head)
        copied = [p for p, s in zip(pieces, spans, strict=True) if p is not None and s and s[0] < 0]
        for piece in copied:
            process.stdin.write(piece)
        process.stdin.flush()
        answer = _read(process, int.from_bytes(_read(process, 4), "little"))
        told: dict[str, Any] = json.loads(answer)
        if "failed" in told:
            raise NpuModelFailed(told["failed"])
        for piece in copied:
            changed = _read(process, len(piece))
            if piece is not commands:
                piece[:] = changed
        return Outcome(Result(told["result"]), told["message"], told["status"], told["qread"])

    def _span(self, piece: memoryview) -> tuple[int, int]:
        """Where in the shared memory, or -1; and how many bytes."""
        offset = None if self._memory is None else self._memory.offset(piece)
        return (-1 if offset is None else offset), len(piece)


def _read(process: subprocess.Popen[bytes] | Forked, size: int) -> bytes:
    assert process.stdout is not None
    data = process.stdout.read(size)
    if len(data) < size:
        raise ConnectionError
    return data
