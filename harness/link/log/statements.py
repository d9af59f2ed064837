"""A build log as statements: a block of CMake's, a paragraph of Kconfig's or a Python traceback in
one line, everything else line by line; errors of other compilers in GCC's words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.core.tables import read_table
from harness.link.log.lines import Line, Lines

MOST_LINES = 60  # of one message
# Words of each line that begins a block, a paragraph or a traceback.
_BEGINNINGS = (
    *("CMake Error", "CMake Deprecation Error", "Traceback (", "Exception: "),
    *("rror: ", "RROR: ", "rror[", "arning: ", "ARNING: "),
)
RAISED = re.compile(r"^[\w.]+(?:Error|Exception): \S")
_CMAKE = re.compile(
    r"^(?P<indent>\s*)CMake (?:Error|Deprecation Error)(?: at (?P<file>[^:]+?):(?P<at>\d+))?\b"
)
_CALLED = re.compile(r"^\s+(?P<file>\S+):(?P<at>\d+) \((?!find_package\))")
_PARAGRAPH = re.compile(r"^(?:error|warning|ERROR|WARNING|FATAL ERROR|devicetree error): ")
# These folders are of Zephyr itself, whose files are not the ones to edit.
_ZEPHYRS = re.compile(r"/(?:cmake/(?:modules|toolchain|linker)|share/zephyr-package)/")


@dataclass(frozen=True, slots=True)
class Statement:
    """One message of a log on one line, however the log wrapped it. ``file`` and ``at``: the place
    that CMake names; in the user's own files if one of them called the code that complains."""

    line: int
    text: str
    file: str | None = None
    at: int | None = None


def statements_of(lines: Lines, words: Iterable[str] = ()) -> Iterator[Statement]:
    """The warnings, errors and exceptions of a log, and the lines that have one of the words; most
    lines belong to none."""
    end = 0
    for index, line in lines.having({*_BEGINNINGS, *words}):
        if index < end:  # of the one before
            continue
        if header := _CMAKE.match(line.text):
            # ``indent``: of the whole block, if a nested build prints it.
            indent = header["indent"]
            inside = tuple(f"{indent}{mark}" for mark in (" ", "\t", "Call Stack"))
            end = index + 1
            while end < len(lines) and lines[end].text.startswith(inside):
                end += 1
            yield _cmake(lines[index:end], header)
            continue
        end = index + 1
        if line.text.startswith("Traceback ("):
            window = enumerate(lines[index + 1 : index + MOST_LINES], index + 2)
            end = next((n for n, line in window if RAISED.match(line.text)), end)
        elif _PARAGRAPH.match(line.text):
            # The index of the next empty line or message.
            while (
                end < len(lines)
                and lines[end].number == lines[end - 1].number + 1
                and not _PARAGRAPH.match(lines[end].text)
                and not _CMAKE.match(lines[end].text)
                and not lines[end].text.startswith("-- ")
            ):
                end += 1
        text = joined([line] if end == index + 1 else lines[index:end])
        for row in read_table(__file__)["compilers"] if "rror" in text else ():
            text = re.sub(row["pattern"], row["words"], text)
        yield Statement(line.number, text)


def _cmake(block: Sequence[Line], header: re.Match[str]) -> Statement:
    """If Zephyr's own CMake code complains, the place is the outermost caller outside of it; none
    if that is find_package(Zephyr), because its line is not at fault."""
    stack = next((i for i, line in enumerate(block) if "Call Stack (" in line.text), None)
    file, at = header["file"], header["at"]
    if file and _ZEPHYRS.search(file) and stack is not None:
        callers = [m for line in block[stack + 1 :] if (m := _CALLED.match(line.text))]
        own = [m for m in callers if not _ZEPHYRS.search(m["file"])]
        file, at = (own[-1]["file"], own[-1]["at"]) if own else (None, None)
    words = joined(block[:stack])
    return Statement(block[0].number, words, file, int(at) if at else None)


def joined(lines: Sequence[Line]) -> str:
    """Zephyr wraps with Python's textwrap, which breaks after a hyphen, also inside a path."""
    text = " ".join(line.text.strip() for line in lines)
    return re.sub(r"(?<=\w)- (?=\w)", "-", text)
