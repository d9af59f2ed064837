"""The blocks of a Vela stream: what ExecuTorch's Ethos-U delegate holds.

Format: ``vela_compile`` in ``backends/arm/arm_vela.py`` of ExecuTorch 1.5.1. A block is a 16-byte
name, u32 length, a byte "external reference", 11 reserved bytes, and data padded to a multiple of
16; the first block is ``vela_bin_stream``, the last one ``vela_end_stream``, both without data.
``targets/runner/ethosu/vela_stream.cpp`` reads the same on the target.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from harness.formats.damage import DamagedFile

HEADER_BYTES = 32
FIRST, LAST = "vela_bin_stream", "vela_end_stream"
_HEADER = struct.Struct("<16sIB11s")
_ALIGNMENT = 16


@dataclass(frozen=True)
class VelaBlock:
    """An ``external`` block holds a key into the program's named data instead of the data."""

    name: str
    start: int  # of the header; bytes from the start of the stream
    length: int
    external: bool
    padding: int  # bytes behind the data; fewer than the alignment asks for at a stream's end

    @property
    def data(self) -> int:
        return self.start + HEADER_BYTES

    @property
    def end(self) -> int:
        return self.data + self.length + self.padding


def walk(stream: bytes | memoryview) -> Iterator[VelaBlock]:
    """The blocks up to ``vela_end_stream``, which is the last one given; more bytes may follow.

    DamagedFile: a block does not fit the buffer, or it is not how a stream begins or ends.
    """
    at, name = 0, ""
    while name != LAST:
        if at + HEADER_BYTES > len(stream):
            raise DamagedFile(f"the stream ends inside a block header, before '{LAST}'", at)
        raw, length, external, _ = _HEADER.unpack_from(stream, at)
        name = raw.rstrip(b"\0").decode("ascii", "replace")
        if at == 0 and name != FIRST:
            raise DamagedFile(f"the first block is '{name}', not '{FIRST}'", at)
        left = len(stream) - at - HEADER_BYTES
        if length > left:
            raise DamagedFile(f"block '{name}' says {length} bytes, {left} remain", at)
        if external > 1:
            raise DamagedFile(f"block '{name}' has external flag {external}, not 0 or 1", at)
        padding = min(-length % _ALIGNMENT, left - length)
        block = VelaBlock(name, at, length, bool(external), padding)
        yield block
        at = block.end


def find_streams(data: bytes) -> Iterator[tuple[int, int]]:
    """Start and end of every stream inside a larger file, such as a ``.pte``.

    DamagedFile, from the start of ``data``: one begins and is damaged.
    """
    first, view = FIRST.encode().ljust(16, b"\0"), memoryview(data)
    start = data.find(first)
    while start >= 0:
        try:
            *_, last = walk(view[start:])
        except DamagedFile as error:
            raise DamagedFile(error.what, start + error.offset) from None
        yield start, start + last.end
        start = data.find(first, start + last.end)
