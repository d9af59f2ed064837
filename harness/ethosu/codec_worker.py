"""Reads coded weights from stdin (u32 length, bytes), writes them decoded (u32 count, int16).

Run as a module by ``codec.Codec``; ends at the end of its input.
"""

from __future__ import annotations

import os
import resource
import sys
from array import array

from ethosu import mlw_codec  # type: ignore[import-untyped, unused-ignore]

_MEMORY = 4 << 30  # a few bytes can stand for a very long run of zeros


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    stream, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the decoder prints is no answer
    while header := stream.read(4):
        encoded = bytearray(stream.read(int.from_bytes(header, "little")))
        weights = array("h", mlw_codec.decode(encoded))
        answers.write(len(weights).to_bytes(4, "little") + weights.tobytes())
        answers.flush()


if __name__ == "__main__":
    main()
