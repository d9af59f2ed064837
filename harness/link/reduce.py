"""``hil link reduce``: the smallest link that fails in the same way, as a folder to hand over."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shlex import join
from typing import Any, TypeVar

from harness.core.errors import MalformedFile, UsageError
from harness.core.safe_text import counted
from harness.core.tables import read_table
from harness.formats import archive as ar
from harness.formats.elf import read_elf
from harness.link.build import FailedLink, failing_link
from harness.link.candidate import (
    STUBS,
    CandidateLinker,
    LinePiece,
    copied,
    goal_of,
    pieces_of,
    write_members,
)
from harness.link.command import run
from harness.link.diagnose.explain import explain_failure
from harness.link.diagnose.tree import Tree
from harness.link.failure import Failure, FailureKind, archive_of, file_name, key
from harness.link.index import load
from harness.link.log.messages import without_linker
from harness.link.log.parse import parse
from harness.system.files import read_regular, whole_folder
from harness.system.progress import Progress

_T = TypeVar("_T")


@dataclass(frozen=True)
class ReducedLink:
    directory: Path
    failure: Failure
    objects: tuple[str, ...]
    stubs: tuple[str, ...]
    inputs_before: int  # of the original link
    words: int
    message: str

    def summary(self) -> dict[str, Any]:
        return {**asdict(self), "directory": str(self.directory)}

    def text(self) -> str:
        objects = f"{len(self.objects)}: {', '.join(self.objects)}"
        return (
            f"{self.failure.kind}: {self.failure.subject}\n"
            f"  {self.inputs_before} inputs reduced to {objects}\n"
            f"  sh {self.directory}/repro.sh\n"
        )


def reduce_build(build: Path, out: Path, progress: Progress) -> ReducedLink:
    """Reduce the failing link of a build directory into the folder ``out``.

    Raises UsageError when nothing fails or ``out`` is there already.
    """
    if not build.is_dir():
        raise UsageError(f"{build} is not a build directory", path=build)
    if out.exists():
        raise UsageError(f"{out} exists already", hint="give another directory with -o")
    progress(f"linking again what fails in {build.name}")
    again = failing_link(build.resolve())
    if again is None:
        raise UsageError(f"every link in {build} succeeds; there is nothing to reduce")
    with tempfile.TemporaryDirectory(prefix="hil-reduce-") as work:
        return _Reducer(again, build.resolve(), Path(work), progress).run(out)


class _Reducer:
    def __init__(self, again: FailedLink, build: Path, work: Path, progress: Progress) -> None:
        self.again, self.progress, self.work = again, progress, work
        failures = parse(again.text, failed=True).failures
        self.index = load(again.call)
        self.target = explain_failure(failures[0], self.index, Tree(build))
        goal = goal_of(failures, self.index, again.text)
        self.linker = CandidateLinker(work, again.call, goal, Path(again.command.output).name)

    def run(self, out: Path) -> ReducedLink:
        call = self.again.call
        self.progress(f"reducing {counted(len(call.inputs), 'input')}")
        pieces = copied(self._fewer_inputs(pieces_of(call)), self.work, call.search)
        pieces = self._smallest(self._fewer_members(self._smallest(pieces)))
        self._fewer_sections(pieces)
        stubs = self.linker.stubs_for(pieces)
        if stubs is None:
            raise UsageError("the link does not fail the same way outside its build directory")
        text = self.linker.link(pieces, stubs)
        objects = tuple(p.words[-1] for p in pieces if p.input)
        self.progress(f"writing {out}")
        words = self.linker.argv(pieces, stubs)
        # The line that says how the link fails, without the linker's own name.
        goal = self.linker.goal
        failures = parse(text, failed=True).failures
        message = without_linker(next(f.text for f in failures if key(f) == goal.wanted))
        reduced = ReducedLink(
            out, self.target, objects, stubs, len(call.inputs), len(words), message
        )
        with whole_folder(out) as folder:
            _write_folder(folder, reduced, self.again, self.work, words)
        return reduced

    def _fewer_inputs(self, pieces: list[LinePiece]) -> list[LinePiece]:
        """Tries the inputs that the explanation names, then reduces all of them."""
        named = self._concerned()
        guess = [p for p in pieces if not p.input or Path(p.words[-1]).name in named]
        for options in ([], self._pulling()) if named else ():
            if self.linker.fails_as_wanted([*options, *guess]):
                return [*options, *guess]
        return self._fewer(pieces, lambda piece: piece.input)

    def _fewer(
        self, pieces: list[LinePiece], chosen: Callable[[LinePiece], bool]
    ) -> list[LinePiece]:
        """Without those of the chosen pieces that the failure does not need."""

        def with_only(kept: Sequence[LinePiece]) -> list[LinePiece]:
            ids = set(map(id, kept))
            return [piece for piece in pieces if not chosen(piece) or id(piece) in ids]

        if not self.linker.fails_as_wanted(pieces):
            return pieces
        part = [piece for piece in pieces if chosen(piece)]
        return with_only(ddmin(part, lambda kept: self.linker.fails_as_wanted(with_only(kept))))

    def _pulling(self) -> list[LinePiece]:
        """The option that makes the linker load the archive member that needs the symbol."""
        users = {place.object for place in self.target.places[:1]}
        for unit in self.index.units:
            if unit.name in users and unit.is_member:
                own = [s.name for s in unit.object.globals if s.defined]
                return [LinePiece(("-u", name)) for name in own[:1]]
        return []

    def _concerned(self) -> set[str]:
        """File names of the inputs that the explanation names."""
        failure = self.target
        undefined = failure.kind is FailureKind.UNDEFINED_SYMBOL
        uses = failure.places[:1] if undefined else failure.places
        names = [p.object for p in (*uses, *failure.definitions) if p.object]
        names += [*failure.files, *(piece.file for piece in failure.contributors)]
        names += [file for orphan in failure.orphans for file in orphan.files]
        return {file_name(archive_of(name)) for name in names}

    def _smallest(self, pieces: list[LinePiece]) -> list[LinePiece]:
        """Reduced until no piece can be removed: inputs first, then options."""
        pieces = self._fewer(pieces, lambda piece: piece.input)
        pieces = self._fewer(pieces, lambda piece: not piece.input)
        plain = [replace(p, group=0) for p in pieces]
        return plain if self.linker.fails_as_wanted(plain) else pieces

    def _fewer_members(self, pieces: list[LinePiece]) -> list[LinePiece]:
        """Archives with only the members that the failure needs."""
        for piece in pieces:
            file = self.work / piece.words[-1]
            members = ar.members(file) if piece.input and file.is_file() else ()
            if len(members) < 2:
                continue

            def still(kept: Sequence[ar.Member], file: Path = file) -> bool:
                write_members(file, [(m.name, m.data) for m in kept])
                return self.linker.fails_as_wanted(pieces)

            still(ddmin(members, still) if still(members) else members)
        return pieces

    def _fewer_sections(self, pieces: list[LinePiece]) -> None:
        """Removes debug information and sections that the failure does not need."""
        objcopy, kept = self.linker.objcopy, {"", ".symtab", ".strtab", ".shstrtab", ".group"}
        files = (self.work / piece.words[-1] for piece in pieces if piece.input)
        for file in filter(Path.is_file, files) if objcopy is not None else ():
            try:
                sections = read_elf(file).sections
            except MalformedFile:
                continue
            names = {s.name for s in sections if s.name not in kept and s.type not in (4, 9)}
            removals = [f"--remove-section={name}" for name in sorted(names)[:40]]
            for option in ("--strip-debug", *removals) if removals else ():
                before = read_regular(file)
                _, status = run((str(objcopy), option, str(file)), self.work)
                if status != 0 or not self.linker.fails_as_wanted(pieces):
                    file.write_bytes(before)


def ddmin(items: Sequence[_T], still: Callable[[Sequence[_T]], bool]) -> list[_T]:
    """A sublist for which ``still`` holds and from which no single item can go.

    ``still(items)`` must hold. The empty list is tried too. (Delta debugging: Zeller, Hildebrandt,
    "Simplifying and Isolating Failure-Inducing Input", 2002.)
    """
    current = list(items)
    if current and still([]):
        return []
    parts = 2
    while len(current) >= 2:
        size = -(-len(current) // parts)
        chunks = [current[i : i + size] for i in range(0, len(current), size)]
        for number, _ in enumerate(chunks):
            rest = [x for k, chunk in enumerate(chunks) if k != number for x in chunk]
            if still(rest):
                current, parts = rest, max(parts - 1, 2)
                break
        else:
            if parts >= len(current):
                break
            parts = min(len(current), parts * 2)
    return current


def _write_folder(
    out: Path, reduced: ReducedLink, again: FailedLink, work: Path, words: Sequence[str]
) -> None:
    failure = reduced.failure
    for file in sorted(work.rglob("*")):
        name = file.relative_to(work)
        used = str(name) in words or file.suffix not in (".o", ".obj", ".a", ".elf")
        if file.is_file() and used and not file.name.startswith("."):
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, out / name)
    stubs = f"- `{STUBS}` defines symbols that only have to exist.\n" if STUBS in words else ""
    programs = (again.call.driver, again.call.argv[0])
    fields = {
        "product": Path(again.command.output).name,
        "message": reduced.message,
        "linker": _linker_name(again),
        "words": join(words),
        "subject": failure.subject,
        "cause": failure.cause,
        "fix": failure.fix,
        "output": again.command.output,
        "versions": "; ".join(_version(program) for program in programs if program),
        "stubs": stubs,
    }
    (out / "repro.sh").write_text(read_table(__file__)["script"].format(**fields))
    (out / "repro.sh").chmod(0o755)
    (out / "README.md").write_text(read_table(__file__)["readme"].format(**fields))
    (out / "failure.json").write_text(json.dumps(asdict(failure), indent=1) + "\n")


def _linker_name(again: FailedLink) -> str:
    """The linker's name if PATH has the same linker, else its path."""
    path = Path(again.call.argv[0])
    driver = Path(again.call.driver or "")
    prefixed = re.sub(r"(?:gcc|g\+\+|cc|c\+\+)$", path.name, driver.name)
    for name in (prefixed, path.name):
        linker = shutil.which(name)
        if linker and _version(linker) == _version(str(path)):
            return name
    return str(path)


def _version(program: str) -> str:
    return run((program, "--version"), Path.cwd())[0].partition("\n")[0]
