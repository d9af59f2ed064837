"""Data of a suite's run: the selection, the phases of tests, and the result of each test with the
first cause of a failure in one line."""

from __future__ import annotations

import base64
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from harness.core.errors import InfraError
from harness.core.verdict import ExitCode
from harness.log.events import LAUNCH, Kind, Observation
from harness.log.parser import parse_console


class StandinMissing(InfraError):
    """The suite would not find the stand-in or its runner, and would then expect failures.

    ``looked_for``: the command or test. ``reason``: why it cannot be used.
    """

    def __init__(self, looked_for: str, reason: str) -> None:
        self.looked_for = looked_for
        self.reason = reason
        super().__init__(
            f"the suite cannot run on the stand-in: {looked_for}: {reason}",
            hint="nothing was proven; run `hil doctor`, and check that no other FVP is ahead of "
            "the stand-in on PATH",
        )


Result = Literal["passed", "failed", "xfailed", "skipped", "unsupported"]
RESULTS: tuple[Result, ...] = get_args(Result)


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
    difference: float | None = None  # the largest of the compared outputs; None: it compared none
    constant: bool = False  # each of them was one value throughout
    from_store: bool = False  # pytest did not run it now: an earlier run exported it

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Phase:
        """Reads the fields that ``recorder`` writes, with the consoles in base64."""
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
    difference: float | None = None  # largest difference to the reference; None: none was observed
    constant: bool = False  # its outputs were right, and one value throughout: they prove nothing

    @property
    def exact(self) -> bool | None:
        """Whether all outputs equal the reference bit for bit; the suite itself has tolerances."""
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
    firmware: str = "bundled"  # the runner's: its name in records, or "a given ELF"
    exporter: str = "wheel"  # the source of the tests and of the exporter

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
        """Tests that simulate nothing and whose exporter has not changed: their result is an
        earlier run's."""
        return sum(test.from_store and not test.simulated for test in self.tests)

    @property
    def exact(self) -> tuple[int, int]:
        """How many passed tests were exact, and for how many that was observed; leaves out tests
        that prove nothing."""
        passed = [test for test in self.tests if test.result == "passed" and not test.constant]
        observed = [test.exact for test in passed]
        return observed.count(True), len(observed) - observed.count(None)

    @property
    def constant(self) -> list[str]:
        """The passed tests whose outputs were one value throughout."""
        return [test.id for test in self.tests if test.result == "passed" and test.constant]

    @property
    def summary(self) -> dict[str, int]:
        counts = Counter(test.result for test in self.tests)
        return {result: counts[result] for result in RESULTS}

    @property
    def exit_code(self) -> ExitCode:
        failed = self.summary["failed"] or self.complaints or not self.summary["passed"]
        return ExitCode.FAILED if failed else ExitCode.PASSED

    def operators_missing(self) -> dict[str, list[str]]:
        """The tests whose programs need a missing operator, by operator; the most needed first."""
        wanted: dict[str, list[str]] = {}
        for test in self.tests:
            for operator in test.missing:
                wanted.setdefault(operator, []).append(test.id)
        return dict(sorted(wanted.items(), key=lambda item: (-len(item[1]), item[0])))

    def as_json(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "log": str(self.log),
            "seconds": round(self.seconds, 1),
            "summary": self.summary,
            "on_target": self.on_target,
            "simulated_again": self.simulated_again,
            "not_repeated": self.not_repeated,
            "bit_exact": dict(zip(("exact", "of"), self.exact, strict=True)),
            "tests": [{**asdict(test), "bit_exact": test.exact} for test in self.tests],
            "operators_missing": [
                {"operator": operator, "tests": tests}
                for operator, tests in self.operators_missing().items()
            ],
        }


def worst_first(tests: Sequence[SuiteTest]) -> list[SuiteTest]:
    order = {"failed": 0, "unsupported": 1, "xfailed": 2, "skipped": 3, "passed": 4}
    return sorted(tests, key=lambda test: (order[test.result], test.id))


_ABSENT = re.compile(
    r"(?:No module named|could not import) '([\w.]+)'|FileNotFoundError: .*"  # the first counts
)
_MISMATCH = re.compile(
    r"(Output \d+) does not match reference output.*?shape: torch.Size\((?P<shape>[^)]*)\), "
    r"dtype: torch\.(?P<dtype>\w+).*?abs: (?P<abs>[^,]+), mean abs error: (?P<mean>\S+?)\.?\n",
    re.S,
)
# An error of the stand-in, in the exception of ExecuTorch's ``_run_cmd``: nothing was simulated.
_REFUSAL = re.compile(r"^(?:Stderr: )?Error: (?P<error>FVP_\w\S*: .+)$", re.M)
NPU_MODEL = "the NPU model"
NO_STANDIN = "the stand-in or the runner was not found"
# ExecuTorch's marks for a missing FVP or runner (backends/arm/test/common.py, 1.5.1), and the error
# of a suite without such marks.
_NO_SIMULATOR = re.compile(
    r"Did not find Corstone|Did not find elf file|No such file or directory: '\S*FVP_"
)
# Failures of the set-up, not of ExecuTorch, with the pattern of reasons that expect just this one.
_SET_UP: Mapping[Kind, re.Pattern[str]] = {
    Kind.OPERATOR_MISSING: re.compile(
        r"missing (op|kernel)|(op|operator|kernel)s? (is |are )?(missing|not (found|registered))",
        re.I,
    ),
    Kind.BACKEND_MISSING: re.compile(r"backend", re.I),
    Kind.ALLOCATION_FAILED: re.compile(r"memory|alloc|too (large|big)|\bOOM\b", re.I),
    **dict.fromkeys((*LAUNCH, Kind.SEMIHOSTING_OFF), re.compile(r"(?!)")),
}
_STRICT = "[XPASS(strict)] "  # pytest, for a test that passed and was marked to fail
_CAUSE_CHARACTERS = 300


def results_of(phases: Sequence[Phase]) -> tuple[SuiteTest, ...]:
    """The result of each test, in the order of the tests' first phases."""
    by_test: dict[str, list[Phase]] = {}
    for phase in phases:
        by_test.setdefault(phase.test, []).append(phase)
    return tuple(_result_of(test, group) for test, group in by_test.items())


def require_found(tests: Iterable[SuiteTest]) -> None:
    """Raises StandinMissing when a test did not find the stand-in or the runner."""
    for test in tests:
        if test.cause.startswith(NO_STANDIN):
            raise StandinMissing(test.id, test.cause)


def _result_of(test: str, phases: list[Phase]) -> SuiteTest:
    consoles = [parse_console(console) for phase in phases for console in phase.consoles]
    result, cause = _result(phases, consoles)
    return SuiteTest(
        id=test,
        result=result,
        cause=cause,
        seconds=sum(phase.seconds for phase in phases),
        missing=tuple(dict.fromkeys(_facts(consoles, "operator"))),
        simulated=bool(consoles),
        from_store=any(phase.from_store for phase in phases),
        difference=next((p.difference for p in phases if p.difference is not None), None),
        constant=any(phase.constant for phase in phases),
    )


def _result(phases: list[Phase], consoles: Sequence[Observation]) -> tuple[Result, str]:
    worst = next((p for p in phases if p.outcome == "failed"), None)
    worst = worst or next((p for p in phases if p.outcome == "skipped"), None)
    if worst is None or worst.message.startswith(_STRICT):
        return "passed", _unexpected_pass(phases)
    if worst.xfail is not None and worst.outcome == "skipped":
        return _expected_failure(worst, worst.xfail or "no reason given", consoles)
    if (absent := _ABSENT.search(worst.message)) and absent[1]:
        return "unsupported", f"needs {absent[1]}, which is not installed"
    if worst.outcome == "skipped":
        return "skipped", _one_line(worst.message.removeprefix("Skipped: "))
    if operation := _unmodelled_operation(consoles):
        return "unsupported", f"{NPU_MODEL}: {operation}"
    return "failed", _cause(worst, consoles)


def _expected_failure(
    phase: Phase, reason: str, consoles: Sequence[Observation]
) -> tuple[Result, str]:
    """The suite marks what ExecuTorch cannot do. It does not know what the runner or the simulator
    lacks: a failure for that reason does not prove the expected one."""
    cause = _cause(phase, consoles)
    if _NO_SIMULATOR.search(f"{reason}\n{phase.message}"):
        return "failed", f"{NO_STANDIN}: {cause}"
    if operation := _unmodelled_operation(consoles):
        return "unsupported", f"{NPU_MODEL}: {operation}"
    failures = (failure for observation in consoles for failure in observation.failures)
    lacking = next((f for f in failures if f.kind in _SET_UP), None)
    if lacking is not None and not _SET_UP[lacking.kind].search(reason):
        text = _one_line(f"{lacking.kind.value}: {lacking.text}")
        return "failed", f"{text}; the suite expects a failure for another reason: {reason}"
    return "xfailed", f"the suite's own: {reason} [{cause}]"


def _unmodelled_operation(consoles: Iterable[Observation]) -> str:
    """The operation that the NPU model lacks, from the consoles; or ""."""
    return next((_one_line(text) for text in _facts(consoles, "unsupported")), "")


def _unexpected_pass(phases: list[Phase]) -> str:
    """The note on a pass that the suite marked as a failure: this runner does what ExecuTorch's
    cannot."""
    expected = next((p.xfail for p in phases if p.xfail is not None), "")
    strict = next((p.message for p in phases if p.message.startswith(_STRICT)), "")
    reason = expected or strict.removeprefix(_STRICT)
    return f"although the suite expects a failure: {reason}" if reason else ""


def _cause(phase: Phase, consoles: Sequence[Observation]) -> str:
    """The console's first failure; else the numbers of a mismatch; else the exception."""
    for observation in consoles:
        if observation.failures:
            first = observation.failures[0]
            return _one_line(f"{first.kind.value}: {first.text}")
    if refusal := _REFUSAL.search(phase.message):
        return _one_line(f"{Kind.SIMULATOR_ERROR.value}: {refusal['error']}")
    if mismatch := _MISMATCH.search(phase.message):
        shape, dtype = mismatch["shape"], mismatch["dtype"]
        return (
            f"mismatch: {mismatch[1]} {dtype}{shape} differs by up to {mismatch['abs']} "
            f"(mean {mismatch['mean']})"
        )
    return _one_line(phase.message) or f"failed in {phase.when}"


def _one_line(text: str) -> str:
    lines = (line.strip() for line in text.splitlines())
    return next((line for line in lines if line), "")[:_CAUSE_CHARACTERS]


def _facts(consoles: Iterable[Observation], fact: str) -> Iterator[str]:
    """The values of one fact in all failures of the consoles."""
    for observation in consoles:
        for failure in observation.failures:
            if fact in failure.facts:
                yield failure.facts[fact]


@dataclass(frozen=True)
class Selection:
    """``keyword`` is pytest's ``-k``; None: all. ``shard`` is (i, n): the i-th of n parts, from 1.
    ``sample`` is a number of tests, drawn with ``seed``; None: all."""

    keyword: str | None = None
    shard: tuple[int, int] = (1, 1)
    sample: int | None = None
    seed: int = 0

    @property
    def everything(self) -> bool:
        return self.keyword is None and self.shard == (1, 1) and self.sample is None

    def choose(self, ids: Sequence[str]) -> list[str]:
        """Shard and sample of the tests that the keyword matched; both keep their order."""
        index, count = self.shard
        chosen = [test for number, test in enumerate(ids) if number % count == index - 1]
        if self.sample is None:
            return chosen
        names = sorted(chosen)
        drawn = set(random.Random(self.seed).sample(names, min(self.sample, len(names))))
        return [test for test in chosen if test in drawn]
