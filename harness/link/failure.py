"""What a linker complained about, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

# What the reader of --json may find in ``kind``.
KINDS = (
    "undefined_symbol",
    "duplicate_symbol",
    "region_overflow",
    "section_overlap",
    "wrong_architecture",
    "missing_library",
    "missing_file",
    "relocation_out_of_range",
    "discarded_section",
    "orphan_section",
    "script_error",
    "assertion",
    "lto",
    "output_error",
    "linker_stopped",
    "unknown",
)


@dataclass(frozen=True)
class Place:
    """One spot in an object or a source; whatever is not known is None."""

    object: str | None = None  # as printed: "main.c.obj", "libx.a(y.o)"
    function: str | None = None
    source: str | None = None
    line: int | None = None
    section: str | None = None
    offset: int | None = None
    relocation: str | None = None
    binding: str | None = None  # "weak", "strong", "hidden", "static"

    def __str__(self) -> str:
        where = self.object or self.source or "an unnamed object"
        source = f"{self.source}:{self.line}" if self.source and self.line else self.source
        if source and source != where:
            where = f"{where} ({source})"
        if self.function:
            where += f", function {self.function}"
        elif self.section:
            where += f", section {self.section}"
        return where


@dataclass(frozen=True)
class Failure:
    """One reason why a link failed.

    ``symbol`` is as the linker printed it. ``places`` are those that need an undefined symbol, or
    that define a duplicate one, first definition first. ``cause`` and ``fix`` are sentences;
    ``cause_kind`` is the cause for machines ("archive_order", "library_not_linked", ...).
    """

    kind: str
    linker: str  # "gnu", "gold", "lld", "armlink", "driver"
    line: int  # of the log, from 1
    text: str
    symbol: str | None = None
    demangled: str | None = None
    mangled: str | None = None  # as in the symbol table
    region: str | None = None
    bytes: int | None = None
    sections: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()
    definitions: tuple[Place, ...] = ()
    attribute: str | None = None
    binding: str | None = None
    contributors: tuple[Mapping[str, Any], ...] = ()
    orphans: tuple[Mapping[str, Any], ...] = ()
    cause_kind: str | None = None
    cause: str = ""
    fix: str = ""

    def summary(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def subject(self) -> str:
        """What the failure is about, in a word."""
        named = self.demangled or self.symbol or self.region or self.attribute
        return named or (self.files[0] if self.files else self.text)
