"""What notices a bug in a checkout of ExecuTorch: cases, and tests of ExecuTorch's suites."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.config.case import Case, parse_case
from harness.core.verdict import Verdict
from harness.run.record import RunRecord
from harness.suites.results import SuiteReport
from harness.system.progress import Progress
from tools.bench.mutant_list import CheckoutMutant, SuiteCheck
from tools.bench.mutants import BaselineFails, Fate, Noticed, fate_of


@dataclass
class Runs:
    """``roots``: the copy of a part's sources by its name; None is the checkout's. ``keep`` is
    called when the runs without a bug are done, ``clean`` after those of each mutant."""

    roots: Mapping[str | None, Path]
    run: Callable[[Case], RunRecord]
    suite: Callable[[SuiteCheck], SuiteReport]
    keep: Callable[[], None]
    clean: Callable[[], None]
    passing: dict[str, frozenset[str]] = field(default_factory=dict)  # tests, by suite

    def place(self, mutant: CheckoutMutant) -> Path:
        return self.roots[mutant.part] / mutant.file

    def baseline(self, mutants: Sequence[CheckoutMutant], progress: Progress) -> None:
        """Every run that is named passes. Raises BaselineFails."""
        failing: dict[str, tuple[Verdict, str]] = {}
        for case in dict.fromkeys(case for mutant in mutants for case in mutant.cases):
            progress(f"without a bug: {case}")
            record = self.run(parse_case(case))
            if not record.verdict.passed:
                failing[case] = record.verdict, f"{record.verdict} {_cause(record)}"
        for check in _together(m.suite for m in mutants if m.suite is not None):
            name = f"{check.name} -k {check.tests!r}"
            progress(f"without a bug: {name}")
            report = self.suite(check)
            self.passing[check.name] = _with(report, "passed")
            failed = _with(report, "failed")
            if failed or not self.passing[check.name]:
                why = f"{', '.join(sorted(failed))} failed" if failed else "no test passed"
                failing[name] = Verdict.MISMATCH, why
        if failing:
            raise BaselineFails(failing)
        self.keep()

    def noticed(self, mutant: CheckoutMutant) -> Noticed | None:
        for case in mutant.cases:
            record = self.run(parse_case(case))
            if (fate := fate_of(record.verdict)) is not None:
                return Noticed(fate, case, record.verdict, _cause(record))
        if mutant.suite is not None:
            name = mutant.suite.name
            failed = _with(self.suite(mutant.suite), "failed") & self.passing[name]
            if failed:
                text = f"{len(failed)} tests, {min(failed)} first"
                return Noticed(Fate.CAUGHT, name, "failed", text)
        return None


def _together(checks: Iterable[SuiteCheck]) -> Iterator[SuiteCheck]:
    """Of each suite all tests that are named, at once: starting one takes most of the time."""
    tests: dict[str, dict[str, None]] = {}
    for check in checks:
        tests.setdefault(check.name, {})[check.tests] = None
    for name, words in tests.items():
        together = " or ".join(f"({word})" for word in words) if len(words) > 1 else min(words)
        yield SuiteCheck(name=name, tests=together)


def _with(report: SuiteReport, result: str) -> frozenset[str]:
    return frozenset(test.id for test in report.tests if test.result == result)


def _cause(record: RunRecord) -> str:
    if record.cause is None:
        return ""
    return f"{record.cause.kind}: {record.cause.text.splitlines()[0]}"
