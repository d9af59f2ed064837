"""Phases of tests in, one result per test out, with the first cause of a failure in one line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.log import Observation, parse_console
from harness.log.events import LAUNCH, Kind
from harness.suites.results import Phase, Result, StandinMissing, SuiteTest

_ABSENT = re.compile(
    r"No module named '(?P<module>[\w.]+)'|could not import '(?P<imported>[\w.]+)'"
    r"|(?P<file>FileNotFoundError: .*)"
)
_MISMATCH = re.compile(
    r"(Output \d+) does not match reference output.*?shape: torch.Size\((?P<shape>[^)]*)\), "
    r"dtype: torch\.(?P<dtype>\w+).*?abs: (?P<abs>[^,]+), mean abs error: (?P<mean>\S+?)\.?\n",
    re.S,
)
# An error of the stand-in, which then simulates nothing, in ExecuTorch's ``_run_cmd``'s exception.
_REFUSAL = re.compile(r"^(?:Stderr: )?Error: (?P<error>FVP_\w\S*: .+)$", re.M)
NPU_MODEL = "the NPU model"
NO_STANDIN = "the stand-in or the runner was not found"
# ExecuTorch's marks for a missing FVP or runner (backends/arm/test/common.py, 1.5.1), and what a
# suite without them raises.
_NO_SIMULATOR = re.compile(
    r"Did not find Corstone|Did not find elf file|No such file or directory: '\S*FVP_"
)
# Failures of the set-up, not of ExecuTorch; the pattern of a reason that expects just this one.
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


def judge(phases: Sequence[Phase]) -> tuple[SuiteTest, ...]:
    """In the order of the tests' first phases."""
    by_test: dict[str, list[Phase]] = {}
    for phase in phases:
        by_test.setdefault(phase.test, []).append(phase)
    return tuple(_judge(test, group) for test, group in by_test.items())


def require_found(tests: Iterable[SuiteTest]) -> None:
    """Raises StandinMissing when a test did not find the stand-in or the runner."""
    for test in tests:
        if test.cause.startswith(NO_STANDIN):
            raise StandinMissing(test.id, test.cause)


def _judge(test: str, phases: list[Phase]) -> SuiteTest:
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
    )


def _result(phases: list[Phase], consoles: Sequence[Observation]) -> tuple[Result, str]:
    worst = next((p for p in phases if p.outcome == "failed"), None)
    worst = worst or next((p for p in phases if p.outcome == "skipped"), None)
    if worst is None or worst.message.startswith(_STRICT):
        return "passed", _surprise(phases)
    if worst.xfail is not None and worst.outcome == "skipped":
        return _expected_failure(worst, worst.xfail or "no reason given", consoles)
    if absent := _absent(worst.message):
        return "unsupported", f"needs {absent}, which is not installed"
    if worst.outcome == "skipped":
        return "skipped", _one_line(worst.message.removeprefix("Skipped: "))
    if beyond := _beyond_the_model(consoles):
        return "unsupported", f"{NPU_MODEL}: {beyond}"
    return "failed", _cause(worst, consoles)


def _expected_failure(
    phase: Phase, reason: str, consoles: Sequence[Observation]
) -> tuple[Result, str]:
    """The suite expects what ExecuTorch cannot do. It does not know what the runner or the
    simulator lacks, and a failure for such a reason does not prove the expected one."""
    cause = _cause(phase, consoles)
    if _NO_SIMULATOR.search(f"{reason}\n{phase.message}"):
        return "failed", f"{NO_STANDIN}: {cause}"
    if beyond := _beyond_the_model(consoles):
        return "unsupported", f"{NPU_MODEL}: {beyond}"
    failures = (failure for observation in consoles for failure in observation.failures)
    lacking = next((f for f in failures if f.kind in _SET_UP), None)
    if lacking is not None and not _SET_UP[lacking.kind].search(reason):
        text = _one_line(f"{lacking.kind.value}: {lacking.text}")
        return "failed", f"{text}; the suite expects a failure for another reason: {reason}"
    return "xfailed", f"the suite's own: {reason} [{cause}]"


def _beyond_the_model(consoles: Iterable[Observation]) -> str:
    """The operation that the NPU model does not have, from the console; or ""."""
    return next((_one_line(text) for text in _facts(consoles, "unsupported")), "")


def _surprise(phases: list[Phase]) -> str:
    """A pass in spite of the suite's mark: another runner may do what ExecuTorch's cannot."""
    expected = next((p.xfail for p in phases if p.xfail is not None), "")
    strict = next((p.message for p in phases if p.message.startswith(_STRICT)), "")
    reason = expected or strict.removeprefix(_STRICT)
    return f"although the suite expects a failure: {reason}" if reason else ""


def _absent(message: str) -> str | None:
    """The module that is not installed, when the test needs one."""
    missing = _ABSENT.search(message)
    return (missing["module"] or missing["imported"]) if missing else None


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
    """One fact of all failures in the consoles."""
    for observation in consoles:
        for failure in observation.failures:
            if fact in failure.facts:
                yield failure.facts[fact]
