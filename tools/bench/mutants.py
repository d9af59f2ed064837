"""``hil bench mutants``: bugs planted in sources, and what notices them.

Each is planted alone in copies of the sources, built, and run. It is caught when what passes
without it ends in a failure of the product; a build that fails catches nothing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

from harness.core.errors import HarnessError, Unknown
from harness.core.verdict import ExitCode, Verdict, Word
from harness.run.bisect import UNDECIDED
from harness.system.files import disk_errors, write_whole
from harness.system.progress import Progress
from tools.bench.mutant_list import Mutant

M = TypeVar("M", bound=Mutant)
M_in = TypeVar("M_in", bound=Mutant, contravariant=True)


class Fate(Word):
    CAUGHT = "caught"
    SURVIVED = "survived"
    EQUIVALENT = "equivalent"  # said to be, and nothing noticed it
    STALE = "stale"  # its place is not in these sources
    NOT_BUILT = "not built"
    NOT_RUN = "not run"  # nothing was said about it: the infrastructure failed


_CODES = {
    Fate.SURVIVED: ExitCode.FAILED,
    Fate.STALE: ExitCode.USAGE,
    Fate.NOT_BUILT: ExitCode.USAGE,
    Fate.NOT_RUN: ExitCode.INFRASTRUCTURE,
}


@dataclass(frozen=True)
class Noticed:
    """``by``: the run or the test that ended the matter, and what it ended with."""

    fate: Fate
    by: str
    verdict: str
    text: str


class Ground(Protocol[M_in]):
    """Where bugs are planted, and what may notice them."""

    def place(self, mutant: M_in) -> Path:
        """The copy of its file."""

    def baseline(self, mutants: Sequence[M_in], progress: Progress) -> None:
        """Without a bug, all that could notice one passes. Raises BaselineFails."""

    def noticed(self, mutant: M_in) -> Noticed | None:
        """What becomes of the sources as they are now; None: nothing was noticed."""

    def clean(self) -> None:
        """After each mutant."""


@dataclass(frozen=True)
class MutantResult:
    """What became of one mutant. ``by``: the run that noticed it, or that ended the matter."""

    name: str
    bug: str
    file: str
    fate: Fate
    by: str = ""
    verdict: str = ""
    text: str = ""
    seconds: float = 0.0

    def row(self) -> str:
        by = f"{self.by}: {self.verdict} {self.text}" if self.by else self.text
        return f"{self.name:26}{self.bug:19}{self.fate:11}{self.seconds:6.1f} s  {by}".rstrip()


@dataclass(frozen=True)
class MutantResults:
    """``sources``: the commit, or the digest, of what they were planted in. ``written_for``: the
    commit of ExecuTorch whose files a list of mutants of a checkout knows."""

    rows: tuple[MutantResult, ...]
    sources: str
    written_for: str | None = None

    @property
    def exit_code(self) -> ExitCode:
        """What survived weighs most, then what says nothing at all."""
        codes = {_CODES[row.fate] for row in self.rows if row.fate in _CODES}
        order = (ExitCode.FAILED, ExitCode.INFRASTRUCTURE, ExitCode.USAGE)
        return next((code for code in order if code in codes), ExitCode.PASSED)

    def text(self) -> str:
        lines = [row.row() for row in self.rows]
        rooms = self.rooms()
        if len(rooms) > 1:
            lines += [f"{room}: {_counted(rows)}" for room, rows in rooms.items()]
        lines.append(f"all, in {self.sources[:10]}: {_counted(self.rows)}")
        stale = any(row.fate is Fate.STALE for row in self.rows)
        if stale and self.written_for is not None:
            lines.append(f"stale: the list is written for ExecuTorch {self.written_for}")
        return "\n".join(lines)

    def rooms(self) -> dict[str, list[MutantResult]]:
        """By the folder that the bug is in."""
        rooms: dict[str, list[MutantResult]] = {}
        for row in self.rows:
            rooms.setdefault(str(Path(row.file).parent), []).append(row)
        return rooms

    def summary(self) -> dict[str, Any]:
        counts = Counter(row.fate for row in self.rows)
        return {
            "sources": self.sources,
            "written_for": self.written_for,
            "counts": {fate: counts[fate] for fate in Fate},
            "mutants": [asdict(row) for row in self.rows],
        }


def _counted(rows: Sequence[MutantResult]) -> str:
    counts = Counter(row.fate for row in rows)
    fates = ", ".join(f"{counts[fate]} {fate}" for fate in Fate if counts[fate])
    return f"{len(rows)} bugs, {fates}; {sum(row.seconds for row in rows) / 60:.1f} min"


class BaselineFails(HarnessError):
    """Runs that fail without any bug: that they fail with one would prove nothing.

    ``checks``: by run, what it ended with.
    """

    kind = "baseline_fails"
    verdict = Verdict.NO_VERDICT
    exit_code = ExitCode.FAILED

    def __init__(self, checks: Mapping[str, tuple[Verdict, str]]) -> None:
        self.checks = {check: str(verdict) for check, (verdict, _) in checks.items()}
        listed = "".join(f"\n  {check}: {text}" for check, (_, text) in checks.items())
        super().__init__(
            f"without a planted bug, too, the sources fail in{listed}",
            hint="see to that first, or leave out the mutants that need it (--only names others)",
        )
        if all(verdict is Verdict.INFRA for verdict, _ in checks.values()):
            self.exit_code = ExitCode.INFRASTRUCTURE


def chosen(listed: Mapping[str, M], only: Sequence[str], word: str = "") -> dict[str, M]:
    """All, or those that are named; of these, those that have ``word`` in their name, kind or
    file. Raises Unknown."""
    for name in only:
        if name not in listed:
            raise Unknown(f"there is no mutant {name!r}", name, listed)
    found = {name: listed[name] for name in (only or listed)}
    found = {n: m for n, m in found.items() if word in f"{n} {m.bug} {m.file}"}
    if not found:
        raise Unknown(f"no mutant has {word!r} in its name, kind or file", word, listed)
    return found


def measure(
    mutants: Mapping[str, M],
    grounds: Sequence[Ground[M]],
    progress: Progress,
    keep: Callable[[MutantResult], None] = lambda row: None,
) -> tuple[MutantResult, ...]:
    """One row for each, in order; ``keep`` is given each when it is there. As many at a time as
    there are grounds. Raises BaselineFails before any bug is planted."""
    ground = grounds[0]
    stale = {name for name, mutant in mutants.items() if _text(mutant, ground) is None}
    alive = {name: mutant for name, mutant in mutants.items() if name not in stale}
    if alive:
        ground.baseline([*alive.values()], progress)
    free: SimpleQueue[Ground[M]] = SimpleQueue()
    for each in grounds:
        free.put(each)
    counted = _Count(len(alive), progress)

    def result_of(name: str) -> MutantResult:
        mutant = mutants[name]
        if name in stale:
            place = f"`{mutant.find}` is not {mutant.of} times in {mutant.file}"
            row = MutantResult(name, mutant.bug, mutant.file, Fate.STALE, text=place)
        else:
            mine = free.get()
            try:
                counted.begin(name)
                row = _measured(name, mutant, mine)
            finally:
                free.put(mine)
        keep(row)
        return row

    with ThreadPoolExecutor(len(grounds)) as pool:
        return tuple(pool.map(result_of, mutants))


@dataclass
class _Count:
    """How many were begun, for the one who waits."""

    total: int
    progress: Progress
    begun: int = 0
    started: float = 0.0

    def begin(self, name: str) -> None:
        self.started = self.started or time.monotonic()
        left = ""
        if self.begun:
            seconds = (time.monotonic() - self.started) / self.begun * (self.total - self.begun)
            left = f" (about {seconds / 60:.0f} min left)"
        self.begun += 1
        self.progress(f"mutant {self.begun} of {self.total}{left}: {name}")


def _text(mutant: M, ground: Ground[M]) -> str | None:
    """The file with the bug; None when its place is not there."""
    try:
        return mutant.planted(ground.place(mutant).read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None


@contextmanager
def _planted(mutant: M, ground: Ground[M]) -> Iterator[None]:
    """Both writes are new files to ninja, which builds what depends on them."""
    path = ground.place(mutant)
    before, text = path.read_text("utf-8"), _text(mutant, ground)
    assert text is not None
    with disk_errors(f"planting a bug in {path}"):
        # Python takes a file of the same second and size for the one that it has compiled.
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            compiled.unlink()
        write_whole(path, text)
        try:
            yield
        finally:
            write_whole(path, before)


def _measured(name: str, mutant: M, ground: Ground[M]) -> MutantResult:
    started = time.monotonic()
    try:
        with _planted(mutant, ground):
            found = ground.noticed(mutant)
    except HarnessError as error:
        fate = fate_of(error.verdict) or Fate.NOT_RUN
        found = Noticed(fate, "build", error.verdict, error.message)
    finally:
        ground.clean()
    if found is None:
        kind = Fate.SURVIVED if mutant.equivalent is None else Fate.EQUIVALENT
        found = Noticed(kind, "", "", mutant.equivalent or "")
    seconds = round(time.monotonic() - started, 1)
    return MutantResult(
        name, mutant.bug, mutant.file, found.fate, found.by, found.verdict, found.text, seconds
    )


def fate_of(verdict: Verdict) -> Fate | None:
    """None for PASS: nothing was noticed."""
    if verdict.passed:
        return None
    if verdict in UNDECIDED:
        return Fate.NOT_BUILT
    return Fate.CAUGHT if verdict.product_failure else Fate.NOT_RUN
