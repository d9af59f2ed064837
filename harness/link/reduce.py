"""``hil link reduce``: the smallest link that fails in the same way, as a folder to hand over."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from harness.core.errors import UsageError
from harness.core.words import counted
from harness.formats import archive as ar
from harness.formats.damage import DamagedFile
from harness.formats.elf import read_elf
from harness.link.candidate import (
    STUBS,
    CandidateLinker,
    LinePiece,
    copied,
    goal_of,
    pieces_of,
    write_members,
)
from harness.link.diagnose.explain import diagnose
from harness.link.diagnose.tree import Tree
from harness.link.diagnose.undefined import explain_undefined
from harness.link.failure import Failure, FailureKind, LinkCause, archive_of, file_name
from harness.link.index import load
from harness.link.line.capture import Replay, failing_link, shell
from harness.link.line.command import understand
from harness.link.log.parse import parse
from harness.system.progress import Progress

_T = TypeVar("_T")
_MESSAGE = re.compile(
    r"undefined reference to|multiple definition of|overflowed by|will not fit in region|"
    r"is not an object|not recogni[sz]ed|uses VFP register arguments|cannot find|overlaps section|"
    r"relocation truncated|error:"
)

_SCRIPT = """\
#!/bin/sh
# Needs only the toolchain's linker. Expected to fail with:
#   {message}
# Exits with the linker's own status. Another linker: LD=/path/to/ld sh repro.sh
cd "$(dirname "$0")" || exit 2
trap 'rm -f {product}' EXIT
LC_ALL=C "${{LD:-{linker}}}" {words} -o {product}
"""

_README = """\
# A link that fails: {subject}

    {message}

Run `sh repro.sh`. It links the files of this folder and nothing else, and ends as the original
link did.

- Cause: {cause}
- Fix: {fix}
- Reduced from `{output}` ({before}).
- Made with: {versions}
{stubs}"""

_TEST = '''\
"""Fails for as long as the link of this folder fails."""

import subprocess
from pathlib import Path


def test_links() -> None:
    """The fix for: {subject}."""
    done = subprocess.run(
        ["sh", str(Path(__file__).parent / "repro.sh")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
'''


@dataclass(frozen=True)
class Reduced:
    directory: Path
    failure: Failure
    objects: tuple[str, ...]
    stubs: tuple[str, ...]
    before: int  # inputs of the original link
    words: int
    message: str

    def summary(self) -> dict[str, Any]:
        return {
            "directory": str(self.directory),
            "objects": list(self.objects),
            "stubs": list(self.stubs),
            "inputs_before": self.before,
            "words": self.words,
            "message": self.message,
            "failure": self.failure.summary(),
        }

    def text(self) -> str:
        return (
            f"{self.failure.kind}: {self.failure.subject}\n"
            f"  {self.before} inputs reduced to {len(self.objects)}: {', '.join(self.objects)}\n"
            f"  sh {self.directory}/repro.sh\n"
        )


def reduce_build(build: Path, out: Path, *, with_test: bool, progress: Progress) -> Reduced:
    """Reduce the failing link of a build directory into the folder ``out``.

    Raises UsageError when nothing fails or ``out`` is there already.
    """
    if not build.is_dir():
        raise UsageError(f"{build} is not a build directory", path=build)
    if out.exists():
        raise UsageError(f"{out} exists already", hint="give another directory with -o")
    progress(f"linking again what fails in {build.name}")
    with tempfile.TemporaryDirectory(prefix="hil-reduce-") as scratch:
        work = Path(scratch)
        again = failing_link(build.resolve(), work)
        if again is None:
            raise UsageError(f"every link in {build} succeeds; there is nothing to reduce")
        return _Reducer(again, build.resolve(), work / "r", progress).run(out, with_test)


class _Reducer:
    def __init__(self, again: Replay, build: Path, work: Path, progress: Progress) -> None:
        work.mkdir()
        self.again, self.progress, self.work = again, progress, work
        failures = parse(again.text, failed=True).failures
        self.explained = diagnose(failures, again.call, Tree(build))
        self.target = self.explained[0]
        goal = goal_of(failures, self._cause_on_the_line(failures[0]), again.text)
        arm = "arm" in Path(again.call.argv[0]).name or "arm" in (again.call.driver or "")
        output = Path(again.command.output).name
        self.linker = CandidateLinker(work, again.call.argv[0], goal, arm, output)

    def _cause_on_the_line(self, failure: Failure) -> LinkCause | None:
        """The cause that the files of the link alone show, because candidates have no tree."""
        if failure.kind is not FailureKind.UNDEFINED_SYMBOL:
            return None
        index = load(understand(self.again.call))
        return explain_undefined(failure, index, None).cause_kind

    def run(self, out: Path, with_test: bool) -> Reduced:
        line = understand(self.again.call)
        everything = pieces_of(self.again.call)
        self.progress(f"reducing {counted(len(line.inputs), 'input')}")
        pieces = copied(self._fewer_inputs(everything), self.work, line.search)
        pieces = self._smallest(self._fewer_members(self._smallest(pieces)))
        pieces = self._fewer_sections(pieces)
        stubs = self.linker.stubs_for(pieces)
        if stubs is None:
            raise UsageError("the link does not fail the same way outside its build directory")
        text, _ = self.linker.link(pieces, stubs)
        objects = tuple(p.words[-1] for p in pieces if p.input)
        self.progress(f"writing {out}")
        words = self.linker.argv(pieces, stubs)
        message = _write_folder(out, self.again, self.work, words, text, self.target, with_test)
        return Reduced(out, self.target, objects, stubs, len(line.inputs), len(words), message)

    def _fewer_inputs(self, pieces: list[LinePiece]) -> list[LinePiece]:
        """Tries the inputs that the explanation names, then reduces all of them."""
        named = self._concerned()
        guess = [p for p in pieces if not p.input or Path(p.words[-1]).name in named]
        for options in ([], self._pulling()) if named else ():
            if self.linker.stubs_for([*options, *guess]) is not None:
                return [*options, *guess]
        inputs = [p for p in pieces if p.input]
        if self.linker.stubs_for(pieces) is None:
            return pieces

        def still(kept: Sequence[LinePiece]) -> bool:
            chosen = set(map(id, kept))
            rest = [p for p in pieces if not p.input or id(p) in chosen]
            return self.linker.stubs_for(rest) is not None

        kept = set(map(id, ddmin(inputs, still)))
        return [p for p in pieces if not p.input or id(p) in kept]

    def _pulling(self) -> list[LinePiece]:
        """The option that makes the linker load the archive member that needs the symbol."""
        users = {place.object for place in self.target.places[:1]}
        for unit in load(understand(self.again.call)).units:
            if unit.name in users and unit.input.is_archive:
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
        for chosen in (True, False):
            part = [p for p in pieces if p.input == chosen]

            def still(
                kept: Sequence[LinePiece], chosen: bool = chosen, all_: list[LinePiece] = pieces
            ) -> bool:
                ids = set(map(id, kept))
                rest = [p for p in all_ if p.input != chosen or id(p) in ids]
                return self.linker.stubs_for(rest) is not None

            if self.linker.stubs_for(pieces) is not None:
                ids = set(map(id, ddmin(part, still)))
                pieces = [p for p in pieces if p.input != chosen or id(p) in ids]
        plain = [replace(p, group=0) for p in pieces]
        return plain if self.linker.stubs_for(plain) is not None else pieces

    def _fewer_members(self, pieces: list[LinePiece]) -> list[LinePiece]:
        """Archives with only the members that the failure needs."""
        for piece in pieces:
            file = self.work / piece.words[-1]
            members = ar.members(file) if piece.input and file.is_file() else ()
            if len(members) < 2:
                continue

            def still(kept: Sequence[ar.Member], file: Path = file) -> bool:
                write_members(file, [(m.name, m.data) for m in kept])
                return self.linker.stubs_for(pieces) is not None

            if still(members):
                still(ddmin(members, still))
            else:
                write_members(file, [(m.name, m.data) for m in members])
        return pieces

    def _fewer_sections(self, pieces: list[LinePiece]) -> list[LinePiece]:
        """Objects without debug information and without sections that the failure does not need."""
        prefix = re.sub(r"ld(?:\.\w+)?$", "", Path(self.linker.linker).name)
        objcopy = shutil.which(f"{prefix}objcopy")
        if objcopy is None:
            return pieces
        for piece in pieces:
            file = self.work / piece.words[-1]
            if not piece.input or not file.is_file() or not self._removable(file):
                continue
            self._try(objcopy, ["--strip-debug"], file, pieces)
            for section in self._removable(file):
                self._try(objcopy, [f"--remove-section={section}"], file, pieces)
        return pieces

    def _removable(self, file: Path) -> list[str]:
        try:
            sections = read_elf(file).sections
        except DamagedFile:
            return []
        kept = {"", ".symtab", ".strtab", ".shstrtab", ".group"}
        return sorted({s.name for s in sections if s.name not in kept and s.type not in (4, 9)})[
            :40
        ]

    def _try(self, objcopy: str, words: list[str], file: Path, pieces: list[LinePiece]) -> None:
        before = file.read_bytes()
        done = subprocess.run(
            [objcopy, *words, str(file)], capture_output=True, check=False, timeout=60
        )
        if done.returncode != 0 or self.linker.stubs_for(pieces) is None:
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
    out: Path,
    again: Replay,
    work: Path,
    words: Sequence[str],
    text: str,
    failure: Failure,
    with_test: bool,
) -> str:
    """Writes all files; returns the message that the link must end with."""
    out.mkdir(parents=True)
    for file in sorted(work.rglob("*")):
        name = file.relative_to(work)
        used = str(name) in words or file.suffix not in (".o", ".obj", ".a", ".elf")
        if file.is_file() and used and not file.name.startswith("."):
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, out / name)
    message = _essential(text, failure)
    linker = _name(again)
    fields = {
        "product": Path(again.command.output).name,
        "message": message,
        "linker": linker,
        "words": shell(words),
        "subject": failure.subject,
        "cause": failure.cause,
        "fix": failure.fix,
        "output": again.command.output,
        "before": again.command.origin,
        "versions": "; ".join(_versions(again)),
        "stubs": f"- `{STUBS}` defines symbols that only have to exist.\n"
        if STUBS in words
        else "",
    }
    (out / "repro.sh").write_text(_SCRIPT.format(**fields))
    (out / "repro.sh").chmod(0o755)
    (out / "README.md").write_text(_README.format(**fields))
    (out / "failure.json").write_text(json.dumps(failure.summary(), indent=1) + "\n")
    if with_test:
        (out / "test_link.py").write_text(_TEST.format(**fields))
    return message


def _essential(text: str, failure: Failure) -> str:
    """The line that names the failure, without the linker's own name."""
    subject = failure.symbol or failure.region or ""
    shown = failure.demangled or subject
    lines = [line for line in text.splitlines() if _MESSAGE.search(line)]
    about = [x for x in lines if (shown and shown in x) or (subject and subject in x)]
    best = next((x for x in about if "overflowed by" in x), about[0] if about else None)
    chosen = best or (lines[0] if lines else text.strip().splitlines()[-1])
    return re.sub(r"^\S*\bld[^:\s]*: ?", "", chosen.strip())


def _name(again: Replay) -> str:
    """The linker, by the name that a person with the toolchain on PATH would use."""
    path = Path(again.call.argv[0])
    driver = Path(again.call.driver or "")
    prefixed = re.sub(r"(?:gcc|g\+\+|cc|c\+\+)$", path.name, driver.name)
    for name in (prefixed, path.name):
        linker = shutil.which(name)
        if linker and _version(linker) == _version(str(path)):
            return name
    return str(path)


def _versions(again: Replay) -> list[str]:
    programs = (again.call.driver, again.call.argv[0])
    return [line for program in programs if program for line in _version(program)]


def _version(program: str) -> list[str]:
    done = subprocess.run(
        [program, "--version"], capture_output=True, text=True, timeout=30, check=False
    )
    return done.stdout.splitlines()[:1]
