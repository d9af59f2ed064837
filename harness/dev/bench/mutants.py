"""``hil bench mutants``: bugs planted in a checkout of ExecuTorch, and which runs notice them.

Each is planted alone in copies of the sources, built, and run. It is caught when a run that
passes without it ends in a failure of the product; a build that fails catches nothing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.bisect.search import UNDECIDED, told
from harness.case.case import Case, parse_case
from harness.conformance.model import Report
from harness.dev.bench.mutant_list import Mutant, MutantList, SuiteCheck
from harness.errors import HarnessError, Unknown
from harness.errors.verdict import ExitCode, Verdict, Word
from harness.run.record import RunRecord
from harness.system.files import disk_errors, write_whole
from harness.system.progress import Progress


class Fate(Word):
    CAUGHT = "caught"
    SURVIVED = "survived"
    EQUIVALENT = "equivalent"  # said to be, and nothing noticed it
    STALE = "stale"  # its place is not in this checkout
    NOT_BUILT = "not built"
    NOT_RUN = "not run"  # nothing was said about it: the infrastructure failed


_CODES = {
    Fate.SURVIVED: ExitCode.FAILED,
    Fate.STALE: ExitCode.USAGE,
    Fate.NOT_BUILT: ExitCode.USAGE,
    Fate.NOT_RUN: ExitCode.INFRASTRUCTURE,
}


@dataclass(frozen=True)
class Ground:
    """Where bugs are planted, and how it is run. ``roots``: the copy of a part's sources by its
    name; None is the checkout's. ``keep`` is called when the runs without a bug are done, ``clean``
    after those of each mutant."""

    roots: Mapping[str | None, Path]
    run: Callable[[Case], RunRecord]
    suite: Callable[[SuiteCheck], Report]
    keep: Callable[[], None]
    clean: Callable[[], None]


@dataclass(frozen=True)
class Told:
    """What became of one mutant. ``by``: the run that noticed it, or that ended the matter."""

    name: str
    bug: str
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
    rows: tuple[Told, ...]
    commit: str
    written_for: str

    @property
    def exit_code(self) -> ExitCode:
        """What survived weighs most, then what says nothing at all."""
        codes = {_CODES[row.fate] for row in self.rows if row.fate in _CODES}
        order = (ExitCode.FAILED, ExitCode.INFRASTRUCTURE, ExitCode.USAGE)
        return next((code for code in order if code in codes), ExitCode.PASSED)

    def text(self) -> str:
        counts = Counter(row.fate for row in self.rows)
        said = ", ".join(f"{counts[fate]} {fate}" for fate in Fate if counts[fate])
        lines = [row.row() for row in self.rows]
        lines.append(f"{len(self.rows)} bugs in {self.commit[:10]}: {said}")
        if counts[Fate.STALE]:
            lines.append(f"stale: the list is written for ExecuTorch {self.written_for}")
        return "\n".join(lines)

    def summary(self) -> dict[str, Any]:
        counts = Counter(row.fate for row in self.rows)
        return {
            "commit": self.commit,
            "written_for": self.written_for,
            "counts": {fate: counts[fate] for fate in Fate},
            "mutants": [asdict(row) for row in self.rows],
        }


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
            f"without a planted bug, too, the checkout fails in{listed}",
            hint="see to that first, or leave out the mutants that need it (--only names others)",
        )
        if all(verdict is Verdict.INFRA for verdict, _ in checks.values()):
            self.exit_code = ExitCode.INFRASTRUCTURE


def chosen(listed: MutantList, only: Sequence[str]) -> dict[str, Mutant]:
    """All, or those that are named. Raises Unknown."""
    for name in only:
        if name not in listed.mutants:
            raise Unknown(f"there is no mutant {name!r}", name, listed.mutants)
    return {name: listed.mutants[name] for name in (only or listed.mutants)}


def measure(mutants: Mapping[str, Mutant], ground: Ground, progress: Progress) -> tuple[Told, ...]:
    """One row for each, in order. Raises BaselineFails before any bug is planted."""
    stale = {name for name, mutant in mutants.items() if _text(mutant, ground) is None}
    alive = {name: mutant for name, mutant in mutants.items() if name not in stale}
    passing = _baseline(alive.values(), ground, progress)
    ground.keep()
    rows, started = [], time.monotonic()
    for name, mutant in mutants.items():
        if name in stale:
            place = f"`{mutant.find}` is not {mutant.of} times in {mutant.file}"
            rows.append(Told(name, mutant.bug, Fate.STALE, text=place))
            continue
        done = sum(row.fate is not Fate.STALE for row in rows)
        progress(f"mutant {done + 1} of {len(alive)}{_left(started, done, len(alive))}: {name}")
        rows.append(_one(name, mutant, ground, passing))
    return tuple(rows)


def _left(started: float, done: int, total: int) -> str:
    if not done:
        return ""
    seconds = (time.monotonic() - started) / done * (total - done)
    return f" (about {seconds / 60:.0f} min left)"


def _text(mutant: Mutant, ground: Ground) -> str | None:
    """The file with the bug; None when its place is not there."""
    path = ground.roots[mutant.part] / mutant.file
    try:
        return mutant.planted(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None


@contextmanager
def _planted(mutant: Mutant, ground: Ground) -> Iterator[None]:
    """Both writes are new files to ninja, which builds what depends on them."""
    path = ground.roots[mutant.part] / mutant.file
    before, text = path.read_text("utf-8"), _text(mutant, ground)
    assert text is not None
    with disk_errors(f"planting a bug in {path}"):
        write_whole(path, text)
        try:
            yield
        finally:
            write_whole(path, before)


def _baseline(
    mutants: Iterable[Mutant], ground: Ground, progress: Progress
) -> dict[str, frozenset[str]]:
    """Every run that is named passes. Gives the tests that do, by suite."""
    listed = list(mutants)
    failing: dict[str, tuple[Verdict, str]] = {}
    for case in dict.fromkeys(case for mutant in listed for case in mutant.cases):
        progress(f"without a bug: {case}")
        record = ground.run(parse_case(case))
        if not record.verdict.passed:
            failing[case] = record.verdict, told(record)
    passing = {}
    for check in _together(m.suite for m in listed if m.suite is not None):
        name = f"{check.name} -k {check.tests!r}"
        progress(f"without a bug: {name}")
        report = ground.suite(check)
        passing[check.name] = _with(report, "passed")
        failed = _with(report, "failed")
        if failed or not passing[check.name]:
            why = f"{', '.join(sorted(failed))} failed" if failed else "no test passed"
            failing[name] = Verdict.MISMATCH, why
    if failing:
        raise BaselineFails(failing)
    return passing


def _together(checks: Iterable[SuiteCheck]) -> Iterator[SuiteCheck]:
    """Of each suite all tests that are named, at once: starting one takes most of the time."""
    tests: dict[str, dict[str, None]] = {}
    for check in checks:
        tests.setdefault(check.name, {})[check.tests] = None
    for name, words in tests.items():
        together = " or ".join(f"({word})" for word in words) if len(words) > 1 else min(words)
        yield SuiteCheck(name=name, tests=together)


def _with(report: Report, result: str) -> frozenset[str]:
    return frozenset(test.id for test in report.verdicts if test.result == result)


def _one(name: str, mutant: Mutant, ground: Ground, passing: Mapping[str, frozenset[str]]) -> Told:
    started = time.monotonic()

    def row(fate: Fate, by: str = "", verdict: str = "", text: str = "") -> Told:
        seconds = round(time.monotonic() - started, 1)
        return Told(name, mutant.bug, fate, by, verdict, text, seconds)

    try:
        with _planted(mutant, ground):
            for case in mutant.cases:
                record = ground.run(parse_case(case))
                if (fate := _fate(record.verdict)) is not None:
                    return row(fate, case, record.verdict, _cause(record))
            if mutant.suite is not None:
                failed = _with(ground.suite(mutant.suite), "failed") & passing[mutant.suite.name]
                if failed:
                    text = f"{len(failed)} tests, {min(failed)} first"
                    return row(Fate.CAUGHT, mutant.suite.name, "failed", text)
    except HarnessError as error:
        fate = _fate(error.verdict) or Fate.NOT_RUN
        return row(fate, "build", error.verdict, error.message)
    finally:
        ground.clean()
    if mutant.equivalent is not None:
        return row(Fate.EQUIVALENT, text=mutant.equivalent)
    return row(Fate.SURVIVED)


def _fate(verdict: Verdict) -> Fate | None:
    """None for PASS: nothing was noticed."""
    if verdict.passed:
        return None
    if verdict in UNDECIDED:
        return Fate.NOT_BUILT
    return Fate.CAUGHT if verdict.product_failure else Fate.NOT_RUN


def _cause(record: RunRecord) -> str:
    if record.cause is None:
        return ""
    return f"{record.cause.kind}: {record.cause.text.splitlines()[0]}"
