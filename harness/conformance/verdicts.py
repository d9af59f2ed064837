"""Phases -> verdicts: one result per test, and the first cause of a failure in one line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from harness.conformance.model import Phase, Result, SuiteResult
from harness.observe import Kind, Observation, observe

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
_STRICT = "[XPASS(strict)] "  # pytest, for a test that passed and was marked to fail
_CAUSE_CHARACTERS = 300


def judge(phases: Sequence[Phase]) -> tuple[SuiteResult, ...]:
    """In the order in which the tests were first heard of."""
    by_test: dict[str, list[Phase]] = {}
    for phase in phases:
        by_test.setdefault(phase.test, []).append(phase)
    return tuple(_judge(test, group) for test, group in by_test.items())


def _judge(test: str, phases: list[Phase]) -> SuiteResult:
    seen = [observe(console) for phase in phases for console in phase.consoles]
    result, cause = _result(phases, seen)
    seconds = sum(phase.seconds for phase in phases)
    simulated = any(phase.consoles for phase in phases)
    return SuiteResult(test, result, cause, seconds, tuple(_missing_operators(seen)), simulated)


def _result(phases: list[Phase], seen: Sequence[Observation]) -> tuple[Result, str]:
    worst = next((p for p in phases if p.outcome == "failed"), None)
    worst = worst or next((p for p in phases if p.outcome == "skipped"), None)
    if worst is None or worst.message.startswith(_STRICT):
        return "passed", _surprise(phases)
    if worst.xfail is not None and worst.outcome == "skipped":
        return "xfailed", f"the suite's own: {worst.xfail or 'no reason given'}"
    if absent := _absent(worst.message):
        return "unsupported", f"needs {absent}, which is not installed"
    if worst.outcome == "skipped":
        return "skipped", _one_line(worst.message.removeprefix("Skipped: "))
    if beyond := _beyond_the_model(seen):
        return "unsupported", f"{NPU_MODEL}: {beyond}"
    return "failed", _cause(worst, seen)


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
