"""A build log as plain lines: without colours, carriage returns and the prefixes of wrappers; GNU
ld's main messages of other languages in English."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, overload

from harness.config.schema import Data
from harness.core.errors import UsageError
from harness.core.safe_text import without_controls
from harness.core.tables import read_table
from harness.link.facts import read_facts
from harness.system.files import regular

# Emphasis of somebody who pasted a log into Markdown; not the stars of `f(char**)`.
_BOLD = re.compile(r"(?<![\w*])\*\*(?=[^\s*])|(?<=[\w.)])\*\*(?=[\s:]|$)")
# Parallel jobs may write without an end of line: another message begins after this one.
_GLUED = re.compile(
    r"(?P<message>undefined reference to [`'][^`]+?')"
    r"(?P<next>(?:make(?:\[\d+\])?|ninja|\S*?\bld(?:\.\w+)?): |\[\d+/\d+\]|collect2: )"
)

_IN_BLOCK = 256  # lines
# gzip, zip, xz, bzip2, zstd
_PACKED = (b"\x1f\x8b", b"PK\x03\x04", b"\xfd7zXZ", b"BZh", b"\x28\xb5\x2f\xfd")


class Line(NamedTuple):
    number: int  # in the log, from 1
    text: str


class Lines(Sequence[Line]):
    """A log of a million lines takes half the memory as blocks of text, and is searched for words
    a block at a time; a line is made when it is looked at."""

    def __init__(self, numbered: Iterable[tuple[int, str]]) -> None:
        self._blocks: list[str] = []
        self._numbers = array("L")
        self._split: tuple[int, list[str]] = (-1, [])  # the block that was looked at last
        rest = iter(numbered)
        while block := list(islice(rest, _IN_BLOCK)):
            self._numbers.extend(number for number, _ in block)
            self._blocks.append("\n".join(text for _, text in block))

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Line]:
        texts = chain.from_iterable(block.split("\n") for block in self._blocks)
        return map(Line._make, zip(self._numbers, texts, strict=True))

    @overload
    def __getitem__(self, index: int) -> Line: ...
    @overload
    def __getitem__(self, index: slice) -> list[Line]: ...
    def __getitem__(self, index: int | slice) -> Line | list[Line]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number = self._numbers[index]  # or IndexError
        block, place = divmod(index % len(self), _IN_BLOCK)
        if block != self._split[0]:
            self._split = (block, self._blocks[block].split("\n"))
        return Line(number, self._split[1][place])

    def having(self, words: Collection[str]) -> Iterator[tuple[int, Line]]:
        """The lines that have one of the words, each with its index."""
        for number, block in enumerate(self._blocks):
            present = [word for word in words if word in block]
            for index, text in enumerate(block.split("\n") if present else (), number * _IN_BLOCK):
                if any(map(text.__contains__, present)):
                    yield index, Line(self._numbers[index], text)

    def numbered(self, first: int, end: int) -> list[Line]:
        """Those of the log's lines ``first`` to ``end - 1``."""
        return self[bisect_left(self._numbers, first) : bisect_left(self._numbers, end)]


@dataclass(frozen=True)
class Found:
    """``index``: of the line, in its Lines."""

    index: int
    line: Line
    match: re.Match[str]


@dataclass(frozen=True)
class LinePattern(Data):
    """``needles``: of which a line that the pattern finds something in has at least one; most lines
    of a log have none, and to look for words takes a tenth of the time of a search."""

    needles: tuple[str, ...]
    pattern: re.Pattern[str]

    def search(self, text: str) -> re.Match[str] | None:
        relevant = any(needle in text for needle in self.needles)
        return self.pattern.search(text) if relevant else None

    def found_in(self, lines: Lines) -> Iterator[Found]:
        """Yields the matches in the lines, in order."""
        for index, line in lines.having(self.needles):
            if match := self.pattern.search(line.text):
                yield Found(index, line, match)


def lines_of(text: str) -> Lines:
    """Every line that has text, in order, cleaned.

    A carriage return inside a line starts it again, as on a terminal. The text before it is kept
    as a line of its own, because progress bars and compilers share the terminal.
    """
    return Lines(_cleaned(text.split("\n")))


def read_lines(path: Path) -> tuple[Lines, bool]:
    """``lines_of`` a log of unknown origin, UTF-16 from PowerShell or UTF-8 with damage kept, and
    whether it ends in the middle of a line. A large file's text is never held as a whole."""
    with regular(path) as (file, size):
        head = file.read(64)
        if head.startswith(_PACKED):
            raise UsageError(f"{path} is compressed", hint="unpack it first", path=path)
        zeros = [head[start::2].count(0) * 3 > len(head) for start in (1, 0)]
        wide = head[:2] in (b"\xff\xfe", b"\xfe\xff") or any(zeros)
        file.seek(max(0, size - (2 if wide else 1)))
        cut = b"\n" not in file.read() and size > 0
    unmarked = "utf-16-le" if zeros[0] else "utf-16-be"
    marked = "utf-16" if head[:1] in (b"\xff", b"\xfe") else unmarked
    encoding = marked if wide else "utf-8-sig"
    with path.open(encoding=encoding, errors="replace", newline="\n") as text:
        return Lines(_cleaned(text)), cut


def _cleaned(raw_lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    prefixes = re.compile(f"^(?:{'|'.join(read_table(__file__)['prefixes'])})+")
    for number, raw in enumerate(raw_lines, 1):
        for part in raw.rstrip("\n").split("\r"):
            plain = without_controls(part)
            if "undefined reference" in plain:
                plain = _GLUED.sub(r"\g<message>\r\g<next>", plain)
            for piece in plain.split("\r"):
                clean = prefixes.sub("", piece).rstrip()
                if "**" in clean:
                    clean = _BOLD.sub("", clean)
                if clean:
                    yield number, _english(clean)


@dataclass(frozen=True)
class _Translation(Data):
    """``patterns``: the message in other languages; ``english`` may refer to their groups."""

    english: str
    patterns: tuple[str, ...]


@cache
def _translations() -> tuple[tuple[re.Pattern[str], str], ...]:
    rows = read_facts(_Translation, Path(__file__).with_name("translations.yaml"))
    return tuple((re.compile(p, re.IGNORECASE), row.english) for row in rows for p in row.patterns)


# Words of messages in other languages that have no letter outside ASCII.
_ASCII = re.compile(
    "sin definir|riferimento non|udefineret|Verweis auf|Funktion|w funkcji|Mehrfachdefinition"
    "|wielokrotna|definizione multipla|nella funzione|no cabe en|se desborda|overflow della"
)


def _english(line: str) -> str:
    """The line, with the messages that are known in other languages in English."""
    if line.isascii() and not _ASCII.search(line):
        return line
    for pattern, translation in _translations():
        line = pattern.sub(translation, line)
    return line.replace("\uff1a", ": ")  # the colon of Chinese and Japanese
