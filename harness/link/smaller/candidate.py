"""A link as a list of pieces that can be taken away, in a directory of its own."""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.formats import archive as ar
from harness.formats.damage import DamagedFile
from harness.formats.demangle import demangled
from harness.formats.elf import (
    SHN_COMMON,
    STB_GLOBAL,
    STB_WEAK,
    STT_FUNC,
    STT_OBJECT,
    ElfFile,
)
from harness.link.failure import Failure, FailureKind, LinkCause
from harness.link.line.capture import run_linker
from harness.link.line.command import LinkerCall, understand, values
from harness.link.log.parse import parse
from harness.link.model.index import load
from harness.link.why.undefined import explain_undefined

STUBS = "stubs.o"
# Causes that the link line alone shows; a reduced link must keep them.
_ON_THE_LINE = (LinkCause.ARCHIVE_ORDER, LinkCause.HIDDEN, LinkCause.STATIC, LinkCause.WRAP,
                LinkCause.LANGUAGE_LINKAGE, LinkCause.SIGNATURE)  # fmt: skip
_ROUNDS = 6


@dataclass(frozen=True)
class LinePiece:
    """Words of the link line that go together: an input, or an option with its value."""

    words: tuple[str, ...]
    input: bool = False
    whole: bool = False
    group: int = 0


Key = tuple[FailureKind, str | None]


def key(failure: Failure) -> Key:
    """What makes two failures the same, whatever the files around them."""
    return failure.kind, failure.symbol or failure.region or failure.attribute


@dataclass(frozen=True)
class Goal:
    """How a candidate must fail."""

    wanted: Key
    allowed: frozenset[Key]
    cause_kind: LinkCause | None  # one of _ON_THE_LINE, or None
    phrase: str  # a regular expression for what must be said


def goal_of(failures: Sequence[Failure], cause_kind: LinkCause | None, text: str) -> Goal:
    """To fail as the first failure does; the others may go, nothing may come."""
    kind = cause_kind if cause_kind in _ON_THE_LINE else None
    phrase = rf"region .{re.escape(failures[0].region or '')}. overflowed by"
    phrase = phrase if re.search(phrase, text) else ""
    return Goal(key(failures[0]), frozenset(map(key, failures)), kind, phrase)


@dataclass(frozen=True)
class Workshop:
    """Where candidates are linked. ``stubs`` are symbols that only have to exist."""

    directory: Path
    linker: str
    goal: Goal
    arm: bool
    output: str  # its name can be part of a message

    def argv(self, pieces: Sequence[LinePiece], stubs: Sequence[str]) -> list[str]:
        words: list[str] = []
        whole, group = False, 0
        for piece in pieces:
            if piece.group != group and group:
                words.append("--end-group")
            if piece.group != group and piece.group:
                words.append("--start-group")
            if piece.whole != whole:
                words.append("--whole-archive" if piece.whole else "--no-whole-archive")
            whole, group = piece.whole, piece.group
            words += piece.words
        words += ["--no-whole-archive"] * whole + ["--end-group"] * bool(group)
        return words + ([STUBS] if stubs else [])

    def link(
        self, pieces: Sequence[LinePiece], stubs: Sequence[str], *options: str
    ) -> tuple[str, int]:
        if stubs:
            symbols = [NewSymbol(name, "def", function=True) for name in stubs]
            (self.directory / STUBS).write_bytes(write_object(symbols))
        argv = (self.linker, *options, *self.argv(pieces, stubs), "-o", self.output)
        return run_linker(LinkerCall(argv, self.directory))

    def stubs_for(self, pieces: Sequence[LinePiece]) -> tuple[str, ...] | None:
        """The stubs with which the pieces fail as wanted; None when they do not."""
        stubs: tuple[str, ...] = ()
        for _ in range(_ROUNDS):
            text, status = self.link(pieces, stubs)
            if status == 0:
                return None
            failures = parse(text, failed=True).failures
            keys = {key(f): f for f in failures}
            new = keys.keys() - self.goal.allowed
            more = [
                name for kind, name in keys
                if kind is FailureKind.UNDEFINED_SYMBOL and (kind, name) in new and name
            ]  # fmt: skip
            if not more:
                same = self.goal.wanted in keys and set(keys) <= self.goal.allowed
                same = same and re.search(self.goal.phrase, text) is not None
                return stubs if same and self._same_cause(pieces, stubs, keys) else None
            if any(not re.fullmatch(r"[\w.$]+", name) for name in more):
                more = self._mangled(pieces, stubs)
            if not self.arm or not more:
                return None
            stubs = (*stubs, *more)
        return None

    def _mangled(self, pieces: Sequence[LinePiece], stubs: Sequence[str]) -> list[str]:
        """The undefined symbols that are not wanted, as they are in the symbol table."""
        text, _ = self.link(pieces, stubs, "--no-demangle")
        found = [f.symbol for f in parse(text, failed=True).failures if f.symbol]
        said = demangled(found)
        wanted = FailureKind.UNDEFINED_SYMBOL
        return [n for n in found if (wanted, said[n]) not in self.goal.allowed]

    def _same_cause(
        self, pieces: Sequence[LinePiece], stubs: Sequence[str], keys: dict[Key, Failure]
    ) -> bool:
        if self.goal.wanted[0] is not FailureKind.UNDEFINED_SYMBOL:
            return True
        argv = (self.linker, *self.argv(pieces, stubs))
        index = load(understand(LinkerCall(argv, self.directory)))
        found = explain_undefined(keys[self.goal.wanted], index, None).cause_kind
        return (found if found in _ON_THE_LINE else None) == self.goal.cause_kind


def pieces_of(call: LinkerCall) -> list[LinePiece]:
    """The link line as pieces, outputs and maps left out; files by absolute path."""
    line = understand(call)
    inputs = {each.index: each for each in line.inputs}
    skipped = {"--whole-archive", "--no-whole-archive", "--start-group", "--end-group", "-(", "-)"}
    pieces = []
    for index, option, value in values(call.argv):
        word = call.argv[index]
        if index in inputs:
            each = inputs[index]
            name = str(each.path) if each.path else each.word
            pieces.append(LinePiece((name,), True, each.whole, each.group))
        elif option in ("-o", "--output", "-Map", "--Map", "--cref") or option in skipped:
            continue
        elif option in ("-L", "--library-path") and value:
            pieces.append(LinePiece(("-L", str(call.resolve(value)))))
        elif option in ("-T", "--script", "-dT") and value:
            script = next(p for p in line.scripts if p.name == Path(value).name)
            pieces.append(LinePiece(("-T", str(script))))
        else:
            separate = value is not None and word == option
            pieces.append(LinePiece((word, value) if separate and value is not None else (word,)))
    return pieces


def brought_in(
    pieces: Sequence[LinePiece], directory: Path, search: Sequence[Path]
) -> list[LinePiece]:
    """The pieces with their files copied into the directory, by unique short names."""
    taken: dict[str, str] = {}
    found = []
    for piece in pieces:
        last = Path(piece.words[-1])
        if (piece.input or piece.words[0] == "-T") and last.is_file():
            name = _copy(last, directory, taken)
            if piece.words[0] == "-T":
                _copy_included(last, directory, search)
            piece = replace(piece, words=(*piece.words[:-1], name))
        found.append(piece)
    return found


def _copy(path: Path, directory: Path, taken: dict[str, str]) -> str:
    """Copy once; a thin archive becomes a whole one, since its members stay behind."""
    for name, source in taken.items():
        if source == str(path):
            return name
    name, number = path.name, 1
    while name in taken:
        name, number = f"{number}_{path.name}", number + 1
    taken[name] = str(path)
    with path.open("rb") as file:
        thin = file.read(8) == ar.THIN
    if thin:
        write_members(directory / name, [(m.name, m.data) for m in ar.members(path)])
    else:
        shutil.copyfile(path, directory / name)
    return name


def _copy_included(script: Path, directory: Path, search: Sequence[Path]) -> None:
    for name in re.findall(
        r"^\s*INCLUDE\s+\"?([^\s\"]+)", script.read_text("utf-8", "replace"), re.M
    ):
        found = next((d / name for d in (script.parent, *search) if (d / name).is_file()), None)
        if found and not Path(name).is_absolute():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(found, directory / name)


def write_members(path: Path, members: Sequence[tuple[str, bytes]]) -> None:
    """An archive with an index made from the members' own symbols."""
    parts = []
    for name, data in members:
        try:
            symbols = [s.name for s in ElfFile(data, name).globals if s.defined]
        except DamagedFile:
            symbols = []
        parts.append((name, data, symbols))
    ar.write_archive(path, parts)


_R_ARM_ABS32 = 2
_EABI5 = 0x05000000
_HEADER, _SECTION = 52, 40


@dataclass(frozen=True)
class NewSymbol:
    """``state`` as in model.py; a reference with ``used`` gets a word in .data."""

    name: str
    state: str
    function: bool = False
    used: bool = True
    size: int = 4


def write_object(symbols: Sequence[NewSymbol]) -> bytes:
    """A little-endian 32-bit Arm object; definitions are in .text (functions) or .data."""
    strings, table, text, data = b"\0", [bytes(16)], b"", b""
    relocations = []
    for number, symbol in enumerate(symbols, 1):
        bind = STB_WEAK if symbol.state in ("undefweak", "defweak") else STB_GLOBAL
        kind, shndx, value, size = 0, 0, 0, 0
        if symbol.state in ("undef", "undefweak"):
            if symbol.used:
                relocations.append(struct.pack("<II", len(data), number << 8 | _R_ARM_ABS32))
                data += bytes(4)
        elif symbol.state == "common":
            kind, shndx, value, size = STT_OBJECT, SHN_COMMON, 4, symbol.size
        elif symbol.function:
            kind, shndx, value, size = STT_FUNC, 1, len(text) | 1, symbol.size
            text += b"\x70\x47\x00\xbf"  # bx lr; nop
        else:
            kind, shndx, value, size = STT_OBJECT, 2, len(data), symbol.size
            data += bytes(symbol.size + -symbol.size % 4)
        table.append(struct.pack("<IIIBBH", len(strings), value, size, bind << 4 | kind, 0, shndx))
        strings += symbol.name.encode() + b"\0"
    return _file(text, data, b"".join(relocations), b"".join(table), strings)


def _file(text: bytes, data: bytes, relocations: bytes, table: bytes, strings: bytes) -> bytes:
    names = b"\0.text\0.data\0.rel.data\0.symtab\0.strtab\0.shstrtab\0"
    # name, type, flags, content, link, info, alignment, entry size
    sections = (
        (".text", 1, 6, text, 0, 0, 4, 0),
        (".data", 1, 3, data, 0, 0, 4, 0),
        (".rel.data", 9, 0x40, relocations, 4, 2, 4, 8),
        (".symtab", 2, 0, table, 5, 1, 4, 16),
        (".strtab", 3, 0, strings, 0, 0, 1, 0),
        (".shstrtab", 3, 0, names, 0, 0, 1, 0),
    )
    body, headers = b"", [bytes(_SECTION)]
    for name, kind, flags, content, link, info, align, entry in sections:
        body += bytes(-len(body) % align)
        at = names.find(b"\0" + name.encode() + b"\0") + 1
        headers.append(struct.pack("<10I", at, kind, flags, 0, _HEADER + len(body), len(content),
                                   link, info, align, entry))  # fmt: skip
        body += content
    body += bytes(-len(body) % 4)
    header = b"\x7fELF\x01\x01\x01" + bytes(9) + struct.pack(
        "<HHIIIIIHHHHHH", 1, 40, 1, 0, 0, _HEADER + len(body), _EABI5, _HEADER, 0, 0, _SECTION,
        len(headers), len(headers) - 1,
    )  # fmt: skip
    return header + body + b"".join(headers)
