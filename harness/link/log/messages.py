# ruff: noqa: RUF001
"""The messages of linkers: one rule each, read from ``messages.yaml``, and the places in them.

An error of a linker that no rule explains is UNKNOWN, with its text: by the last rules, and by
``COMPLAINT`` for linkers that print only their name in front.
"""

from __future__ import annotations

import re
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
    whatever words."""

    kind: FailureKind
    linker: str
    cause: LinkCause | None = None
    attribute: str | None = None


@cache
def rules() -> tuple[Rule, ...]:
    """In order: the first that matches a line explains it."""
    return read_facts(Rule, Path(__file__).with_name("messages.yaml"))


# What says that the linker gave up, without saying why.
LINK_FAILED = LinePattern(
    ("collect2", "ld returned ", "command failed", "Finished: "),
    re.compile(
        r"collect2: (?:fatal )?error: .*|\bld returned \d+ exit status"
        r"|(?:linker|ld\S*) command failed"
        r"|^collect2\s?[:：] ?\S+?\s?[:：] ?.*\bld(?!\w).*[1-9]"  # in whatever language
        r"|Finished: \d+ information, \d+ warning(?:, \d+ error)? and [1-9]\d* (?:fatal )?error "
        r"messages"
    ),
)
# A line of a linker that prints its name alone in front of an error.
COMPLAINT = LinePattern(
    ("ld: ", "ld."),
    re.compile(
        r"^(?:\S*[/\\])?(?:[\w.+-]*-)?(?:ld|lld)(?:\.\w+)?: (?P<text>.*\b(?i:errors?|fatal|"
        r"cannot|can't|could not|unrecogni[sz]ed|unknown|undefined|failed|invalid|unable to|"
        r"not found|no such|missing|unsupported|illegal|bad|malformed)\b.*)$"
    ),
)
# What shows that a link was done, whoever tells it: a build system, a linker's own summary, or the
# command itself.
LINKED = LinePattern(
    (
        "Link",
        "LINK",
        "LD",
        "linking...",
        "Built target",
        "Memory region",
        "Program Size",
        "Finished: ",
        "IAR ELF",
        " 0 Error(s)",
        "errors: 0",
        "ninja: no work",
        " -o ",
    ),
    re.compile(
        r"\bLinking (?:\w+ )*(?:executable|shared library|shared module)\b"
        r"|^\s*(?:\[\s*\d+/\d+\] )?(?:LD|LINK|CXXLD|CCLD|Link(?:ing)?:?)\s+"
        r"(?!.*\bstatic library )\S"
        r"|^linking\.\.\.$"
        r"|\[100%\] Built target |^Memory region\s+Used Size|^Program Size: Code=|- 0 Error\(s\)"
        r"|Finished: \d+ information, \d+ warning(?:, 0 error)? and 0 (?:fatal )?error messages"
        r"|\bIAR ELF Linker\b|^Total number of errors: 0$|^ninja: no work to do"
        r"|(?:^|[\s/\\])(?:[\w.+-]*-)?(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+|ld|ld\.\w+|armclang|"
        r"armlink|ilinkarm)(?:-\d+)?(?:\.exe)? (?!(?:.* )?-[cSE] )(?:.* )?-o "
    ),
)
# What shows that a build did not get to its end, for whatever reason.
STOPPED = LinePattern(
    (
        "*** ",
        "ninja: ",
        "FAILED: ",
        "error",
        "CMake Error",
        "Error(s)",
        "ERROR: ",
        "Error: ",
        "Error while",
        "Target not created",
        "rror[Pe",
        "fatal: ",
        "Generate step failed",
    ),
    re.compile(
        r"\*\*\* .*\b(?:Error|Fehler|Erreur|Errore?) \d+|\bmake(?:\[\d+\])?: \*\*\* |^ninja: "
        r"(?:error|fatal|build stopped)|^FAILED: |: (?:fatal )?error(?: [A-Z]\d+)?: |^CMake Error\b"
        r"|- [1-9]\d* Error\(s\)|^FATAL ERROR: "
        r"|^Error while running Linker|^Total number of errors: [1-9]|\bTarget not created\b"
        r"|[Ee]rror\[Pe\d+\]|^(?:error|Error|ERROR|fatal error): (?!0\b|.*\b[Ww]arning\b)"
        r"|^CMake Generate step failed"
        # Of git; that there is no repository or no tag to describe stops no build.
        r"|^fatal: (?:[Uu]nable to|[Cc]ould not|clone of|[Rr]efusing|[Rr]emote|.* not a valid) "
    ),
)
KILLED = LinePattern(
    ("terminated with signal", "memory"),
    re.compile(
        r"(?:ld|collect2)\S* (?:.*)terminated with signal (?P<signal>\d+)"
        r"|\bld\S*: .*(?P<memory>memory exhausted|[Oo]ut of memory|Cannot allocate memory)"
        r"|L6000U: (?P<armlink>Out of memory)"
    ),
)
ASSERTION = LinePattern(
    ("ld", "gcc: "),
    re.compile(
        r"^(?:\S*(?:\bld\S*|gcc): )(?:error: )?(?:\S+\.(?:ld|lds|cmd|x)\S*: )?"
        r"(?P<text>(?!warning)[A-Z].{8,})$"
    ),
)
IN_FUNCTION = re.compile(
    rf"^(?P<at>.*?)(?:: |^)[Ii]n function {_OPEN}?(?P<function>.+){_CLOSE}:(?P<rest>.*)$"
)
MERGED = "object attributes"  # the attribute of GNU ld's second message about one file
AGGREGATE = "bytes of sections"  # of armlink: what found no place, in all
FIRST_DEFINED = "first defined here"
FIRST_HERE = re.compile(r"^(?P<at>.*?):? ?(?:first defined here|previous definition here)$")

# Of what precedes a message.
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
    """What is known from ``lib.a(x.o):src/x.c:12:``, ``x.o:(.text+0x8):`` and their like."""
    rest = without_linker(text)
    function = _FUNCTION.search(rest)
    section = _SECTION.search(rest)
    found = _OBJECT.match(rest)
    if found:
        rest = rest[found.end() :].lstrip(":")
    source = _SOURCE.search(rest)
    return CodePlace(
        object=found["object"].strip() if found else None,
        function=_unquoted(function["function"]) if function else None,
        source=source["source"].strip() if source else None,
        line=int(source["line"]) if source and source["line"] else None,
        section=section["section"] if section else None,
        offset=int(section["offset"], 16) if section else None,
    )


def _unquoted(name: str) -> str:
    return name.strip("`'‘’ ")
