"""A log pattern is one row; what is cheap to ask of a line first is built from the rows.

A row's needles are words of which every line that its regular expression fits holds at least
one. They are all that the reader's speed rests on: from the needles of many rows ``gate`` makes
one question, so that a line that no row could fit is only counted, and no list of hints has to
be kept by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final, Generic, TypeVar

from harness.errors.plain import plain

K = TypeVar("K")
Match = re.Match[bytes]
# A shape as the tree of its letters: what may follow each; no letters: the word ends here.
_Tree = dict[bytes, "_Tree"]


@dataclass(frozen=True)
class Pattern(Generic[K]):
    """One thing that a log can say: a row of a table.

    ``kind`` is what it means; None says that it means nothing, whatever later rows think of it.
    ``regex`` is searched for in a line; its named groups are the facts of the event, where digits
    behind a name only tell two ways to catch the same thing apart. ``example`` is a line of it,
    or the message alone where the table is about messages. ``source`` tells who writes it.
    """

    kind: K
    needles: tuple[bytes, ...]
    regex: bytes
    example: bytes
    source: str

    def __post_init__(self) -> None:
        if not self.needles or not all(self.needles):
            raise ValueError(f"a row without a needle is never looked for: {self.regex!r}")
        if not any(needle in self.example for needle in self.needles):
            raise ValueError(f"no needle of {self.needles} is in the example {self.example!r}")

    @cached_property
    def compiled(self) -> re.Pattern[bytes]:
        """Compiled when the first line with a needle comes, which in most runs is never."""
        return re.compile(self.regex)

    def search(self, line: bytes) -> Match | None:
        return self.compiled.search(line)


class PatternTable(Generic[K]):
    """Rows in order of precedence: the first that fits a line counts."""

    def __init__(self, rows: tuple[Pattern[K], ...]) -> None:
        self._rows = rows

    @cached_property
    def may_have(self) -> Callable[[bytes], object]:
        """A quick question: could any row fit this line?"""
        return gate(self._rows)

    def first(self, line: bytes) -> tuple[K, Match] | None:
        if not self.may_have(line):
            return None
        for row in self._rows:
            for needle in row.needles:
                if needle in line:
                    if match := row.compiled.search(line):
                        return row.kind, match
                    break
        return None


class Heads(PatternTable[K]):
    """Rows of which a line begins with a needle; to ask that is quicker still."""

    @cached_property
    def _by_letter(self) -> dict[bytes, tuple[Pattern[K], ...]]:
        letters = {needle[:1] for row in self._rows for needle in row.needles}
        return {
            letter: tuple(r for r in self._rows if any(n.startswith(letter) for n in r.needles))
            for letter in letters
        }

    def first(self, line: bytes) -> tuple[K, Match] | None:
        for row in self._by_letter.get(line[:1], ()):
            if line.startswith(row.needles) and (match := row.compiled.search(line)):
                return row.kind, match
        return None


@cache
def table(rows: tuple[Pattern[K], ...]) -> PatternTable[K]:
    return PatternTable(rows)


@cache
def heads(rows: tuple[Pattern[K], ...]) -> Heads[K]:
    return Heads(rows)


@cache
def gate(rows: tuple[Pattern[Any], ...]) -> Callable[[bytes], object]:
    """True of every line that a row fits, and of few others.

    Of each needle only a few letters are looked for, from its rarest letter on: a search stops
    at every letter that any word begins with, so the fewer those are, the faster it is.
    """
    needles = {needle for row in rows if row.kind is not None for needle in row.needles}
    tree: _Tree = {}
    for piece in sorted({_rare_piece(needle) for needle in needles}, key=len):
        _plant(tree, piece)
    return re.compile(b"|".join(_branches(tree))).search


# How many of a hundred characters of a log are this one, roughly; others are rarer.
_OFTEN: Final = {
    b" ": 16.0, b"e": 9.0, b"t": 7.0, b"a": 6.0, b"o": 6.0, b"i": 6.0, b"n": 6.0, b"s": 5.0,
    b"r": 5.0, b"l": 3.5, b"d": 3.0, b"0": 3.0, b"c": 2.5, b"u": 2.3, b"m": 2.0, b"p": 2.0,
    b"h": 2.0, b":": 2.0, b"1": 2.0, b"g": 1.6, b"f": 1.6, b"y": 1.3, b"b": 1.2, b"w": 1.0,
    b".": 1.0, b"[": 1.0, b"]": 1.0, b"v": 0.8, b"k": 0.6, b"_": 0.6, b",": 0.6,
}  # fmt: skip
_RARELY: Final = 0.3
_FEWEST_LETTERS: Final = 4  # fewer are in too many lines that mean nothing
_MOST_LETTERS: Final = 8


def _rare_piece(needle: bytes) -> bytes:
    starts = range(max(1, len(needle) - _FEWEST_LETTERS + 1))
    start = min(starts, key=lambda at: (_OFTEN.get(needle[at : at + 1], _RARELY), at))
    return needle[start : start + _MOST_LETTERS]


def _plant(tree: _Tree, word: bytes) -> None:
    """Shorter words first; a word that begins with one that is there already adds nothing."""
    for at in range(len(word)):
        letter = word[at : at + 1]
        if letter in tree and not tree[letter]:
            return
        tree = tree.setdefault(letter, {})


def _branches(tree: _Tree) -> list[bytes]:
    return [re.escape(letter) + _tail(rest) for letter, rest in sorted(tree.items())]


def _tail(tree: _Tree) -> bytes:
    """What follows a letter; letters that are followed by the same share a branch."""
    ways: dict[bytes, list[bytes]] = {}
    for letter, rest in sorted(tree.items()):
        ways.setdefault(_tail(rest), []).append(re.escape(letter))
    said = [
        (letters[0] if len(letters) == 1 else b"[" + b"".join(letters) + b"]") + tail
        for tail, letters in ways.items()
    ]
    return said[0] if len(said) == 1 else b"(?:" + b"|".join(said) + b")" if said else b""


def facts(match: Match) -> dict[str, str]:
    """What a pattern caught; "library2" is another way to catch "library"."""
    return {k.rstrip("0123456789"): text(v) for k, v in match.groupdict().items() if v}


def text(raw: bytes) -> str:
    """What a console said, harmless to whoever shows it."""
    return plain(raw.decode("utf-8", "backslashreplace"))
