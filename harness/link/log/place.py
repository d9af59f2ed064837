# ruff: noqa: RUF001
"""The part of a linker's message that says where."""

from __future__ import annotations

import re

from harness.link.failure import Place

_LINKER = re.compile(
    r"^(?:.*?[\s/\\]|)(?:[\w.+-]*-)?(?:ld|gold|lld|mold)(?:\.(?:bfd|gold|lld|classic))?(?:-\d+)?"
    r"(?:\.exe)?: ?(?=\S|$)"
)
_NOISE = re.compile(r"^(?:error|fatal error|ERROR): ")
_OBJECT = re.compile(
    r"(?P<object>(?:[A-Za-z]:[\\/])?[^:\n]*?(?:\.(?:o|obj|a|lib|elf|lo|out|axf)|\.so[.\d]*)"
    r"(?:\([^()]*(?:\([^()]*\))?[^()]*\))?)(?=[:\s(]|$)"
)
_SOURCE = re.compile(
    r"(?P<source>(?:[A-Za-z]:[\\/])?[^:()\n]+?\.(?:c|cc|cpp|cxx|c\+\+|C|h|hh|hpp|hxx|inc|ipp|tcc|S|s|asm"
    r"|cu|rs|f90)):(?P<line>\d+)?"
)
_SECTION = re.compile(
    r"\((?P<section>[^()\s]+(?:\([^()]*\)[^()\s]*)*?)\+(?P<offset>0x[0-9a-fA-F]+)\)"
)
_FUNCTION = re.compile(r"function (?P<function>.+?)(?::? ?(?:error)?:? ?)$")


def without_linker(text: str) -> str:
    """The message without the linker's own name in front."""
    return _NOISE.sub("", _LINKER.sub("", text, count=1)).strip()


def parse_place(text: str) -> Place:
    """What is known from ``lib.a(x.o):src/x.c:12:``, ``x.o:(.text+0x8):`` and their like."""
    rest = without_linker(text)
    function = _FUNCTION.search(rest)
    section = _SECTION.search(rest)
    found = _OBJECT.match(rest)
    if found:
        rest = rest[found.end() :].lstrip(":")
    source = _SOURCE.search(rest)
    return Place(
        object=found["object"].strip() if found else None,
        function=_unquoted(function["function"]) if function else None,
        source=source["source"].strip() if source else None,
        line=int(source["line"]) if source and source["line"] else None,
        section=section["section"] if section else None,
        offset=int(section["offset"], 16) if section else None,
    )


def _unquoted(name: str) -> str:
    return name.strip("`'‘’ ")


def stem(path: str) -> str:
    """The name by which an object and its source know each other: "lib.a(io.c.obj)" is "io"."""
    inner = path[path.rfind("(") + 1 : -1] if path.endswith(")") else path
    return re.split(r"[\\/]", inner)[-1].split(".", 1)[0]
