"""What a job prints around a run: lines that mean nothing (``job_lines.yaml``), those that say that
something failed, whoever says it, and what stands before every line: time stamps, prefixes that are
learned, and the bytes of UTF-16."""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from harness.core.tables import read_table
from harness.log.pattern import expression, rows, sections, table


def job_lines() -> tuple[Mapping[str, str], ...]:
    """The rows: ``regex``, ``example``, ``source``, and ``ends`` where all went well."""
    return tuple(read_table(__file__)["lines"])


@cache
def _any_of(name: str) -> re.Pattern[bytes]:
    """One pattern for all expressions of a list of ``job_lines.yaml``."""
    found = read_table(__file__)
    return re.compile("|".join(found[name]).replace("%word%", found["word"]).encode())


_BLANK: Final = bytes(range(0x21))  # and control characters


@cache
def _any_row(*, ends: bool) -> re.Pattern[bytes]:
    found = (row["regex"] for row in job_lines() if "ends" in row or not ends)
    return re.compile("|".join(f"(?:{regex})" for regex in found).encode())


def is_job_line(line: bytes) -> bool:
    """``line``: without a CI system's time stamp and a tool's prefix."""
    return not line.strip(_BLANK) or _any_row(ends=False).search(line.lstrip(b"\r")) is not None


def ends_well(line: bytes) -> bool:
    """Whether a test framework or CI system says that all went well, of something that was run."""
    return _any_row(ends=True).search(line.lstrip(b"\r")) is not None


_LEADERS: Final = re.compile(rb"([^\w\s])\1{7,}")  # dots and their like between two columns


def says_failure(line: bytes) -> bool:
    """Whether a line says that something failed. ``line``: as for ``is_job_line``."""
    (words,) = rows("failure_words")
    line = _LEADERS.sub(b" ", line)
    return (
        words.search(line) is not None
        and _any_of("nothing_said").search(line) is None
        and words.search(_any_of("denied").sub(b"", line)) is not None
    )


# What CI systems put before every line: GitHub "2026-01-01T00:00:00.0000000Z ", Jenkins the same in
# brackets, GitLab the stream after it.
TIMESTAMP = re.compile(
    rb"\[?20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?Z?\]? (?:[0-9a-f]{2}[OE]\+? ?)?"
)
_QUOTES = b"\"'`"
_QUOTED = re.compile(rb"[+-]{1,2}|[\w./-]+[:-](?:\d+[:-])?")
# GitHub shows the script of a step in this colour, before it runs it.
_SCRIPT = re.compile(rb"\S{0,30} ?\x1b\[36;1m")
_BOM = b"\xef\xbb\xbf"


def without_decoration(number: int, line: bytes) -> bytes:
    """A line without colours, its end, and a CI system's time stamp."""
    line = line.rstrip(b"\r")
    if b"\x1b" in line:
        line = b"" if _SCRIPT.match(line) else expression(__file__, "control").sub(b"", line)
    if number == 1:
        line = line.removeprefix(_BOM)
    if line.startswith((b"20", b"[20")) and (stamp := TIMESTAMP.match(line)):
        line = line[stamp.end() :]
    return line


def without_tool(line: bytes) -> bytes:
    """A line without what a tool puts before it."""
    match = expression(__file__, "tool").match(line)
    return line if match is None else line[match.end() :]


def may_be_quoted(before: bytes) -> bool:
    """Whether the words in front of a runner's prefix may be those of a program that quotes it.

    A tool's prefix does not quote, nor does an unfinished line that the runner's line ran into. A
    diff quotes, and so does grep.
    """
    rest = without_tool(before)
    shown = rest[-1:].isspace() or rest[-1:] in _QUOTES or _QUOTED.fullmatch(rest) is not None
    return bool(rest) and shown


def is_known(line: bytes) -> bool:
    """Whether a runner, a simulator or a job around them is known to print a line."""
    bare = without_tool(line)
    known = table(*(name for name in sections() if name != "driver"))  # whose row fits too much
    return is_job_line(line) or is_job_line(bare) or bool(known.first(line) or known.first(bare))


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
