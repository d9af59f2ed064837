"""The Ethos-U delegate's blob: commands, weights, scales, and its needs at run time.

A blob that is not a Vela stream (``formats/ethosu.py``) is one opaque part. In the commands, only
the registers with addresses of constants are followed; nothing is executed.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from harness.core.errors import MalformedFile
from harness.formats import ethosu
from harness.formats.ethosu import HEADER_BYTES, walk
from harness.npu.blob import INPUTS, OUTPUTS, WEIGHTS, read_actions, read_blob
from harness.npu.errors import EthosUError
from harness.npu.registers import register_set
from harness.npu.stream import Write, decode_at
from harness.size.anatomy import PartPath, Span, Tally, sweep

BACKEND = "EthosUBackend"
_BLOCKS = {"cmd_data": "command stream", "weight_data": "constants"}
_NPU_MEMORY = 1 << 8  # DMA0_DST_REGION: the destination is the NPU's own memory
_USES = ("weights", "scales", "lookup tables", "copied by DMA")  # the first that fits wins


@dataclass(frozen=True)
class DelegateNeeds:
    """The needs of a delegate in addition to its bytes. ``keys``: named-data key to block name."""

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
    end = blocks[-1].end
    tally.add((*path, "after the stream"), len(blob) - end)
    return DelegateNeeds(scratch, keys, _driver_memory(bytes(blob[:end]), dict.fromkeys(keys, b"")))


def _driver_memory(blob: bytes, named_data: Mapping[str, bytes]) -> dict[str, int]:
    """Return the memory that the Linux driver provides besides scratch, by region."""
    try:
        found = read_blob(blob, named_data)
        requires = read_actions(found.commands).requires
    except EthosUError:
        return {}
    if requires is None:
        return {}
    own = {"inputs": found.own_region(INPUTS), "outputs": found.own_region(OUTPUTS)}
    return {**own, "on-chip cache": requires.cache_bytes}


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
    """How a ``cmd_data`` block uses the constants; None where its commands cannot be read."""
    constants = _Constants()
    try:
        for stream in ethosu.command_streams(commands):
            product = ethosu.product(stream.npu[0]) if stream.npu else None
            words = struct.unpack_from(f"<{stream.size // 4}I", commands, stream.start)
            constants.follow(words, product or "")
    except (MalformedFile, EthosUError):
        return None
    return constants.uses


@dataclass(frozen=True)
class _Copy:
    """A DMA transfer out of the constants: ``size`` bytes from ``source`` to ``start``."""

    region: int
    start: int
    size: int
    source: int


class _Constants:
    """The uses of the region WEIGHTS, which holds the delegate's weight_data."""

    def __init__(self) -> None:
        self.uses: Uses = {}
        self._registers: dict[str, int] = {}
        self._copies: list[_Copy] = []

    def follow(self, words: tuple[int, ...], product: str) -> None:
        names, at = register_set(product), 0
        while at < len(words):
            item, at = decode_at(words, at, names)
            if isinstance(item, Write):
                self._registers[item.name] = item.value
            elif item.name == "DMA_START":
                self._copy()
            elif item.name in ("CONV", "DEPTHWISE"):
                for use, kind in enumerate(("WEIGHT", "SCALE")):
                    self._convolve(use, kind)

    def _get(self, register: str) -> int:
        return self._registers.get(register, 0)

    def _copy(self) -> None:
        if self._get("DMA0_SRC_REGION") & 0xFF != WEIGHTS:
            return
        source, size = self._get("DMA0_SRC"), self._get("DMA0_LEN")
        region, start = self._get("DMA0_DST_REGION"), self._get("DMA0_DST")
        self._use(2 if region & _NPU_MEMORY else 3, source, size)
        if not region & _NPU_MEMORY:
            copy = _Copy(region & 0xFF, start, size, source)
            self._copies = [
                c
                for c in self._copies
                if c.region != copy.region or c.start >= start + size or c.start + c.size <= start
            ]
            self._copies.append(copy)

    def _convolve(self, use: int, kind: str) -> None:
        """Each core of the NPU has weights of its own, and scales where it has."""
        region = self._get(f"{kind}_REGION")
        for core in ("", "1", "2", "3"):
            start, size = self._get(f"{kind}{core}_BASE"), self._get(f"{kind}{core}_LENGTH")
            if region == WEIGHTS:
                self._use(use, start, size)
                continue
            for copy in self._copies:
                if copy.region == region and copy.start <= start < copy.start + copy.size:
                    self._use(use, copy.source + start - copy.start, size)

    def _use(self, use: int, start: int, size: int) -> None:
        key = (start, start + size)
        if size:
            self.uses[key] = min(use, self.uses.get(key, use))
