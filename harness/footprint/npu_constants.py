"""What an Ethos-U command stream uses of its constants region: weights, scales, tables.

Only the registers that say where constants are get followed; nothing is executed. Register
numbers: ``ethosu/vela/ethos_u55_regs`` of ethos-u-vela 5.1.0; the two weight streams that only a
U85 has come from the register descriptions in its source distribution. Containers: ``COP1``
(``driver_actions.py`` of the same package) and ``COP2`` (seen in what Vela 5.1.0 writes).
"""

from __future__ import annotations

import struct
from collections import defaultdict
from dataclasses import dataclass

from harness.footprint.anatomy import Path, Tally

_CONSTANTS = 0  # the region that holds the delegate's weight_data
_CONV, _DEPTHWISE, _DMA_START = 0x002, 0x003, 0x010
_WEIGHT_REGION, _SCALE_REGION = 0x128, 0x129
_WEIGHTS = ((0x020, 0x021), (0x090, 0x091))
_SCALES = ((0x022, 0x023),)
_LATER_PAIRS = ((0x092, 0x093), (0x094, 0x095))  # U65: scales of core 1; U85: weights 2 and 3
_DMA_SRC_REGION, _DMA_DST_REGION = 0x130, 0x131
_DMA_SRC, _DMA_DST, _DMA_LEN = 0x030, 0x031, 0x032
_INTERNAL = 1 << 8  # destination is the NPU's own memory
_NAMES = ("weights", "scales", "lookup tables", "copied by DMA")  # the first that fits wins


@dataclass(frozen=True)
class Uses:
    """``spans`` maps ``[start, end)`` in the constants to an index into the names above."""

    spans: dict[tuple[int, int], int]
    understood: bool

    def split(self, size: int, path: Path, tally: Tally) -> None:
        """Account for ``size`` bytes of constants under ``path``."""
        if not self.understood:
            tally.add((*path, "constants"), size)
            return
        edges: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for (start, end), which in self.spans.items():
            if start < min(end, size):
                edges[start].append((which, 1))
                edges[min(end, size)].append((which, -1))
        active = [0] * len(_NAMES)
        last = 0
        for at in sorted({*edges, size}):
            name = next((n for n, k in zip(_NAMES, active, strict=True) if k), "other constants")
            tally.add((*path, name), at - last)
            for which, change in edges.get(at, ()):
                active[which] += change
            last = at


@dataclass(frozen=True)
class _Copy:
    """A DMA transfer out of the constants: where ``size`` bytes from ``source`` went."""

    region: int
    start: int
    size: int
    source: int


def constant_uses(stream: memoryview) -> Uses:
    """Uses of a ``cmd_data`` block; not understood when it is in none of the two containers."""
    magic, reader = bytes(stream[:4]), _Reader()
    understood = {b"COP1": _read_cop1, b"COP2": _read_cop2}.get(magic, _refuse)(stream, reader)
    return Uses(reader.spans if understood else {}, understood)


def _refuse(_stream: memoryview, _reader: _Reader) -> bool:
    return False


def _words(stream: memoryview) -> list[int]:
    return [w for (w,) in struct.iter_unpack("<I", stream[: len(stream) // 4 * 4])]


def _read_cop1(stream: memoryview, reader: _Reader) -> bool:
    """Driver actions, each a word: action [7:0], high length [15:8], length [31:16]."""
    words = _words(stream)
    at = 1
    while at < len(words):
        action, length = words[at] & 0xFF, (words[at] >> 16) | (words[at] & 0xFF00) << 8
        at += 1
        if action == 1:  # optimiser configuration and its two words
            reader.product = words[at] >> 28 if at < len(words) else 0
            at += 2
        elif action == 2:
            reader.read(words[at : at + length])
            at += length
        elif action != 5:
            return False
    return True


def _read_cop2(stream: memoryview, reader: _Reader) -> bool:
    """Magic, version, u64 length; entries of type, length and data. In an entry of type 1:
    metadata (length, ``VEUM``, version, n, configuration, ...), then, 16-byte aligned,
    the commands."""
    at = 16
    while at + 8 <= len(stream):
        kind, length = struct.unpack_from("<II", stream, at)
        data, end = at + 8, at + 8 + length
        if (
            kind != 1
            or end > len(stream)
            or length < 20
            or bytes(stream[data + 4 : data + 8]) != b"VEUM"
        ):
            return False
        metadata, _, _, _, configuration = struct.unpack_from("<IIIII", stream, data)
        reader.product = configuration >> 28
        reader.read(_words(stream[-(-(data + metadata) // 16) * 16 : end]))
        at = end
    return True


class _Reader:
    def __init__(self) -> None:
        self.product = 0
        self.spans: dict[tuple[int, int], int] = {}
        self._registers: dict[int, int] = defaultdict(int)
        self._pairs: dict[int, int] = defaultdict(int)
        self._copies: list[_Copy] = []

    def read(self, words: list[int]) -> None:
        at = 0
        while at < len(words):
            word = words[at]
            code = word & 0x3FF
            if word & 0xC000:
                value = words[at + 1] if at + 1 < len(words) else 0
                self._pairs[code] = value | (word >> 16 & 0xFF) << 32
                at += 2
                continue
            at += 1
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
                c for c in self._copies
                if c.region != copy.region
                or c.start >= copy.start + size or c.start + c.size <= copy.start
            ]  # fmt: skip
            self._copies.append(copy)

    def _convolve(self) -> None:
        is_u85 = self.product == 2
        weights = _WEIGHTS + (_LATER_PAIRS if is_u85 else ())
        scales = _SCALES + (() if is_u85 else _LATER_PAIRS[:1])
        for name, region, pairs in (
            (0, self._registers[_WEIGHT_REGION], weights),
            (1, self._registers[_SCALE_REGION], scales),
        ):
            for base, length in pairs:
                self._use_anywhere(name, region, self._pairs[base], self._pairs[length])

    def _use_anywhere(self, name: int, region: int, start: int, size: int) -> None:
        """A use of the constants themselves, or of a copy of them."""
        if region == _CONSTANTS:
            self._use(name, start, size)
            return
        for copy in self._copies:
            if copy.region == region and copy.start <= start < copy.start + copy.size:
                self._use(name, copy.source + start - copy.start, size)

    def _use(self, name: int, start: int, size: int) -> None:
        key = (start, start + size)
        if size:
            self.spans[key] = min(name, self.spans.get(key, name))
