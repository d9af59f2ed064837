"""GNU ld's map file: which input section of which object went where, and what was dropped.

Grammar as printed by binutils 2.35 to 2.42 (``ld/ldlang.c``): output sections start in column
0, input sections in column 1; a long name stands on a line of its own, before its numbers.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UsageError

FILL = "*fill*"
_HEX = r"0x[0-9a-fA-F]+"
_NUMBERS = re.compile(rf"^\s+({_HEX})\s+({_HEX})(?:\s+(.*))?$")
_LINE = re.compile(rf"^ ?(\S+)(?:\s+({_HEX})\s+({_HEX})(?:\s+(.*))?)?$")
_MEMORY = re.compile(rf"^(\S+)\s+({_HEX})\s+({_HEX})")
_DISCARDED, _CONFIGURATION, _SCRIPT = (
    "Discarded input sections", "Memory Configuration", "Linker script and memory map"
)  # fmt: skip


@dataclass(frozen=True)
class Piece:
    """An input section's place: ``file`` is ``libx.a(y.o)`` or ``y.o``, without directories."""

    section: str
    address: int
    size: int
    file: str

    @property
    def end(self) -> int:
        return self.address + self.size


@dataclass(frozen=True)
class LinkMap:
    """``pieces`` by address; ``outputs`` maps an output section to address and size."""

    pieces: tuple[Piece, ...]
    outputs: dict[str, tuple[int, int]]
    dropped: tuple[Piece, ...]
    memory: dict[str, tuple[int, int]]

    def within(self, start: int, end: int) -> list[Piece]:
        first = bisect_left(self.pieces, start, key=lambda p: p.address)
        found = []
        for piece in self.pieces[first:]:
            if piece.address >= end:
                break
            found.append(piece)
        return found


def read_map(path: Path) -> LinkMap:
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError as error:
        raise UsageError(f"cannot read the linker map {path}: {error.strerror}") from error
    if not any(line.startswith(_SCRIPT) for line in lines):
        raise UsageError(f"{path} is not a map of GNU ld: it has no {_SCRIPT!r}", path=str(path))
    reader = _Reader()
    for line in lines:
        reader.take(line)
    pieces = tuple(sorted((p for p in reader.pieces if p.size), key=lambda p: p.address))
    dropped = tuple(p for p in reader.dropped if p.size)
    return LinkMap(pieces, reader.outputs, dropped, reader.memory)


class _Reader:
    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.dropped: list[Piece] = []
        self.outputs: dict[str, tuple[int, int]] = {}
        self.memory: dict[str, tuple[int, int]] = {}
        self._chapter = ""
        self._pending: tuple[bool, str] | None = None  # (is an output section, name)

    def take(self, line: str) -> None:
        for chapter in (_DISCARDED, _CONFIGURATION, _SCRIPT):
            if line.startswith(chapter):
                self._chapter, self._pending = chapter, None
                return
        if self._chapter == _CONFIGURATION:
            if (row := _MEMORY.match(line)) and row[1] != "*default*":
                self.memory[row[1]] = (int(row[2], 16), int(row[3], 16))
        elif self._chapter:
            self._section_line(line)

    def _section_line(self, line: str) -> None:
        pending, self._pending = self._pending, None
        if pending is not None and (numbers := _NUMBERS.match(line)):
            self._record(*pending, numbers[1], numbers[2], numbers[3] or "")
            return
        if not line or line.startswith(("  ", " *(", "LOAD ", "OUTPUT(")):
            return
        found = _LINE.match(line)
        if not found:
            return
        is_output = not line.startswith(" ")
        if found[2] is None:
            self._pending = (is_output, found[1])
        else:
            self._record(is_output, found[1], found[2], found[3], found[4] or "")

    def _record(self, is_output: bool, name: str, address: str, size: str, rest: str) -> None:
        where, length = int(address, 16), int(size, 16)
        if is_output:
            self.outputs[name] = (where, length)
            return
        piece = Piece(name, where, length, _short(rest))
        (self.dropped if self._chapter == _DISCARDED else self.pieces).append(piece)


def _short(file: str) -> str:
    """``/a/b/libx.a(y.o)`` to ``libx.a(y.o)``."""
    archive, parenthesis, member = file.strip().partition("(")
    return archive.rpartition("/")[2] + parenthesis + member.rpartition("/")[2]
