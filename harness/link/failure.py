"""The complaints of a linker, as data."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

from harness.core.verdict import Word
from harness.formats.linker_map import Contributor, Orphan


class FailureKind(Word):
    """How a link failed; the values are those of ``kind`` in --json."""

    UNDEFINED_SYMBOL = "undefined_symbol"
    DUPLICATE_SYMBOL = "duplicate_symbol"
    REGION_OVERFLOW = "region_overflow"
    SECTION_OVERLAP = "section_overlap"
    WRONG_ARCHITECTURE = "wrong_architecture"
    MISSING_LIBRARY = "missing_library"
    MISSING_FILE = "missing_file"
    RELOCATION_OUT_OF_RANGE = "relocation_out_of_range"
    DISCARDED_SECTION = "discarded_section"
    ORPHAN_SECTION = "orphan_section"
    SCRIPT_ERROR = "script_error"
    ASSERTION = "assertion"
    LTO = "lto"
    OUTPUT_ERROR = "output_error"
    LINKER_STOPPED = "linker_stopped"
    BAD_ARCHIVE = "bad_archive"
    BAD_OPTION = "bad_option"
    UNKNOWN = "unknown"


class LinkCause(Word):
    """Why it failed, if ``kind`` does not say so; the values are those of ``cause_kind`` in
    --json."""

    # of an undefined symbol that something on the link line defines
    ARCHIVE_ORDER = "archive_order"
    HIDDEN = "hidden"
    STATIC = "static"
    WRAP = "wrap"
    LANGUAGE_LINKAGE = "language_linkage"
    SIGNATURE = "signature"
    # of one that something else defines, or nothing
    LIBRARY_NOT_LINKED = "library_not_linked"
    OBJECT_NOT_LINKED = "object_not_linked"
    WEAK_DEFAULT_NOT_COMPILED = "weak_default_not_compiled"
    SOURCE_NOT_COMPILED = "source_not_compiled"
    OBJECT_MISSING = "object_missing"
    CONFIGURED_OUT = "configured_out"
    OPTION_NOT_SET = "option_not_set"
    OPTION_NOT_TAKEN = "option_not_taken"
    NO_DRIVER = "no_driver"
    NO_DEFINITION = "no_definition"
    NEWER_LIBRARY = "newer_library"
    THREAD_LOCAL = "thread_local"
    # of everything else
    LINKED_TWICE = "linked_twice"
    ORPHAN_SECTION = "orphan_section"
    NOT_IN_SEARCH_PATH = "not_in_search_path"
    NOT_OF_THIS_TOOLCHAIN = "not_of_this_toolchain"
    NOT_BUILT = "not_built"
    NO_INDEX = "no_index"
    LINKER_DEFECT = "linker_defect"
    FIXED_ADDRESS = "fixed_address"
    FATAL_WARNING = "fatal_warning"
    SECURE_ENTRY = "secure_entry"


@dataclass(frozen=True)
class CodePlace:
    """A place in an object or a source; None for unknown fields."""

    object: str | None = None  # as printed: "main.c.obj", "libx.a(y.o)"
    function: str | None = None
    source: str | None = None
    line: int | None = None
    section: str | None = None
    offset: int | None = None
    relocation: str | None = None
    binding: str | None = None  # "weak", "strong", "hidden", "static"

    def __str__(self) -> str:
        where = _plain_path(self.object or self.source or "an unnamed object")
        source = _plain_path(self.source or "")
        if source and self.line:
            source = f"{source}:{self.line}"
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
    that define a duplicate one, first definition first. ``cause`` and ``fix`` are sentences for
    people, the latter empty where nothing is sure to help; whatever else needs to know the cause
    takes ``cause_kind``.
    """

    kind: FailureKind
    linker: str  # "gnu", "lld", "armlink", "iar", "msvc", "ti" or "driver"
    line: int  # of the log, from 1
    text: str
    symbol: str | None = None
    demangled: str | None = None
    mangled: str | None = None  # as in the symbol table
    region: str | None = None
    bytes: int | None = None
    sections: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    places: tuple[CodePlace, ...] = ()
    definitions: tuple[CodePlace, ...] = ()
    attribute: str | None = None
    binding: str | None = None
    also: tuple[str, ...] = ()  # subjects of other messages of the same cause
    contributors: tuple[Contributor, ...] = ()
    orphans: tuple[Orphan, ...] = ()
    cause_kind: LinkCause | None = None
    cause: str = ""
    fix: str = ""

    @property
    def subject(self) -> str:
        """The symbol, region, attribute or file that the failure is about, else its text."""
        named = self.demangled or self.symbol or self.region or self.attribute
        return named or (self.files[0] if self.files else self.text)


Key = tuple[FailureKind, str | None]


def key(failure: Failure) -> Key:
    """Two failures with the same key are the same failure, whatever the files around them."""
    return failure.kind, failure.symbol or failure.region or failure.attribute


def _plain_path(path: str) -> str:
    """Removes the ``dir/..`` that toolchains print in the paths of their libraries."""
    return posixpath.normpath(path) if "/../" in path else path


def archive_of(name: str) -> str:
    """The file of an object as linkers print it: "libx.a" of "libx.a(y.o)", else the name."""
    return name.split("(", 1)[0]


def member_of(name: str) -> str:
    """The object by itself: "y.o" of "libx.a(y.o)", else the name."""
    return name[name.rfind("(") + 1 : -1] if name.endswith(")") else name


def file_name(path: str) -> str:
    """The last part of a path, as Unix or Windows writes it."""
    return re.split(r"[/\\]", path)[-1]
