"""What the stages of a conformance run hand to each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from harness.errors import InfraError


class StandinMissing(InfraError):
    """Without a simulator, or a runner on it, a suite expects all that runs there to fail.

    ``what`` was looked for, ``why`` it is not there, or not of use.
    """

    def __init__(self, what: str, why: str) -> None:
        self.what = what
        self.why = why
        super().__init__(
            f"the suite cannot run on the stand-in: {what}: {why}",
            hint="nothing was proven; look whether something else is in the way of "
            "`hil standin install`, and at `hil doctor`",
        )


Result = Literal["passed", "failed", "xfailed", "skipped", "unsupported"]
RESULTS: tuple[Result, ...] = ("passed", "failed", "xfailed", "skipped", "unsupported")


@dataclass(frozen=True)
class Selection:
    """Which tests of the suite: pytest's ``-k``, then a shard ``i/n``, then a seeded sample."""

    keyword: str | None = None
    shard: tuple[int, int] | None = None
    sample: int | None = None
    seed: int = 0

    @property
    def everything(self) -> bool:
        return self.keyword is None and self.shard is None and self.sample is None


@dataclass(frozen=True)
class Phase:
    """One phase (setup, call, teardown, collect) of a test, as pytest reported it."""

    test: str
    when: str
    outcome: str  # passed, failed, skipped
    message: str  # of what ended it, or ""
    xfail: str | None  # the suite's own reason to expect a failure
    seconds: float
    consoles: tuple[bytes, ...]  # of the runs of the simulator in this test
    apart: float | None = None  # the largest difference that the test compared away


@dataclass(frozen=True)
class SuiteResult:
    """What became of one test of the suite."""

    id: str
    result: Result
    cause: str
    seconds: float
    missing: tuple[str, ...] = ()  # operators that its program asked for and the build lacks
    simulated: bool = True  # something ran on the stand-in
    apart: float | None = None  # how far outputs were from the reference, at most; None: not said

    @property
    def bit_exact(self) -> bool | None:
        """Whether all outputs were the reference's; the suite itself has tolerances."""
        return None if self.apart is None else self.apart == 0

    @property
    def group(self) -> str:
        """``ops/test_add.py::...`` is about ``add``, ``models/test_ds_cnn.py`` about ds_cnn."""
        path = Path(self.id.split("::")[0])
        stem = path.stem.removeprefix("test_")
        return stem if path.parent.name == "ops" else str(path.parent / stem).removeprefix("./")


@dataclass(frozen=True)
class Report:
    suite: str
    simulator: str
    elf: str
    verdicts: tuple[SuiteResult, ...]
    seconds: float
    log: Path
    complaints: tuple[str, ...] = field(default=())  # about the expectation file
    note: str = ""  # about the suite
    firmware: str = "bundled"  # whose it was: as records have it, or a given ELF
    exporter: str = "wheel"  # whose suite it was, which also exports
    from_cache: int = 0  # tests that were simulated from what an earlier run had exported
    left_out: Mapping[str, int] = field(default_factory=dict)  # tests that were not run, by reason

    @property
    def on_target(self) -> int:
        """Tests that started the simulator; the others only compile."""
        return sum(verdict.simulated for verdict in self.verdicts)

    @property
    def summary(self) -> dict[str, int]:
        counts = Counter(verdict.result for verdict in self.verdicts)
        return {result: counts[result] for result in RESULTS}

    @property
    def bit_exact(self) -> tuple[int, int]:
        """How many of the tests that ran on the target and passed were exact, and of how many."""
        said = [v.bit_exact for v in self.verdicts if v.result == "passed"]
        return said.count(True), len(said) - said.count(None)

    @property
    def exit_code(self) -> int:
        proven = self.summary["passed"] or (self.left_out and not self.verdicts)
        return int(bool(self.summary["failed"] or self.complaints or not proven))

    def operators_missing(self) -> dict[str, list[str]]:
        """By operator, the tests whose programs asked for it; the most wanted first."""
        wanted: dict[str, list[str]] = {}
        for verdict in self.verdicts:
            for operator in verdict.missing:
                wanted.setdefault(operator, []).append(verdict.id)
        return dict(sorted(wanted.items(), key=lambda item: (-len(item[1]), item[0])))

    def as_json(self) -> dict[str, Any]:
        return {
            "suite": self.suite,
            "simulator": self.simulator,
            "elf": self.elf,
            "firmware": self.firmware,
            "exporter": self.exporter,
            "seconds": round(self.seconds, 1),
            "summary": self.summary,
            "on_target": self.on_target,
            "from_cache": self.from_cache,
            "left_out": [{"why": why, "tests": n} for why, n in self.left_out.items()],
            "bit_exact": dict(zip(("exact", "of"), self.bit_exact, strict=True)),
            "note": self.note,
            "tests": [
                {
                    "id": v.id,
                    "result": v.result,
                    "cause": v.cause,
                    "seconds": round(v.seconds, 3),
                    "simulated": v.simulated,
                    "bit_exact": v.bit_exact,
                    "apart": v.apart,
                }
                for v in self.verdicts
            ],
            "operators_missing": [
                {"operator": operator, "tests": tests}
                for operator, tests in self.operators_missing().items()
            ],
            "complaints": list(self.complaints),
            "log": str(self.log),
        }


def worst_first(verdicts: Sequence[SuiteResult]) -> list[SuiteResult]:
    order = {"failed": 0, "unsupported": 1, "xfailed": 2, "skipped": 3, "passed": 4}
    return sorted(verdicts, key=lambda verdict: (order[verdict.result], verdict.id))
