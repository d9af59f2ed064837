"""What the parts of a suite's run exchange: phases of tests, results of tests, the report."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from harness.core.errors import InfraError


class StandinMissing(InfraError):
    """Without a simulator, or a runner on it, a suite expects all that runs there to fail.

    ``looked_for`` was not found, or cannot be used for ``reason``.
    """

    def __init__(self, looked_for: str, reason: str) -> None:
        self.looked_for = looked_for
        self.reason = reason
        super().__init__(
            f"the suite cannot run on the stand-in: {looked_for}: {reason}",
            hint="nothing was proven; look whether something else is in the way of "
            "`hil standin install`, and at `hil doctor`",
        )


Result = Literal["passed", "failed", "xfailed", "skipped", "unsupported"]
RESULTS: tuple[Result, ...] = ("passed", "failed", "xfailed", "skipped", "unsupported")


@dataclass(frozen=True)
class Phase:
    """One phase (setup, call, teardown, collect) of a test, as pytest reported it."""

    test: str
    when: str
    outcome: str  # passed, failed, skipped
    message: str  # of the exception that ended it, or ""
    xfail: str | None  # the suite's own reason to expect a failure
    seconds: float
    consoles: tuple[bytes, ...]  # of the simulations in this test
    difference: float | None = None  # largest of the outputs it compared; None: compared nothing
    from_store: bool = False  # pytest did not run it now: its export is an earlier run's

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Phase:
        """As ``recorder`` writes it, with the consoles in base64."""
        consoles = tuple(base64.b64decode(console) for console in fields["consoles"])
        return cls(**{**fields, "consoles": consoles})


@dataclass(frozen=True)
class SuiteTest:
    """One test of the suite and its result."""

    id: str
    result: Result
    cause: str
    seconds: float
    missing: tuple[str, ...] = ()  # operators that its program needs and the runner lacks
    simulated: bool = True  # it ran something on the stand-in
    from_store: bool = False
    difference: float | None = None  # largest to the reference; None: none was observed

    @property
    def exact(self) -> bool | None:
        """Whether all outputs were bit for bit the reference; the suite itself has tolerances."""
        return None if self.difference is None else self.difference == 0

    @property
    def group(self) -> str:
        """``ops/test_add.py::...`` tests ``add``, ``models/test_ds_cnn.py`` models/ds_cnn."""
        path = Path(self.id.split("::")[0])
        stem = path.stem.removeprefix("test_")
        return stem if path.parent.name == "ops" else str(path.parent / stem).removeprefix("./")


@dataclass(frozen=True)
class SuiteReport:
    suite: str
    simulator: str
    elf: str
    tests: tuple[SuiteTest, ...]
    seconds: float
    log: Path
    complaints: tuple[str, ...] = ()  # about the list of known failures
    note: str = ""  # about the suite
    firmware: str = "bundled"  # whose runner: as records name it, or a given ELF
    exporter: str = "wheel"  # whose tests and exporter

    @property
    def on_target(self) -> int:
        """Tests that started the simulator; the others only compile."""
        return sum(test.simulated for test in self.tests)

    @property
    def simulated_again(self) -> int:
        """Tests that simulated a program from the store of exports."""
        return sum(test.from_store and test.simulated for test in self.tests)

    @property
    def not_repeated(self) -> int:
        """Tests that simulate nothing, and whose exporter is that of an earlier run: the result
        is that run's."""
        return sum(test.from_store and not test.simulated for test in self.tests)

    @property
    def exact(self) -> tuple[int, int]:
        """How many of the tests that passed were exact, and of how many that was observed."""
        observed = [test.exact for test in self.tests if test.result == "passed"]
        return observed.count(True), len(observed) - observed.count(None)

    @property
    def summary(self) -> dict[str, int]:
        counts = Counter(test.result for test in self.tests)
        return {result: counts[result] for result in RESULTS}

    @property
    def exit_code(self) -> int:
        failed = self.summary["failed"] or self.complaints or not self.summary["passed"]
        return int(bool(failed))

    def operators_missing(self) -> dict[str, list[str]]:
        """By operator, the tests whose programs need it; the most wanted first."""
        wanted: dict[str, list[str]] = {}
        for test in self.tests:
            for operator in test.missing:
                wanted.setdefault(operator, []).append(test.id)
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
            "simulated_again": self.simulated_again,
            "not_repeated": self.not_repeated,
            "bit_exact": dict(zip(("exact", "of"), self.exact, strict=True)),
            "note": self.note,
            "tests": [_test_as_json(test) for test in self.tests],
            "operators_missing": [
                {"operator": operator, "tests": tests}
                for operator, tests in self.operators_missing().items()
            ],
            "complaints": list(self.complaints),
            "log": str(self.log),
        }


def _test_as_json(test: SuiteTest) -> Mapping[str, Any]:
    return {
        "id": test.id,
        "result": test.result,
        "cause": test.cause,
        "seconds": round(test.seconds, 3),
        "simulated": test.simulated,
        "from_store": test.from_store,
        "bit_exact": test.exact,
        "difference": test.difference,
    }


def worst_first(tests: Sequence[SuiteTest]) -> list[SuiteTest]:
    order = {"failed": 0, "unsupported": 1, "xfailed": 2, "skipped": 3, "passed": 4}
    return sorted(tests, key=lambda test: (order[test.result], test.id))
