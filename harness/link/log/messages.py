# ruff: noqa: RUF001
"""The messages of linkers: one rule each, read from ``messages.yaml``, the places in them, and the
lines that show how a build ended (``signs.yaml``).

An error of a linker that no rule explains is UNKNOWN, with its text: by the last rules, and by
the sign ``complaint`` for linkers that print only their name in front.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness.link.facts import read_facts
from harness.link.failure import CodePlace, FailureKind, LinkCause
from harness.link.log.lines import LinePattern

_OPEN, _CLOSE = "[`'‘“\"]", "['’”\"`]"


@dataclass(frozen=True)
class Rule(LinePattern):
    """A row of ``messages.yaml``. ``cause`` and ``attribute``: where the message says it, in
    whatever words. ``warns``: a warning, which is the cause of what fails after it."""

    kind: FailureKind
    linker: str
    cause: LinkCause | None = None
    attribute: str | None = None
    warns: bool = False


@cache
def rules() -> tuple[Rule, ...]:
    """In order: the first that matches a line explains it."""
    return read_facts(Rule, Path(__file__).with_name("messages.yaml"))


@dataclass(frozen=True)
class _Sign(LinePattern):
    shows: str


@cache
def signs() -> Mapping[str, LinePattern]:
    """How a build ended, to the lines that show it: each is found by any of its rows."""
    kinds: dict[str, list[_Sign]] = {}
    for row in read_facts(_Sign, Path(__file__).with_name("signs.yaml")):
        kinds.setdefault(row.shows, []).append(row)
    return {
        shows: LinePattern(
            tuple(dict.fromkeys(needle for row in rows for needle in row.needles)),
            re.compile("|".join(f"(?:{row.pattern.pattern})" for row in rows)),
        )
        for shows, rows in kinds.items()
    }


IN_FUNCTION = re.compile(
    rf"^(?P<at>.*?)(?:: |^)[Ii]n function {_OPEN}?(?P<function>.+){_CLOSE}:(?P<rest>.*)$"
)
MERGED = "object attributes"  # the attribute of GNU ld's second message about one file
AGGREGATE = "bytes of sections"  # of armlink: what found no place, in all
FIRST_DEFINED = "first defined here"
FIRST_HERE = re.compile(r"^(?P<at>.*?):? ?(?:first defined here|previous definition here)$")

# The text before a message.
_LINKER = re.compile(
    r"^(?:.*?[\s/\\]|)(?:[\w.+-]*-)?(?:ld|lld)(?:\.(?:bfd|lld))?(?:-\d+)?"
    r"(?:\.exe)?: ?(?=\S|$)"
)
_NOISE = re.compile(r"^(?:error|fatal error|ERROR): ")
_OBJECT = re.compile(
    r"(?P<object>(?:[A-Za-z]:[\\/])?[^:\n]*?(?:\.(?:o|obj|a|lib|rlib|elf|lo|out|axf)|\.so[.\d]*)"
    r"(?:\([^()]*(?:\([^()]*\))?[^()]*\))?)(?=[:\s(]|$)"
)
_SOURCE = re.compile(
    r"(?P<source>(?:[A-Za-z]:[\\/])?[^:()\n]+?\.(?:c|cc|cpp|cxx|c\+\+|C|h|hh|hpp|hxx|inc|ipp|tcc|S|s|asm"
    r"|cu|rs|f90)):(?P<line>\d+)?"
)
_SECTION = re.compile(
    r"\((?:function .+?: "
    r")?(?P<section>[^()\s]+(?:\([^()]*\)[^()\s]*)*?)\+(?P<offset>0x[0-9a-fA-F]+)\)"
)
_FUNCTION = re.compile(
    r"function (?P<function>.+?)(?:: \S+\+0x[0-9a-fA-F]+\).*|:? ?(?:error)?:? ?)$"
)


def without_linker(text: str) -> str:
    """The message without the linker's own name in front."""
    return _NOISE.sub("", _LINKER.sub("", text, count=1)).strip()


def parse_place(text: str) -> CodePlace:
    """Reads the place in ``lib.a(x.o):src/x.c:12:``, ``x.o:(.text+0x8):`` and their like."""
    rest = without_linker(text)
    function = _FUNCTION.search(rest)
    section = _SECTION.search(rest)
    file = _OBJECT.match(rest)
    if file:
        rest = rest[file.end() :].lstrip(":")
    source = _SOURCE.search(rest)
    return CodePlace(
        object=file["object"].strip() if file else None,
        function=function["function"].strip("`'‘’ ") if function else None,
        source=source["source"].strip() if source else None,
        line=int(source["line"]) if source and source["line"] else None,
        section=section["section"] if section else None,
        offset=int(section["offset"], 16) if section else None,
    )
