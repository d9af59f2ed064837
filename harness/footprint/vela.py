"""The Ethos-U delegate's blob: commands, weights, scales, what it needs at run time.

Format: ``backends/arm/arm_vela.py`` of ExecuTorch 1.5.1. ``vela_bin_stream``, blocks,
``vela_end_stream``; a block has a 16-byte name, u32 length, one byte "external reference",
11 reserved bytes and data padded to 16. What is not such a stream is one opaque part.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from harness.footprint.anatomy import Path, Tally
from harness.footprint.npu_constants import Uses, constant_uses

BACKEND = "EthosUBackend"
_HEADER = struct.Struct("<16sIB11s")
_FIRST, _LAST = "vela_bin_stream", "vela_end_stream"
_NAMES = {"cmd_data": "command stream", "weight_data": "constants"}


@dataclass(frozen=True)
class Block:
    """``external`` blocks hold a key into the program's named data instead of the data."""

    name: str
    start: int  # of the header
    length: int
    external: bool

    @property
    def data(self) -> int:
        return self.start + _HEADER.size

    @property
    def end(self) -> int:
        return self.data + -(-self.length // 16) * 16


def blocks(blob: memoryview) -> list[Block] | None:
    """The blocks of a Vela stream, first and last included; None when it is not one."""
    found: list[Block] = []
    at = 0
    while at + _HEADER.size <= len(blob):
        raw, length, external, _ = _HEADER.unpack_from(blob, at)
        name = raw.rstrip(b"\0").decode("ascii", errors="replace")
        block = Block(name, at, length, bool(external))
        if (not found and name != _FIRST) or block.data + length > len(blob):
            return None
        found.append(block)
        if name == _LAST:
            return found
        # The writer pads an empty block by 16 bytes: 15 - (0 - 1) % 16 + ... (arm_vela.py)
        at = block.end
    return None


@dataclass(frozen=True)
class Delegate:
    """What a blob says besides its bytes; ``keys`` maps a named-data key to its block."""

    scratch: int
    keys: dict[str, str]


def split(blob: memoryview, path: Path, tally: Tally) -> Delegate:
    """Account for every byte of a blob under ``path``."""
    found = blocks(blob)
    if found is None:
        tally.add((*path, "opaque"), len(blob))
        return Delegate(0, {})
    scratch, keys = 0, {}
    uses = _uses(blob, found)
    for block in found:
        tally.add((*path, "block headers"), _HEADER.size)
        name = _NAMES.get(block.name, block.name.replace("_", " "))
        data = blob[block.data : block.data + block.length]
        if block.external:
            keys[bytes(data).decode("ascii", errors="replace")] = name
            tally.add((*path, "external references", name), block.length)
        elif block.name == "weight_data":
            uses.split(block.length, path, tally)
        else:
            tally.add((*path, name), block.length)
        if block.name == "scratch_size" and block.length == 4 and not block.external:
            scratch = int(struct.unpack("<I", data)[0])
        tally.add((*path, "padding"), min(block.end, len(blob)) - block.data - block.length)
    tally.add((*path, "behind the stream"), len(blob) - min(found[-1].end, len(blob)))
    return Delegate(scratch, keys)


def _uses(blob: memoryview, found: list[Block]) -> Uses:
    for block in found:
        if block.name == "cmd_data" and not block.external:
            return constant_uses(blob[block.data : block.data + block.length])
    return Uses({}, False)
