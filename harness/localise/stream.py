"""Which operation of a command stream gave a byte of the output its value."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from harness.ethosu.blob import read_actions, read_blob
from harness.ethosu.model import Network
from harness.ethosu.registers import register_set
from harness.ethosu.stream import has_branches, operations

_STOP = 0xFFFF0000  # NPU_OP_STOP with every bit of its mask


def last_writer(blob: bytes, inputs: Sequence[bytes], output: int, byte: int) -> str:
    """Such as ``CONV at byte 0x348 of the stream``; empty when it cannot be told.

    The stream is stopped early, at a place found by halving, until the byte has its final value
    after the operation and another one before.
    """
    actions = read_actions(read_blob(blob).commands)
    names = register_set(actions.config.product)
    if has_branches(actions.words, names):
        return ""
    stream = struct.pack(f"<{len(actions.words)}I", *actions.words)
    start = blob.index(stream)
    done = [operation for operation, _ in operations(actions.words, names)]

    def after(count: int) -> int:
        stopped = bytearray(blob)
        if count < len(done):
            struct.pack_into("<I", stopped, start + done[count].offset, _STOP)
        return Network(bytes(stopped)).run(inputs, strict=False)[0][output][byte]

    final = after(len(done))
    early, late = 0, len(done)
    if after(early) == final:
        return ""
    while late - early > 1:
        middle = (early + late) // 2
        if after(middle) == final:
            late = middle
        else:
            early = middle
    return f"{done[early].name} at byte {done[early].offset:#x} of the stream"
