"""The NPU's model in a process of its own, which can be ended whatever it is doing.

A guest decides what the model works on, and for how long. Here that is somebody else's time and
memory: ``stop`` ends a job at once, and a job that kills its process kills nothing else.

A request is a length (u32) and so many bytes of JSON: for the command stream and each region its
offset in the shared memory and its size, or null; where the offset is negative the bytes follow.
The answer is a length and JSON again, and, after a job that was done, the bytes of all that was
not shared.
"""

from __future__ import annotations

import json
import mmap
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from harness.core.errors import InfraError
from harness.npu.doorbell import Outcome, Result, SharedMemory
from harness.system import toolchain

_ROOT = Path(__file__).parents[2]
_MEMORY = 6 << 30  # bytes of the child's own: a program decides how much it asks for
_CHILD = (
    "import json, sys; given = json.loads(sys.argv[1]); sys.path[:] = given['path']; "
    "from harness.npu.npu_process import work; work(given, sys.argv[2], int(sys.argv[3]))"
)


class NpuModelFailed(InfraError):
    """The model itself failed, or its process."""

    kind = "npu_model"


# Of a job that was not done to its end, for somebody called ``stop``.
STOPPED = Outcome(Result.REFUSED, "the run was ended", status=0)


class NpuProcess:
    """A ``Run`` whose work is done elsewhere. Views of ``memory`` are worked on in place; others
    are copied there and back."""

    def __init__(self, product: str, macs: int, memory: SharedMemory | None) -> None:
        self._memory = memory
        self._stopped = False
        shared = () if memory is None else (memory.descriptor,)
        size = 0 if memory is None else memory.size
        path = [path for path in (str(_ROOT), *sys.path) if path]
        given = {"path": path, "memory": shared, "size": size}
        tied = (str(toolchain.locate("setpriv")), "--pdeathsig", "KILL", "--")
        python = (sys.executable, "-I", "-S", "-c")
        self._process = subprocess.Popen(
            [*tied, *python, _CHILD, json.dumps(given), product, str(macs)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=shared,
            start_new_session=True,
        )

    def __call__(self, commands: memoryview, regions: Sequence[memoryview | None]) -> Outcome:
        """Raises NpuModelFailed."""
        if self._stopped:
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
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def __enter__(self) -> NpuProcess:
        return self

    def __exit__(self, *_: object) -> None:
        """When nobody is waiting for a job any more."""
        self.stop()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _asked(
        self,
        process: subprocess.Popen[bytes],
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
        return Outcome(**{**told, "result": Result(told["result"])})

    def _span(self, piece: memoryview) -> tuple[int, int]:
        """Where in the shared memory, or -1; and how many bytes."""
        offset = None if self._memory is None else self._memory.offset(piece)
        return (-1 if offset is None else offset), len(piece)


def _read(process: subprocess.Popen[bytes], size: int) -> bytes:
    assert process.stdout is not None
    data = process.stdout.read(size)
    if len(data) < size:
        raise ConnectionError
    return data


def work(given: dict[str, Any], product: str, macs: int) -> None:
    """The child's side: does one job after another until there are no more."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed is no answer
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    shared = memoryview(b"")
    for descriptor in given["memory"]:
        shared = memoryview(mmap.mmap(descriptor, given["size"]))
    run = _model(product, macs)
    while head := requests.read(4):
        spans = json.loads(requests.read(int.from_bytes(head, "little")))
        pieces, copied = _pieces(spans, requests, shared)
        try:
            outcome = run(pieces[0], pieces[1:])
            told = asdict(outcome)
        except ImportError as error:
            told, copied = {"failed": f"the NPU model cannot be loaded: {error}"}, []
        except Exception as error:  # a boundary: whoever asked is told
            told, copied = {"failed": f"{type(error).__name__}: {error}"}, []
        text = json.dumps(told).encode()
        answers.write(len(text).to_bytes(4, "little") + text)
        for piece in copied:
            answers.write(piece)
        answers.flush()


def _model(product: str, macs: int) -> Callable[..., Any]:
    """Loaded before the first job comes, which is told when that went wrong."""
    try:
        from harness.npu.model import npu

        return npu(product, macs)
    except Exception as error:
        failure = error

    def failed(*_: object) -> None:
        raise failure

    return failed


def _pieces(
    spans: list[tuple[int, int] | None], requests: BinaryIO, shared: memoryview
) -> tuple[list[memoryview | None], list[memoryview]]:
    """The command stream and the regions; and those of them that came with the request."""
    pieces: list[memoryview | None] = []
    copied: list[memoryview] = []
    for span in spans:
        if span is None:
            pieces.append(None)
        elif span[0] < 0:
            copied.append(memoryview(bytearray(requests.read(span[1]))))
            pieces.append(copied[-1])
        else:
            pieces.append(shared[span[0] : span[0] + span[1]])
    return pieces, copied
