"""Phases -> verdicts: one result per test, and the first cause of a failure in one line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.conformance.model import Phase, Result, StandinMissing, SuiteResult
from harness.observe import Observation, observe
from harness.observe.events import LAUNCH, Kind

_ABSENT = re.compile(
    r"No module named '(?P<module>[\w.]+)'|could not import '(?P<imported>[\w.]+)'"
    r"|(?P<file>FileNotFoundError: .*)"
)
_MISMATCH = re.compile(
    r"(Output \d+) does not match reference output.*?shape: torch.Size\((?P<shape>[^)]*)\), "
    r"dtype: torch\.(?P<dtype>\w+).*?abs: (?P<abs>[^,]+), mean abs error: (?P<mean>\S+?)\.?\n",
    re.S,
)
# What the stand-in says that does not simulate, in the exception of ExecuTorch's ``_run_cmd``.
_REFUSAL = re.compile(r"^(?:Stderr: )?Error: (?P<said>FVP_\w\S*: .+)$", re.M)
NPU_MODEL = "the NPU model"
NO_STANDIN = "the stand-in or the runner was not found"
# ExecuTorch's marks for a missing FVP or runner (backends/arm/test/common.py, 1.5.1), and what a
# suite without them raises.
_NO_SIMULATOR = re.compile(
    r"Did not find Corstone|Did not find elf file|No such file or directory: '\S*FVP_"
)
# Of the set-up and not of what ExecuTorch does; and how a suite says that it means just that.
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


def judge(phases: Sequence[Phase]) -> tuple[SuiteResult, ...]:
    """In the order in which the tests were first heard of."""
    by_test: dict[str, list[Phase]] = {}
    for phase in phases:
        by_test.setdefault(phase.test, []).append(phase)
    return tuple(_judge(test, group) for test, group in by_test.items())


def require_found(verdicts: Iterable[SuiteResult]) -> None:
    """Raises StandinMissing when a test looked for stand-in and runner in vain."""
    for verdict in verdicts:
        if verdict.cause.startswith(NO_STANDIN):
            raise StandinMissing(verdict.id, verdict.cause)


def _judge(test: str, phases: list[Phase]) -> SuiteResult:
    seen = [observe(console) for phase in phases for console in phase.consoles]
    result, cause = _result(phases, seen)
    seconds = sum(phase.seconds for phase in phases)
    simulated = any(phase.consoles for phase in phases)
    apart = max((p.apart for p in phases if p.apart is not None and p.consoles), default=None)
    missing = tuple(_missing_operators(seen))
    return SuiteResult(test, result, cause, seconds, missing, simulated, apart)


def _result(phases: list[Phase], seen: Sequence[Observation]) -> tuple[Result, str]:
    worst = next((p for p in phases if p.outcome == "failed"), None)
    worst = worst or next((p for p in phases if p.outcome == "skipped"), None)
    if worst is None or worst.message.startswith(_STRICT):
        return "passed", _surprise(phases)
    if worst.xfail is not None and worst.outcome == "skipped":
        return _expected_failure(worst, worst.xfail or "no reason given", seen)
    if absent := _absent(worst.message):
        return "unsupported", f"needs {absent}, which is not installed"
    if worst.outcome == "skipped":
        return "skipped", _one_line(worst.message.removeprefix("Skipped: "))
    if beyond := _beyond_the_model(seen):
        return "unsupported", f"{NPU_MODEL}: {beyond}"
    return "failed", _cause(worst, seen)


def _expected_failure(phase: Phase, reason: str, seen: Sequence[Observation]) -> tuple[Result, str]:
    """The suite knows what ExecuTorch does not do. What the set-up lacks, the runner or the
    simulator, it does not know, and a failure for that proves nothing of what was expected."""
    cause = _cause(phase, seen)
    if _NO_SIMULATOR.search(f"{reason}\n{phase.message}"):
        return "failed", f"{NO_STANDIN}: {cause}"
    if beyond := _beyond_the_model(seen):
        return "unsupported", f"{NPU_MODEL}: {beyond}"
    failures = (failure for observation in seen for failure in observation.failures)
    lack = next((f for f in failures if f.kind in _SET_UP), None)
    if lack is not None and not _SET_UP[lack.kind].search(reason):
        said = _one_line(f"{lack.kind.value}: {lack.text}")
        return "failed", f"{said}; the suite expects a failure for another reason: {reason}"
    return "xfailed", f"the suite's own: {reason} [{cause}]"


def _beyond_the_model(seen: Iterable[Observation]) -> str:
    """What the NPU model does not do, as the console has it."""
    return next((_one_line(text) for text in _said(seen, "unsupported")), "")


def _surprise(phases: list[Phase]) -> str:
    """The suite marks what ExecuTorch's own runner cannot do; another one may do it."""
    expected = next((p.xfail for p in phases if p.xfail is not None), "")
    strict = next((p.message for p in phases if p.message.startswith(_STRICT)), "")
    reason = expected or strict.removeprefix(_STRICT)
    return f"although the suite expects a failure: {reason}" if reason else ""


def _absent(message: str) -> str | None:
    """What was to be imported, when that is why nothing could be run."""
    found = _ABSENT.search(message)
    if found is None:
        return None
    return found["module"] or found["imported"]


def _cause(phase: Phase, seen: Sequence[Observation]) -> str:
    """The console's first failure; else the numbers of a mismatch; else what was raised."""
    for observation in seen:
        if observation.failures:
            first = observation.failures[0]
            return _one_line(f"{first.kind.value}: {first.text}")
    if refusal := _REFUSAL.search(phase.message):
        return _one_line(f"{Kind.SIMULATOR_ERROR.value}: {refusal['said']}")
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


def _missing_operators(seen: Iterable[Observation]) -> list[str]:
    return list(dict.fromkeys(_said(seen, "operator")))


def _said(seen: Iterable[Observation], fact: str) -> Iterator[str]:
    """One fact of all failures that the consoles tell of."""
    for observation in seen:
        for failure in observation.failures:
            if fact in failure.facts:
                yield failure.facts[fact]
