"""The table of log messages, ``patterns.yaml``, and a fast search in it.

A row's needles are words of which every line that its regular expression fits holds at least one.
The parser's speed rests on them: ``gate`` makes one regular expression from the needles of many
rows, and a line that it does not fit is only counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

import yaml

from harness.core.safe_text import plain
from harness.core.tables import read_table
from harness.core.verdict import Word
from harness.log.events import Doubt, Item, Kind, Stage, StopReason

Match = re.Match[bytes]
PATTERNS: Final = Path(__file__).with_name("patterns.yaml")
_WORDS: Final[Mapping[str, Word]] = {
    str(word): word for words in (Kind, Stage, StopReason, Item) for word in words
}


@dataclass(frozen=True)
class Pattern:
    """One row of ``patterns.yaml``, which explains the fields."""

    kind: Word
    needles: tuple[bytes, ...]
    regex: bytes
    example: bytes
    source: str
    doubt: Doubt | None = None
    codes: str = ""
    kinds: tuple[tuple[str, Word], ...] = ()

    @cached_property
    def compiled(self) -> re.Pattern[bytes]:
        """Compiled when the first line with a needle comes, which in most runs is never."""
        return re.compile(self.regex)

    def search(self, line: bytes) -> Match | None:
        return self.compiled.search(line)


@cache
def sections() -> Mapping[str, tuple[Pattern, ...]]:
    """The rows of ``patterns.yaml`` by the name of their section."""
    # Every scalar is text: the C parser's base loader converts nothing.
    document = yaml.load(PATTERNS.read_bytes(), yaml.CBaseLoader)
    sources = document.pop("sources")
    return {name: tuple(_pattern(row, sources) for row in rows) for name, rows in document.items()}


def _pattern(row: Mapping[str, Any], sources: Mapping[str, str]) -> Pattern:
    needles = row["needles"] if "needles" in row else [row["needle"]]
    return Pattern(
        kind=_WORDS[row["kind"]],
        needles=tuple(needle.encode() for needle in needles),
        regex=row["regex"].encode(),
        example=row["example"].encode(),
        source=sources.get(row["source"], row["source"]),
        doubt=Doubt(row["doubt"]) if "doubt" in row else None,
        codes=row.get("codes", ""),
        kinds=tuple((value, _WORDS[kind]) for value, kind in row.get("kinds", {}).items()),
    )


def rows(*names: str) -> tuple[Pattern, ...]:
    """The rows of these sections, one section after the other."""
    return tuple(row for name in names for row in sections()[name])


@cache
def only_row(kind: Item) -> Pattern:
    """The row of a kind that one row has, such as a prefix."""
    (row,) = (row for section in sections().values() for row in section if row.kind is kind)
    return row


@cache
def expression(module: str, name: str) -> re.Pattern[bytes]:
    """One of the ``expressions`` in the table of a module (``read_table``)."""
    return re.compile(read_table(module)["expressions"][name].encode())


_DIGITS: Final = bytes.maketrans(b"123456789", b"000000000")
_MOST_SHAPES: Final = 20_000
_LONGEST_SHAPE: Final = 300  # bytes; a longer line is seldom seen again


class PatternTable:
    """Rows in order of precedence: the first that fits a line counts.

    Lines of a long log differ in their numbers alone, so the rows whose needles a line has are kept
    by the line with every digit as 0 (`hil bench`: 100 MB of a runner's lines in 11 s, 27 s
    without).
    """

    def __init__(self, rows: tuple[Pattern, ...]) -> None:
        self._rows = [(row, [n.translate(_DIGITS) for n in row.needles]) for row in rows]
        self._candidates: dict[bytes, tuple[Pattern, ...]] = {}

    def candidates(self, line: bytes) -> tuple[Pattern, ...]:
        """The rows of which the line has a needle, and perhaps others."""
        shape = line.translate(_DIGITS)
        known = self._candidates.get(shape)
        if known is None:
            known = tuple(row for row, words in self._rows if any(map(shape.__contains__, words)))
            if len(shape) <= _LONGEST_SHAPE:
                if len(self._candidates) >= _MOST_SHAPES:
                    self._candidates.clear()
                self._candidates[shape] = known
        return known

    def first(self, line: bytes) -> tuple[Pattern, Match] | None:
        for row in self.candidates(line):
            if match := row.search(line):
                return row, match
        return None


@cache
def table(*names: str) -> PatternTable:
    """The table of these sections."""
    return PatternTable(rows(*names))


@cache
def gate(rows: tuple[Pattern, ...]) -> Callable[[bytes], object]:
    """True for every line that a row fits, and for few others."""
    return PatternTable(tuple(row for row in rows if row.kind is not Item.NOISE)).candidates


def named_groups(match: Match) -> dict[str, str]:
    """The named groups of a match; "library2" is another way to catch "library"."""
    return {k.rstrip("0123456789"): text(v) for k, v in match.groupdict().items() if v}


def text(raw: bytes) -> str:
    """Console bytes as text that is harmless wherever it is shown."""
    return plain(raw.decode("utf-8", "backslashreplace"))
