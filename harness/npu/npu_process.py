"""Runs the NPU's model in a process of its own, which can be ended at any time.

The guest decides what the model computes and how long. In its own process ``stop`` ends a job at
once, and a job that kills the process kills nothing else.

A request is pickled: for the command stream and each region its offset in the shared memory and its
size, or its bytes, or None. The answer is JSON, as the child runs what the guest made, followed
after a finished job by the bytes of everything that is not shared.
"""

from __future__ import annotations

import json
import mmap
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from harness.core.errors import InfraError
from harness.npu.doorbell import Outcome, Result, SharedMemory
from harness.system.call import TiedProcess

_ROOT = Path(__file__).parents[2]
_MEMORY = 6 << 30  # bytes of the child's own: a program decides how much it asks for
_CHILD = (
    "import json, sys; given = json.loads(sys.argv[1]); sys.path[:] = given['path']; "
    "from harness.npu.npu_process import work; work(given, sys.argv[2], int(sys.argv[3]))"
)


class NpuModelFailed(InfraError):
    """The model itself failed, or its process."""

    kind = "npu_model"


# The outcome of a job that ``stop`` ended.
STOPPED = Outcome(Result.REFUSED, "the run was ended", status=0)


class NpuProcess:
    """A ``Run`` in another process, in place on ``memory``; other buffers are copied."""

    def __init__(self, product: str, macs: int, memory: SharedMemory | None) -> None:
        self._memory = memory
        self._stopped = False
        shared = () if memory is None else (memory.descriptor,)
        size = 0 if memory is None else memory.size
        path = [path for path in (str(_ROOT), *sys.path) if path]
        self._connection, theirs = Pipe()
        given = {"path": path, "jobs": theirs.fileno(), "memory": shared, "size": size}
        python = (sys.executable, "-I", "-S", "-c")
        with theirs:
            self._process = TiedProcess(
                [*python, _CHILD, json.dumps(given), product, str(macs)],
                (theirs.fileno(), *shared),
                stdout=subprocess.DEVNULL,  # printed text is not an answer
                stderr=subprocess.DEVNULL,
            )

    def __call__(self, commands: memoryview, regions: Sequence[memoryview | None]) -> Outcome:
        """Run a command stream in the process. Raises NpuModelFailed."""
        if self._stopped:
            return STOPPED
        try:
            return self._asked(commands, regions)
        except (OSError, EOFError) as error:
            if self._stopped:
                return STOPPED
            status = self._process.wait()
            raise NpuModelFailed(f"its process ended with status {status}") from error

    def stop(self) -> None:
        """End the process and its children."""
        self._stopped = True
        self._process.end()

    def __enter__(self) -> NpuProcess:
        return self

    def __exit__(self, *_: object) -> None:
        """Call it when no thread waits for a job."""
        self.stop()
        self._connection.close()

    def _asked(self, commands: memoryview, regions: Sequence[memoryview | None]) -> Outcome:
        pieces = (commands, *regions)
        spans = [self._span(piece) for piece in pieces]
        self._connection.send(spans)
        told: dict[str, Any] = json.loads(self._connection.recv_bytes())
        if "failed" in told:
            raise NpuModelFailed(told["failed"])
        for piece, span in zip(pieces, spans, strict=True):
            if piece is not None and isinstance(span, bytes):
                changed = self._connection.recv_bytes()
                if piece is not commands:
                    piece[:] = changed
        return Outcome(**{**told, "result": Result(told["result"])})

    def _span(self, piece: memoryview | None) -> tuple[int, int] | bytes | None:
        """Return the offset in the shared memory and the size; the bytes of what is elsewhere."""
        if piece is None:
            return None
        offset = None if self._memory is None else self._memory.offset(piece)
        return bytes(piece) if offset is None else (offset, len(piece))


def work(given: dict[str, Any], product: str, macs: int) -> None:
    """Run jobs, as the child, until the connection is closed."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    shared = memoryview(b"")
    for descriptor in given["memory"]:
        shared = memoryview(mmap.mmap(descriptor, given["size"]))
    failure: Exception | None = None
    try:  # imported before the first job, which reports a failure
        from harness.npu.model import npu

        run: Callable[..., Outcome] = npu(product, macs)
    except Exception as error:
        failure = error
    with Connection(given["jobs"]) as jobs, suppress(EOFError):
        while True:
            spans = jobs.recv()
            pieces = [_piece(span, shared) for span in spans]
            copied = [p for p, span in zip(pieces, spans, strict=True) if isinstance(span, bytes)]
            try:
                if failure is not None:
                    raise failure
                told = asdict(run(pieces[0], pieces[1:]))
            except ImportError as error:
                told, copied = {"failed": f"the NPU model cannot be loaded: {error}"}, []
            except Exception as error:  # a boundary: the caller gets the message
                told, copied = {"failed": f"{type(error).__name__}: {error}"}, []
            jobs.send_bytes(json.dumps(told).encode())
            for piece in copied:
                jobs.send_bytes(piece or b"")  # an empty view is false


def _piece(span: tuple[int, int] | bytes | None, shared: memoryview) -> memoryview | None:
    if span is None:
        return None
    if isinstance(span, bytes):
        return memoryview(bytearray(span))
    return shared[span[0] : span[0] + span[1]]
