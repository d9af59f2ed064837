"""A log as statements: a block of CMake's or a paragraph of Kconfig's in one line, everything else
line by line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.link.configure.failure import Statement
from harness.link.log.lines import Line

_CMAKE = re.compile(r"^CMake (?:Error|Deprecation Error)(?: at (?P<file>[^:]+?):(?P<at>\d+))?\b")
_CALLED = re.compile(r"^\s+(?P<file>\S+):(?P<at>\d+) \((?!find_package\))")
_PARAGRAPH = re.compile(r"^(?:error|warning|ERROR|WARNING|FATAL ERROR|devicetree error): ")
_INDENTED = re.compile(r"^\s")
# These folders are of Zephyr itself, whose files are not the ones to edit.
_ZEPHYRS = re.compile(r"/(?:cmake/(?:modules|toolchain|linker)|share/zephyr-package)/")


def statements_of(lines: Sequence[Line]) -> list[Statement]:
    statements, index = [], 0
    while index < len(lines):
        line = lines[index]
        if header := _CMAKE.match(line.text):
            end = _end_of_block(lines, index)
            statements.append(_cmake(lines[index:end], header))
        else:
            end = _end_of_paragraph(lines, index) if _PARAGRAPH.match(line.text) else index + 1
            statements.append(Statement(line.number, _joined(lines[index:end])))
        index = end
    return statements


def _end_of_block(lines: Sequence[Line], start: int) -> int:
    end = start + 1
    while end < len(lines) and (
        _INDENTED.match(lines[end].text) or lines[end].text.startswith("Call Stack")
    ):
        end += 1
    return end


def _end_of_paragraph(lines: Sequence[Line], start: int) -> int:
    """To the next empty line, or the next message."""
    end = start + 1
    while (
        end < len(lines)
        and lines[end].number == lines[end - 1].number + 1
        and not _PARAGRAPH.match(lines[end].text)
        and not _CMAKE.match(lines[end].text)
        and not lines[end].text.startswith("-- ")
    ):
        end += 1
    return end


def _cmake(block: Sequence[Line], header: re.Match[str]) -> Statement:
    """Where Zephyr's own CMake code complains, the place is the outermost caller outside of it, and
    none when find_package(Zephyr) is that caller, because its line is not at fault."""
    stack = next((i for i, line in enumerate(block) if line.text.startswith("Call Stack")), None)
    file, at = header["file"], header["at"]
    if file and _ZEPHYRS.search(file) and stack is not None:
        callers = [m for line in block[stack + 1 :] if (m := _CALLED.match(line.text))]
        own = [m for m in callers if not _ZEPHYRS.search(m["file"])]
        file, at = (own[-1]["file"], own[-1]["at"]) if own else (None, None)
    words = _joined(block[:stack])
    return Statement(block[0].number, words, file, int(at) if at else None)


def _joined(lines: Sequence[Line]) -> str:
    """Zephyr wraps with Python's textwrap, which breaks behind a hyphen, also inside a path."""
    text = " ".join(line.text.strip() for line in lines)
    return re.sub(r"(?<=\w)- (?=\w)", "-", text)
