"""Reads coded weights from stdin (u32 length, bytes), writes them decoded (u32 count, int16).

Started as a script by ``codec.Codec`` with the path of Vela's codec, an extension module whose C
functions this calls directly (``mlw_decode.h`` in the source of ethos-u-vela 5.1.0): by way of
its Python function every weight would be an object for a moment. Ends at the end of its input.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys

_MEMORY = 1 << 29  # a few bytes can stand for a very long run of zeros


def main(path: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    codec = ctypes.CDLL(path)
    stream, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the decoder prints is no answer
    while header := stream.read(4):
        encoded = stream.read(int.from_bytes(header, "little"))
        weights = ctypes.POINTER(ctypes.c_int16)()
        count = codec.mlw_decode(encoded, len(encoded), ctypes.byref(weights), 0)
        if count < 0:
            return
        answers.write(count.to_bytes(4, "little"))
        answers.write(ctypes.string_at(weights, 2 * count))
        answers.flush()
        codec.mlw_free_outbuf(weights)


if __name__ == "__main__":
    main(sys.argv[1])
