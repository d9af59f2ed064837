"""What stands before every line of a log: prefixes that are learned, and the bytes of UTF-16."""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from collections.abc import Callable
from typing import Final

_LONGEST: Final = 200  # bytes of a prefix
# What only quotes: an indent, a diff, a comment, a mail, pytest's "E   ", a string, grep's place.
_QUOTE: Final = re.compile(rb"[\s>+#*/|-]*(?:E\s+)?|.*[\"'`].*|.*[^\s\]]|\s.*", re.DOTALL)
# What differs from line to line: TeamCity's level, blanks before numbers, numbers, levels, days.
_PARTS: Final = re.compile(
    rb"(?P<level>(?<=\])[ A-Za-z](?=:))|(?P<blank>\s+)|(?P<number>\d+)|\b(?:[A-Za-z]|DEBUG|INFO"
    rb"|NOTICE|WARN(?:ING)?|ERROR|TRACE|Mon|Tue|Wed|Thu|Fri|Sat|Sun"
    rb"|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b"
)
_SHAPES: Final = {"level": rb"[ A-Za-z]", "blank": rb"\s*", "number": rb"\d+", None: rb"[A-Za-z]+"}
_MARKS: Final = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


def may_be_wide(beginning: bytes) -> bool:
    return beginning[:1] in (b"\xff", b"\xfe") or b"\x00" in beginning


def narrowing(beginning: bytes) -> Callable[[bytes], bytes] | None:
    """Makes UTF-8 of a log in UTF-16, with or without its mark; None for any other log."""
    encoding = _MARKS.get(beginning[:2])
    zeros = [beginning[start::2].count(0) for start in (1, 0)]
    if encoding is None and (max(zeros) < len(beginning) * 0.45 or min(zeros) > 1):
        return None
    wide = encoding or ("utf-16-le" if zeros[0] > zeros[1] else "utf-16-be")
    decoder = getincrementaldecoder(wide)("replace")
    return lambda data: decoder.decode(data).encode("utf-8", "replace")


def _shape(before: bytes) -> bytes | None:
    """A regular expression for prefixes of this shape; None if it cannot be a prefix."""
    if len(before) > _LONGEST or _QUOTE.fullmatch(before):
        return None
    shape, end = [], 0
    for part in _PARTS.finditer(before):
        shape += [re.escape(before[end : part.start()]), _SHAPES[part.lastgroup]]
        end = part.end()
    return b"".join([*shape, re.escape(before[end:])])


class Prefix:
    """Learned from the lines of a runner, whose own beginning is known: what stands before two of
    them in one shape stands before all lines of that run."""

    def __init__(self, given: re.Pattern[bytes] | None = None) -> None:
        self._given = given
        self._pattern = given
        self._candidate: bytes | None = None

    def removed(self, line: bytes) -> bytes:
        """The line without its prefix."""
        match = None if self._pattern is None else self._pattern.match(line)
        return line if match is None else line[match.end() :]

    def learned(self, before: bytes) -> bool:
        """Whether ``before``, which stands before a runner's line, has the shape of that before an
        earlier one; it is the prefix from now on."""
        shape = None if self._given is not None else _shape(before)
        if shape is None:
            return False
        known = shape == self._candidate
        self._candidate = shape
        if known:
            self._pattern = re.compile(shape)
        return known
