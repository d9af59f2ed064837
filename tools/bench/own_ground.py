"""Where bugs are planted in this project: a copy of it with a state directory and a build tree of
its own, and the tests of the default suite that may notice them.

Both stay in the state directory, so that after the first time only what a bug touches is built.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from xml.etree import ElementTree

from harness.core.errors import InfraError
from harness.core.verdict import Verdict
from harness.system import artifact_cache, toolchain
from harness.system.files import disk_errors, write_whole
from harness.system.paths import state_dir
from harness.system.process import Bounds, Ended, Stop, run
from harness.system.progress import Progress
from tools.bench.mutant_ground import files_below, mirror
from tools.bench.mutant_list import UNIT_TESTS, OwnMutant, read_own
from tools.bench.mutants import (
    BaselineFails,
    Fate,
    MutantResult,
    MutantResults,
    Noticed,
    chosen,
    measure,
)
from tools.clone import project_root
from tools.cpp import configure_command

_LEFT_OUT = frozenset(
    {
        ".git",
        ".hil",
        ".venv",
        ".mypy_cache",
        ".ruff_cache",
        ".pytest_cache",
        ".hypothesis",
        "__pycache__",
    }
)
# What would take a run to other sources or another state than the copy's.
_FOREIGN = ("HIL_", "CCACHE_", "PYTEST_", "EXECUTORCH_ROOT", "PYTHONPATH")
_COMPILERS = ("gcc", "g++", "cc", "c++", "arm-none-eabi-gcc", "arm-none-eabi-g++")
# A bug may make a loop endless. What ends it is its own time: on a crowded machine, everything
# takes long, and a run that was ended for it would pass for one that noticed something.
_CPU_SECONDS = 1200  # of one process
_BOUNDS = Bounds(host_seconds=24 * 3600, stall_seconds=1200)
# Pytest's exit codes: https://docs.pytest.org/en/stable/reference/exit-codes.html
_PASSED, _FAILED = 0, 1


def measure_own(
    only: Sequence[str], word: str, jobs: int, resume: bool, progress: Progress
) -> MutantResults:
    """Every bug of the lists, or those that are chosen, ``jobs`` at a time.

    ``resume``: results of the same sources from before are kept. Raises what ``measure``
    does, TargetError for a malformed list, Unknown for a name, InfraError (disk full, no tool).
    """
    mutants = chosen(read_own(), only, word)
    folder = state_dir() / "mutants" / "own"
    grounds = prepared(project_root(), folder, jobs, progress)
    sources = digest(grounds[0].project)
    ledger = Ledger(folder / "results.jsonl", sources)
    known = ledger.begin(resume)
    left = {name: mutant for name, mutant in mutants.items() if name not in known}
    if known:
        progress(f"{len(mutants) - len(left)} of {len(mutants)} are known from before")
    new = {row.name: row for row in measure(left, grounds, progress, ledger.add)} if left else {}
    return MutantResults(tuple({**known, **new}[name] for name in mutants), sources)


def prepared(source: Path, folder: Path, jobs: int, progress: Progress) -> tuple[OwnGround, ...]:
    """Copies of ``source``, as it is now. The first one's baseline prepares the others."""
    progress("copying the project")
    grounds = tuple(OwnGround(folder / str(number)) for number in range(jobs))
    with disk_errors("copying the project"):
        for ground in grounds:
            mirror(source, ground.project, _LEFT_OUT)
            ground.home.mkdir(parents=True, exist_ok=True)
        _remember_compilations(folder)
    return (replace(grounds[0], others=grounds[1:]), *grounds[1:])


def _remember_compilations(folder: Path) -> None:
    """With ccache in the place of the compilers a bug costs what it touches, in every build."""
    compilers = folder / "compilers"
    shutil.rmtree(compilers, ignore_errors=True)
    compilers.mkdir()
    if (ccache := toolchain.find("ccache")) is not None:
        for name in _COMPILERS:
            (compilers / name).symlink_to(ccache.path)
    (folder / "ccache").mkdir(exist_ok=True)
    # Trees differ in their paths alone. A build gets no more of them than CCACHE_DIR.
    settings = f"base_dir = {folder}\nhash_dir = false\nmax_size = 2G\n"
    write_whole(folder / "ccache" / "ccache.conf", settings)


def digest(folder: Path) -> str:
    """Stands for all files below."""
    content_digest = hashlib.sha256()
    for name in sorted(files_below(folder, _LEFT_OUT)):
        content = (folder / name).read_bytes()
        content_digest.update(f"{name}\0{len(content)}\0".encode())
        content_digest.update(content)
    return content_digest.hexdigest()


@dataclass(frozen=True)
class Ledger:
    """The results so far, in a file of one line each; the first names the sources."""

    file: Path
    sources: str

    def begin(self, resume: bool) -> dict[str, MutantResult]:
        """What is known of these sources; without ``resume``, or of others, nothing."""
        known = self._read() if resume else {}
        with disk_errors(f"writing {self.file}"):
            self.file.write_text(json.dumps(self.sources) + "\n")
        for row in known.values():
            self.add(row)
        return known

    def add(self, row: MutantResult) -> None:
        with disk_errors(f"writing {self.file}"), self.file.open("a") as file:
            file.write(json.dumps(asdict(row)) + "\n")

    def _read(self) -> dict[str, MutantResult]:
        """The last line may have been cut."""
        if not self.file.is_file():
            return {}
        first, *lines = [line for line in self.file.read_text().splitlines() if line[-1:] in '"}']
        rows = [json.loads(line) for line in lines if json.loads(first) == self.sources]
        results = [MutantResult(**{**row, "fate": Fate(row["fate"])}) for row in rows]
        return {row.name: row for row in results if row.fate is not Fate.NOT_RUN}


@dataclass(frozen=True)
class OwnGround:
    folder: Path
    others: tuple[OwnGround, ...] = ()
    kept: set[Path] = field(default_factory=set)  # firmware without a bug

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def _tree(self) -> Path:
        return self.folder / "unit_tests"

    def place(self, mutant: OwnMutant) -> Path:
        return self.project / mutant.file

    def baseline(self, mutants: Sequence[OwnMutant], progress: Progress) -> None:
        """All tests that are named pass. Raises BaselineFails."""
        tests = dict.fromkeys(t for mutant in mutants for t in (*mutant.tests, *mutant.room))
        failing: dict[str, tuple[Verdict, str]] = {}
        for found in (
            *map(self._unit_tests, _programs(tests)),
            self._pytest(_ids(tests), progress),
        ):
            if found is not None:
                failing[found.by] = Verdict.MISMATCH, f"{found.by}: {found.text or found.verdict}"
        if failing:
            raise BaselineFails(failing)
        self.kept.update(self._firmware())
        for other in self.others:
            progress("copying what was built")
            with disk_errors(f"copying {self.home}"):
                mirror(self.home, other.home)
            other.kept.update(other._firmware())

    def noticed(self, mutant: OwnMutant) -> Noticed | None:
        """The room's tests are a run of their own: pytest takes of two that overlap the wider."""
        for tests in (mutant.tests, mutant.room):
            for program in _programs(tests):
                if (found := self._unit_tests(program)) is not None:
                    return found
            if (found := self._pytest(_ids(tests))) is not None:
                return found
        return None

    def clean(self) -> None:
        """Runs, and firmware with a bug, which nobody will ask for again."""
        shutil.rmtree(self.home / "runs", ignore_errors=True)
        for directory in self._firmware() - self.kept:
            shutil.rmtree(directory, ignore_errors=True)

    def _firmware(self) -> set[Path]:
        return {path for path in (self.home / "cache" / "firmware").glob("*") if path.is_dir()}

    def _unit_tests(self, program: str) -> Noticed | None:
        """Builds a program of the runner's unit tests, with sanitizers, and runs it."""
        ninja = [str(toolchain.locate("ninja")), "-C", str(self._tree), program]
        if not (self._tree / "build.ninja").is_file():
            self._tree.mkdir(parents=True, exist_ok=True)
            sources = self.project / "targets" / "runner"
            self._must_build(configure_command(sources, self._tree))
        if (ended := self._run(ninja)).status != 0:
            return Noticed(Fate.NOT_BUILT, "build", _how(ended), self._said(b"error:"))
        found = sorted(path for path in self._tree.rglob(program) if path.is_file())
        ended = self._run([str(found[0]), "-r=junit", f"-o={self._report}", "--abort-after=1"])
        if (ended.stop, ended.status) == (Stop.EXITED, 0):
            return None
        failed = next(_failed(self._report), ("", "", self._said(b"ERROR:")))
        return Noticed(Fate.CAUGHT, f"{program} {failed[1]}".strip(), _how(ended), failed[2])

    def _must_build(self, argv: Sequence[str]) -> None:
        if self._run(argv).status != 0:
            log = self.folder / "console.log"
            raise InfraError(f"{shlex.join(argv)} failed", hint=f"see {log}", path=log)

    def _pytest(self, ids: Sequence[str], progress: Progress | None = None) -> Noticed | None:
        """What the tests notice. ``progress``: wants all of them, without a bug."""
        if not ids:
            return None
        argv = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "hil",
            "-q",
            "-x",
            f"--junitxml={self._report}",
            *ids,
        ]
        if progress is not None:
            progress(f"without a bug: {len(ids)} tests")
        # Python takes a file of the same second and size for the one that it has compiled, so it
        # keeps what it compiles only without a bug.
        ended = self._run(argv, **({"PYTHONDONTWRITEBYTECODE": "1"} if progress is None else {}))
        if (ended.stop, ended.status) == (Stop.EXITED, _PASSED):
            return None
        if ended.status not in (None, _FAILED):
            return Noticed(Fate.NOT_BUILT, "pytest", _how(ended), self._said(b"E  ", b"ERROR"))
        file, test, text = next(_failed(self._report), ("", "pytest", ""))
        by = f"{file.replace('.', '/')}.py::{test}" if file else test
        if any(artifact_cache.load(path, path.name) is None for path in self._firmware()):
            return Noticed(Fate.NOT_BUILT, "build", _how(ended), text)
        return Noticed(Fate.CAUGHT, by, _how(ended), text)

    @property
    def _report(self) -> Path:
        return self.folder / "junit.xml"

    def _said(self, *words: bytes) -> str:
        """The first line of the last console with the first of the words that it has; else its
        last line."""
        lines = (self.folder / "console.log").read_bytes().splitlines() or [b""]
        line = next((one for word in words for one in lines if word in one), lines[-1])
        return line.decode("utf-8", "replace").strip()

    def _run(self, argv: Sequence[str], **environment: str) -> Ended:
        """Raises InfraError when somebody else killed it, which says nothing about the bug."""
        self._report.unlink(missing_ok=True)
        limit = f"--cpu={_CPU_SECONDS}:{_CPU_SECONDS + 60}"  # SIGXCPU is ours
        ended = run(
            [str(toolchain.locate("prlimit")), limit, *argv],
            cwd=self.project,
            environment={**self._environment(), **environment},
            console=self.folder / "console.log",
            bounds=_BOUNDS,
        )
        if ended.stop is Stop.EXITED and ended.signal == signal.SIGKILL:
            raise InfraError(f"somebody killed {argv[0]}", hint="was there memory enough?")
        return ended

    def _environment(self) -> Mapping[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
        shared = self.folder.parent
        return {
            **kept,
            "PYTHONPATH": str(self.project),
            "HIL_HOME": str(self.home),
            # Importing what other plugins import takes longer than most tests.
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "CCACHE_DIR": str(shared / "ccache"),
            "PATH": os.pathsep.join([str(shared / "compilers"), kept.get("PATH", "")]),
        }


def _programs(tests: Iterable[str]) -> tuple[str, ...]:
    return tuple(test for test in tests if test in UNIT_TESTS)


def _ids(tests: Iterable[str]) -> tuple[str, ...]:
    return tuple(test for test in tests if test not in UNIT_TESTS)


def _how(ended: Ended) -> str:
    if ended.signal is not None:
        return f"killed: {signal.Signals(ended.signal).name}"
    return "failed" if ended.stop is Stop.EXITED else f"stopped: {ended.stop}"


def _failed(report: Path) -> Iterator[tuple[str, str, str]]:
    """Of a JUnit report the tests that failed: file, name, and the first line of why. None when
    a sanitizer, or we, ended the program before it could write one."""
    try:
        cases = ElementTree.parse(report).iter("testcase")
    except (FileNotFoundError, ElementTree.ParseError):
        return
    for case in cases:
        for why in (*case.findall("failure"), *case.findall("error")):
            text = (why.get("message") or "").strip().splitlines() or [""]
            yield case.get("classname", ""), case.get("name", ""), text[0]
