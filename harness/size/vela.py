"""The Ethos-U delegate's blob: commands, weights, scales, and its needs at run time.

A blob that is not a Vela stream (``formats/ethosu.py``) is one opaque part. Of the commands only
the registers with addresses of constants are followed; nothing is executed. Register numbers:
``ethosu/vela/ethos_u55_regs`` of ethos-u-vela 5.1.0; the two weight streams that only a U85 has
come from the register descriptions in its source distribution.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from harness.core.errors import MalformedFile
from harness.formats import ethosu
from harness.formats.ethosu import HEADER_BYTES, VelaBlock, walk
from harness.size.anatomy import PartPath, Span, Tally, sweep

BACKEND = "EthosUBackend"
_BLOCKS = {"cmd_data": "command stream", "weight_data": "constants"}

_CONSTANTS = 0  # the region that holds the delegate's weight_data
_CONV, _DEPTHWISE, _DMA_START = 0x002, 0x003, 0x010
_WEIGHT_REGION, _SCALE_REGION = 0x128, 0x129
_WEIGHTS = ((0x020, 0x021), (0x090, 0x091))
_SCALES = ((0x022, 0x023),)
_LATER_PAIRS = ((0x092, 0x093), (0x094, 0x095))  # U65: scales of core 1; U85: weights 2 and 3
_DMA_SRC_REGION, _DMA_DST_REGION = 0x130, 0x131
_DMA_SRC, _DMA_DST, _DMA_LEN = 0x030, 0x031, 0x032
_ROW = struct.Struct("<9i")  # of a table of tensors: shape, element size, offset, region
_INTERNAL = 1 << 8  # the destination is the NPU's own memory
_USES = ("weights", "scales", "lookup tables", "copied by DMA")  # the first that fits wins


@dataclass(frozen=True)
class DelegateNeeds:
    """What a delegate needs besides its bytes. ``keys``: named-data key to block name."""

    scratch: int
    keys: dict[str, str]
    memory: dict[str, int]  # bytes by purpose; only a COP2 container has them


def split(blob: memoryview, path: PartPath, tally: Tally) -> DelegateNeeds:
    """Accounts for every byte of a blob under ``path``."""
    try:
        blocks = list(walk(blob))
    except MalformedFile:
        tally.add((*path, "opaque"), len(blob))
        return DelegateNeeds(0, {}, {})
    scratch, keys = 0, {}
    command_blocks = (b for b in blocks if b.name == "cmd_data" and not b.external)
    uses = next((constant_uses(blob[b.data : b.data + b.length]) for b in command_blocks), None)
    for block in blocks:
        tally.add((*path, "block headers"), HEADER_BYTES)
        name = _BLOCKS.get(block.name, block.name.replace("_", " "))
        data = blob[block.data : block.data + block.length]
        if block.external:
            keys[bytes(data).decode("ascii", errors="replace")] = name
            tally.add((*path, "external references", name), block.length)
        elif block.name == "weight_data":
            _split_constants(uses, block.length, path, tally)
        else:
            tally.add((*path, name), block.length)
        if block.name == "scratch_size" and block.length == 4 and not block.external:
            scratch = int(struct.unpack("<I", data)[0])
        tally.add((*path, "padding"), block.padding)
    tally.add((*path, "after the stream"), len(blob) - blocks[-1].end)
    return DelegateNeeds(scratch, keys, _driver_memory(blob, blocks))


def _driver_memory(blob: memoryview, blocks: Sequence[VelaBlock]) -> dict[str, int]:
    """The memory that the Linux driver provides besides scratch, each in a region of its own."""
    contents = {b.name: blob[b.data : b.data + b.length] for b in blocks if not b.external}
    try:
        (stream,) = ethosu.command_streams(contents.get("cmd_data", memoryview(b"")))
    except (MalformedFile, ValueError):
        return {}
    if stream.requires is None:
        return {}
    needs = {
        "inputs": _region_end(contents, "inputs", 3),
        "outputs": _region_end(contents, "outputs", 4),
    }
    return {**needs, "on-chip cache": stream.requires.cache_bytes}


def _region_end(blocks: Mapping[str, memoryview], name: str, region: int) -> int:
    """Where the last tensor of a region ends."""
    table = blocks.get(name, memoryview(b""))[4:]
    whole = len(table) // _ROW.size * _ROW.size
    rows = _ROW.iter_unpack(table[:whole])
    sizes = (row[7] + prod(row[:7]) for row in rows if row[8] == region)
    return max(map(int, sizes), default=0)


Uses = dict[tuple[int, int], int]  # ``[start, end)`` in the constants: an index into _USES


def _split_constants(uses: Uses | None, size: int, path: PartPath, tally: Tally) -> None:
    """Accounts for ``size`` bytes of constants under ``path``."""
    if uses is None:
        tally.add((*path, "constants"), size)
        return
    spans = (Span(start, end, use, _USES[use]) for (start, end), use in uses.items())
    for length, span in sweep(spans, size):
        tally.add((*path, "other constants" if span is None else span.name), length)


def constant_uses(commands: memoryview) -> Uses | None:
    """How a ``cmd_data`` block uses the constants; None when it has neither container format."""
    reader = _CommandReader()
    try:
        for stream in ethosu.command_streams(commands):
            words = commands[stream.start : stream.start + stream.size]
            reader.read(
                [w for (w,) in struct.iter_unpack("<I", words)], stream.npu[0] if stream.npu else 0
            )
    except MalformedFile:
        return None
    return reader.spans


@dataclass(frozen=True)
class _Copy:
    """A DMA transfer out of the constants: ``size`` bytes from ``source`` to ``start``."""

    region: int
    start: int
    size: int
    source: int


class _CommandReader:
    def __init__(self) -> None:
        self._is_u85 = False
        self.spans: Uses = {}
        self._registers: dict[int, int] = defaultdict(int)
        self._pairs: dict[int, int] = defaultdict(int)
        self._copies: list[_Copy] = []

    def read(self, words: list[int], config: int) -> None:
        self._is_u85 = ethosu.product(config) == "u85"
        position = 0
        while position < len(words):
            word = words[position]
            code = word & 0x3FF
            if word & 0xC000:
                value = words[position + 1] if position + 1 < len(words) else 0
                self._pairs[code] = value | (word >> 16 & 0xFF) << 32
                position += 2
                continue
            position += 1
            if code >= 0x100:
                self._registers[code] = word >> 16
            elif code == _DMA_START:
                self._copy()
            elif code in (_CONV, _DEPTHWISE):
                self._convolve()

    def _copy(self) -> None:
        if self._registers[_DMA_SRC_REGION] & 0xFF != _CONSTANTS:
            return
        source, size = self._pairs[_DMA_SRC], self._pairs[_DMA_LEN]
        target = self._registers[_DMA_DST_REGION]
        self._use(2 if target & _INTERNAL else 3, source, size)
        copy = _Copy(target & 0xFF, self._pairs[_DMA_DST], size, source)
        if not target & _INTERNAL:
            self._copies = [
                c
                for c in self._copies
                if c.region != copy.region
                or c.start >= copy.start + size
                or c.start + c.size <= copy.start
            ]
            self._copies.append(copy)

    def _convolve(self) -> None:
        weights = _WEIGHTS + (_LATER_PAIRS if self._is_u85 else ())
        scales = _SCALES + (() if self._is_u85 else _LATER_PAIRS[:1])
        for use, region, pairs in (
            (0, self._registers[_WEIGHT_REGION], weights),
            (1, self._registers[_SCALE_REGION], scales),
        ):
            for base, length in pairs:
                self._use_anywhere(use, region, self._pairs[base], self._pairs[length])

    def _use_anywhere(self, use: int, region: int, start: int, size: int) -> None:
        """A use of the constants themselves, or of a copy of them."""
        if region == _CONSTANTS:
            self._use(use, start, size)
            return
        for copy in self._copies:
            if copy.region == region and copy.start <= start < copy.start + copy.size:
                self._use(use, copy.source + start - copy.start, size)

    def _use(self, use: int, start: int, size: int) -> None:
        key = (start, start + size)
        if size:
            self.spans[key] = min(use, self.spans.get(key, use))
