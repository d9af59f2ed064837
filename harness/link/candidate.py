"""A link as a list of pieces that can be removed, linked in a directory of its own."""

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
    EM_ARM,
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHT_PROGBITS,
    SHT_STRTAB,
    SHT_SYMTAB,
    STB_GLOBAL,
    STT_FUNC,
    ElfFile,
)
from harness.link.diagnose.undefined import explain_undefined
from harness.link.failure import Failure, FailureKind, LinkCause
from harness.link.index import load
from harness.link.line.capture import run_linker
from harness.link.line.command import LinkerCall, understand, values
from harness.link.log.parse import parse

STUBS = "stubs.o"
# Causes that the link line alone shows; a reduced link must keep them.
_ON_THE_LINE = (
    LinkCause.ARCHIVE_ORDER,
    LinkCause.HIDDEN,
    LinkCause.STATIC,
    LinkCause.WRAP,
    LinkCause.LANGUAGE_LINKAGE,
    LinkCause.SIGNATURE,
)
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
    """Two failures with the same key are the same failure, whatever the files around them."""
    return failure.kind, failure.symbol or failure.region or failure.attribute


@dataclass(frozen=True)
class Goal:
    """How a candidate must fail. ``phrase``: a pattern that its message must have."""

    wanted: Key
    allowed: frozenset[Key]
    cause_kind: LinkCause | None  # one of _ON_THE_LINE, or None
    phrase: str


def goal_of(failures: Sequence[Failure], cause_kind: LinkCause | None, text: str) -> Goal:
    """To fail as the first failure does; the other failures may vanish, no new one may appear."""
    kind = cause_kind if cause_kind in _ON_THE_LINE else None
    phrase = rf"region .{re.escape(failures[0].region or '')}. overflowed by"
    phrase = phrase if re.search(phrase, text) else ""
    return Goal(key(failures[0]), frozenset(map(key, failures)), kind, phrase)


@dataclass(frozen=True)
class CandidateLinker:
    """Links candidates in ``directory``. ``stubs`` are symbols that only have to exist."""

    directory: Path
    linker: str
    goal: Goal
    arm: bool
    output: str  # the name of the product, which can be part of a message

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
            (self.directory / STUBS).write_bytes(stub_object(stubs))
        argv = (self.linker, *options, *self.argv(pieces, stubs), "-o", self.output)
        return run_linker(LinkerCall(argv, self.directory))

    def stubs_for(self, pieces: Sequence[LinePiece]) -> tuple[str, ...] | None:
        """The stubs with which the pieces fail as wanted; None when they do not fail so."""
        stubs: tuple[str, ...] = ()
        for _ in range(_ROUNDS):
            text, status = self.link(pieces, stubs)
            if status == 0:
                return None
            failures = parse(text, failed=True).failures
            keys = {key(f): f for f in failures}
            new = keys.keys() - self.goal.allowed
            more = [
                name
                for kind, name in keys
                if kind is FailureKind.UNDEFINED_SYMBOL and (kind, name) in new and name
            ]
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
        """The undefined symbols that the goal does not allow, as in the symbol table."""
        text, _ = self.link(pieces, stubs, "--no-demangle")
        symbols = [f.symbol for f in parse(text, failed=True).failures if f.symbol]
        readable = demangled(symbols)
        kind = FailureKind.UNDEFINED_SYMBOL
        return [n for n in symbols if (kind, readable[n]) not in self.goal.allowed]

    def _same_cause(
        self, pieces: Sequence[LinePiece], stubs: Sequence[str], keys: dict[Key, Failure]
    ) -> bool:
        if self.goal.wanted[0] is not FailureKind.UNDEFINED_SYMBOL:
            return True
        argv = (self.linker, *self.argv(pieces, stubs))
        index = load(understand(LinkerCall(argv, self.directory)))
        cause = explain_undefined(keys[self.goal.wanted], index, None).cause_kind
        return (cause if cause in _ON_THE_LINE else None) == self.goal.cause_kind


def pieces_of(call: LinkerCall) -> list[LinePiece]:
    """The link line as pieces, without outputs and maps; files by absolute path."""
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


def copied(pieces: Sequence[LinePiece], directory: Path, search: Sequence[Path]) -> list[LinePiece]:
    """The pieces, with their files copied into the directory under unique short names."""
    taken: dict[str, str] = {}
    result = []
    for piece in pieces:
        last = Path(piece.words[-1])
        if (piece.input or piece.words[0] == "-T") and last.is_file():
            name = _copy(last, directory, taken)
            if piece.words[0] == "-T":
                _copy_included(last, directory, search)
            piece = replace(piece, words=(*piece.words[:-1], name))
        result.append(piece)
    return result


def _copy(path: Path, directory: Path, taken: dict[str, str]) -> str:
    """Copies once; a thin archive becomes a whole one, because its members are not copied."""
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
        file = next((d / name for d in (script.parent, *search) if (d / name).is_file()), None)
        if file and not Path(name).is_absolute():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, directory / name)


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


_HEADER, _SECTION = struct.Struct("<16sHHIIIIIHHHHHH"), struct.Struct("<10I")
_IDENT, _EABI5 = b"\x7fELF\x01\x01\x01", 0x05000000
_RETURN = b"\x70\x47\x00\xbf"  # bx lr; nop


def stub_object(names: Sequence[str]) -> bytes:
    """A 32-bit little-endian Arm object that defines these Thumb functions, each of which returns.

    It has no build attributes, so that it fits the objects of every core.
    """
    strings, table = b"\0", bytes(16)
    for number, name in enumerate(names):
        address, kind = len(_RETURN) * number | 1, STB_GLOBAL << 4 | STT_FUNC
        row = (len(strings), address, len(_RETURN), kind, 0, 1)
        table += struct.pack("<IIIBBH", *row)
        strings += name.encode() + b"\0"
    section_names = b"\0.text\0.symtab\0.strtab\0.shstrtab\0"
    sections = (  # type, flags, content, link, info, alignment, entry size
        (".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, _RETURN * len(names), 0, 0, 4, 0),
        (".symtab", SHT_SYMTAB, 0, table, 3, 1, 4, 16),
        (".strtab", SHT_STRTAB, 0, strings, 0, 0, 1, 0),
        (".shstrtab", SHT_STRTAB, 0, section_names, 0, 0, 1, 0),
    )
    body, headers = b"", bytes(_SECTION.size)
    for name, kind, flags, content, link, info, align, entry in sections:
        body += bytes(-len(body) % align)
        start, size = _HEADER.size + len(body), len(content)
        text = section_names.index(b"\0" + name.encode() + b"\0") + 1
        headers += _SECTION.pack(text, kind, flags, 0, start, size, link, info, align, entry)
        body += content
    body += bytes(-len(body) % 4)
    table_at, count = _HEADER.size + len(body), len(sections) + 1
    sizes = (_HEADER.size, 0, 0, _SECTION.size, count, count - 1)
    header = _HEADER.pack(_IDENT, 1, EM_ARM, 1, 0, 0, table_at, _EABI5, *sizes)
    return header + body + headers
