"""Runs the jobs that ``npu_process`` sends, one after another, until there are no more.

Started as a script. A request is a length (u32) and so many bytes of JSON: for the command stream
and each region its offset in the shared memory and its size, or null; where the offset is
negative the bytes follow. The answer is a length and JSON again, and, after a job that was done,
the bytes of all that was not shared.
"""

from __future__ import annotations

import json
import mmap
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

_MEMORY = 6 << 30  # bytes of its own: a program decides how much it asks for


def main(given: dict[str, Any], product: str, macs: int) -> None:
    sys.path[:0] = [str(Path(__file__).parents[2])]
    sys.path.extend(given["path"])
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
            told = {
                "result": outcome.result,
                "message": outcome.message,
                "status": outcome.status,
                "qread": outcome.qread,
            }
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
        from harness.npu.doorbell_npu import npu

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


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
