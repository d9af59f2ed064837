"""A link as a list of pieces that can be removed, linked in a directory of its own."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from harness.core.errors import InfraError, MalformedFile
from harness.formats import archive as ar
from harness.formats.demangle import demangled
from harness.formats.elf import ElfFile
from harness.link.command import LinkerCall, run
from harness.link.diagnose.undefined import explain_undefined
from harness.link.failure import Failure, FailureKind, Key, LinkCause, key
from harness.link.index import LinkIndex, load
from harness.link.log.parse import parse
from harness.system.files import text_of

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
_INCLUDE = re.compile(r"^\s*INCLUDE\s+\"?([^\s\"]+)", re.MULTILINE)


@dataclass(frozen=True)
class LinePiece:
    """Words of the link line that go together: an input, or an option with its value."""

    words: tuple[str, ...]
    input: bool = False
    whole: bool = False
    group: int = 0


@dataclass(frozen=True)
class Goal:
    """How a candidate must fail. ``phrase``: a pattern that its message must have."""

    wanted: Key
    allowed: frozenset[Key]
    cause_kind: LinkCause | None  # one of _ON_THE_LINE, or None
    phrase: str


def goal_of(failures: Sequence[Failure], index: LinkIndex, text: str) -> Goal:
    """Fails like the first failure. Other failures may vanish; no new one may appear."""
    phrase = rf"region .{re.escape(failures[0].region or '')}. overflowed by"
    phrase = phrase if re.search(phrase, text) else ""
    cause = _cause_on_the_line(failures[0], lambda: index)
    return Goal(key(failures[0]), frozenset(map(key, failures)), cause, phrase)


def _cause_on_the_line(failure: Failure, index: Callable[[], LinkIndex]) -> LinkCause | None:
    """The cause from the files of the link alone, because candidates have no build tree."""
    if failure.kind is not FailureKind.UNDEFINED_SYMBOL:
        return None
    cause = explain_undefined(failure, index(), None).cause_kind
    return cause if cause in _ON_THE_LINE else None


@dataclass(frozen=True)
class CandidateLinker:
    """Links candidates in ``directory`` as ``call`` does. ``stubs`` are symbols that only have to
    exist."""

    directory: Path
    call: LinkerCall
    goal: Goal
    output: str  # the name of the product, which can be part of a message

    @cached_property
    def objcopy(self) -> str | None:
        """The objcopy of the linker's toolchain."""
        prefix = re.sub(r"ld(?:\.\w+)?$", "", Path(self.call.argv[0]).name)
        return shutil.which(f"{prefix}objcopy")

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

    def _call(self, pieces: Sequence[LinePiece], stubs: Sequence[str], *options: str) -> LinkerCall:
        argv = (self.call.argv[0], *options, *self.argv(pieces, stubs), "-o", self.output)
        return replace(self.call, argv=argv, directory=self.directory)

    def link(self, pieces: Sequence[LinePiece], stubs: Sequence[str], *options: str) -> str:
        """The linker's output; "" if it succeeds."""
        if stubs:
            # Stubs have no build attributes, so they fit the objects of every core.
            made = self.directory / STUBS
            self.call.compile_functions(stubs, made)
            if self.objcopy is not None:
                run((self.objcopy, "--remove-section=.ARM.attributes", str(made)), self.directory)
        text, status = self._call(pieces, stubs, *options).run()
        return text or "it failed" if status != 0 else ""

    def fails_as_wanted(self, pieces: Sequence[LinePiece]) -> bool:
        return self.stubs_for(pieces) is not None

    def stubs_for(self, pieces: Sequence[LinePiece]) -> tuple[str, ...] | None:
        """The stubs with which the pieces fail as wanted; None if they do not."""
        stubs: tuple[str, ...] = ()
        for _ in range(_ROUNDS):
            try:
                text = self.link(pieces, stubs)
            except InfraError:
                return None  # no compiler makes the stubs
            if not text:
                return None
            keys = {key(f): f for f in parse(text, failed=True).failures}
            new = [each for each in keys if each not in self.goal.allowed]
            more = [name for kind, name in new if kind is FailureKind.UNDEFINED_SYMBOL and name]
            if not more:
                same = not new and self.goal.wanted in keys and re.search(self.goal.phrase, text)
                if not same:
                    return None
                index = partial(load, self._call(pieces, stubs))
                cause = _cause_on_the_line(keys[self.goal.wanted], index)
                return stubs if cause == self.goal.cause_kind else None
            if any(not re.fullmatch(r"[\w.$]+", name) for name in more):
                more = self._mangled(pieces, stubs)
            if not more:
                return None
            stubs = (*stubs, *more)
        return None

    def _mangled(self, pieces: Sequence[LinePiece], stubs: Sequence[str]) -> list[str]:
        text = self.link(pieces, stubs, "--no-demangle")
        symbols = [f.symbol for f in parse(text, failed=True).failures if f.symbol]
        readable = demangled(symbols)
        kind = FailureKind.UNDEFINED_SYMBOL
        return [n for n in symbols if (kind, readable[n]) not in self.goal.allowed]


def pieces_of(call: LinkerCall) -> list[LinePiece]:
    """The link line as pieces, without outputs and maps; files by absolute path."""
    inputs = {each.index: each for each in call.inputs}
    skipped = {"--whole-archive", "--no-whole-archive", "--start-group", "--end-group", "-(", "-)"}
    skipped |= {"-o", "--output", "-Map", "--Map", "--cref"}
    pieces = []
    for word in call.words:
        if each := inputs.get(word.index):
            pieces.append(LinePiece((str(each.path or each.word),), True, each.whole, each.group))
        elif word.option in ("-L", "--library-path") and word.value:
            pieces.append(LinePiece(("-L", str(call.directory / word.value))))
        elif word.option in ("-T", "--script", "-dT") and word.value:
            pieces.append(LinePiece(("-T", str(call.script(word.value)))))
        elif word.option not in skipped:
            pieces.append(LinePiece(word.words))
    return pieces


def copied(pieces: Sequence[LinePiece], directory: Path, search: Sequence[Path]) -> list[LinePiece]:
    """The pieces, with their files copied into the directory under unique short names."""
    taken: dict[str, str] = {}
    result = []
    for piece in pieces:
        last = Path(piece.words[-1])
        if (piece.input or piece.words[0] == "-T") and last.is_file():
            name = _copy(last, directory, taken)
            includes = _INCLUDE.findall(text_of(last)) if piece.words[0] == "-T" else ()
            for included in (Path(word) for word in includes):
                places = (folder / included for folder in (last.parent, *search))
                file = next((place for place in places if place.is_file()), None)
                if file and not included.is_absolute():
                    (directory / included).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(file, directory / included)
            piece = replace(piece, words=(*piece.words[:-1], name))
        result.append(piece)
    return result


def _copy(path: Path, directory: Path, taken: dict[str, str]) -> str:
    """Copies once. A thin archive becomes a whole one, because its members are not copied."""
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


def write_members(path: Path, members: Sequence[tuple[str, bytes]]) -> None:
    """Writes an archive with an index of its members' symbols."""
    parts = []
    for name, data in members:
        try:
            symbols = [s.name for s in ElfFile(data, name).globals if s.defined]
        except MalformedFile:
            symbols = []
        parts.append((name, data, symbols))
    ar.write_archive(path, parts)
