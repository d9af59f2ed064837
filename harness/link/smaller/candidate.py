"""A link as a list of pieces that can be taken away, in a directory of its own."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.formats import archive as ar
from harness.formats.damage import DamagedFile
from harness.formats.demangle import demangled
from harness.formats.elf import ElfFile
from harness.formats.elf_writer import NewSymbol, write_object
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
