"""From what was observed to a verdict. Pure: the same facts give the same verdict offline.

The verdict starts at NO_VERDICT, and PASS is the last thing considered: it needs a clean
exit, the end marker, the firmware that was asked for, outputs written by this run that match
on every input set, budgets that hold, and no failure on any line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.compare import TensorDiff
from harness.observe import Event, Kind, Observation
from harness.observe.events import LAUNCH
from harness.reference import Reference


@dataclass(frozen=True)
class Cause:
    """Why a verdict is not PASS. ``line`` counts transcript lines from 1."""

    kind: str
    text: str
    line: int | None = None
    facts: dict[str, Any] | None = None


@dataclass(frozen=True)
class Verdict:
    name: str
    cause: Cause | None = None
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return self.name == "PASS"


@dataclass(frozen=True)
class Ending:
    """How the simulator's process ended.

    ``stop`` is "exited" when it ended by itself, else what made us end it: "deadline", "stall",
    "output_limit", "fault" (a line after which nothing is worth waiting for). ``exit_status`` is
    None when a signal ended it. ``native``: the process was the runner itself, no simulator.
    ``where``: what the CPU was doing when a limit ended the run.
    """

    stop: str
    exit_status: int | None
    signal: int | None
    seconds: float
    native: bool = False
    where: dict[str, Any] | None = None


@dataclass(frozen=True)
class Outputs:
    """What the run wrote, against what was expected.

    ``missing`` names files that do not exist, ``misshapen`` files of the wrong size. ``sha256``
    of every output by input set; ``diffs`` for those that could be compared.
    """

    diffs: tuple[TensorDiff, ...]
    missing: tuple[str, ...] = ()
    misshapen: tuple[str, ...] = ()
    sha256: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Expectation:
    """What the run had to be: which firmware, which program, how close, how large.

    ``limits`` are hard limits in bytes on figures of the run; nobody can accept more.
    """

    build_id: str | None
    pte_unchanged: bool
    pte_sha256: str
    toolchain: str
    tolerance_lsb: float
    reference: Reference | None
    limits: dict[str, int] = field(default_factory=dict)


def judge(
    observation: Observation,
    ending: Ending,
    outputs: Outputs,
    metrics: Mapping[str, int],
    expectation: Expectation,
) -> Verdict:
    """The verdict and its first cause; ``metrics`` are the figures budgets are held against."""
    notes = _notes(expectation) + limit_notes(observation)
    cause = (
        execution_cause(observation, ending, expectation.build_id)
        or _incomplete(outputs)
        or _mismatch(outputs, expectation)
        or _program_changed(expectation)
        or _over_budget(metrics, expectation)
    )
    if cause is None:
        return Verdict("PASS", None, notes)
    return Verdict(cause[0], cause[1], notes)


_Finding = tuple[str, Cause] | None


def execution_cause(observation: Observation, ending: Ending, build_id: str | None) -> _Finding:
    """Why the execution itself is not proven good: (verdict, cause), or None when it is.

    ``build_id`` is of the firmware that was asked for; None asks for none.
    """
    return (
        failed(observation)
        or _ended_badly(observation, ending)
        or _wrong_firmware(observation, build_id)
        or _never_completed(observation)
    )


def failed(observation: Observation) -> _Finding:
    """The first failure line; what follows it is usually only its consequence."""
    if not observation.failures:
        return None
    first: Event = observation.failures[0]
    verdict = "INFRA" if first.kind in LAUNCH else _VERDICTS.get(first.kind, "FAULT")
    facts: dict[str, Any] = dict(first.facts)
    operators = [
        f.facts["operator"]
        for f in observation.failures
        if f.kind is Kind.OPERATOR_MISSING and "operator" in f.facts
    ]
    if first.kind is Kind.OPERATOR_MISSING and operators:
        facts["operators"] = list(dict.fromkeys(operators))
    return verdict, Cause(first.kind.value, first.text, first.line, facts)


_VERDICTS = {Kind.BUNDLE_FAILED: "MISMATCH"}
_STOPS = {
    "deadline": "still running",
    "stall": "no output and no CPU time",
    "output_limit": "more output than any run should have",
}
_MODEL_LIMITS = ("wall_limit", "simulated_limit", "cycle_limit")
_NOT_STARTED = (126, 127)  # what shells, loaders and env say of a program they cannot start


def _ended_badly(observation: Observation, ending: Ending) -> _Finding:
    last = observation.lines or None
    after = f"; the last line was: {observation.last_line}" if observation.last_line else ""
    if ending.stop != "exited":
        return "HANG", Cause(
            ending.stop, _hang_text(observation, ending) + after, last, _hang_facts(ending)
        )
    if ending.signal is not None and ending.native:
        return "FAULT", Cause(
            "process_crash", f"the runner was ended by signal {ending.signal}{after}", last
        )
    if ending.signal is not None:
        return "NO_VERDICT", Cause(
            "simulator_killed", f"the simulator was ended by signal {ending.signal}{after}", last
        )
    limit = model_limit(observation)
    if limit is not None:
        return limit
    if ending.exit_status != 0:
        if ending.exit_status in _NOT_STARTED and observation.runner_line is None:
            return "INFRA", Cause(
                "not_started",
                f"the simulator was not started: exit status {ending.exit_status}{after}",
                last,
            )
        return "FAULT", Cause(
            "exit_status",
            f"ended with exit status {ending.exit_status}{after}",
            last,
            _suspicion(observation),
        )
    return None


def model_limit(observation: Observation) -> _Finding:
    """A limit of the model's own that came before the runner's end."""
    stop = observation.stop
    if stop is None or stop.reason not in _MODEL_LIMITS or observation.complete_line is not None:
        return None
    reached = observation.progress[-1] if observation.progress else None
    how_far = f"; got as far as: {reached.text}" if reached else "; the runner said nothing"
    return "HANG", Cause(stop.reason, stop.text + how_far, stop.line, _suspicion(observation))


def _hang_text(observation: Observation, ending: Ending) -> str:
    what = f"{_STOPS.get(ending.stop, ending.stop)} after {ending.seconds:.1f} s"
    if ending.where is not None:
        where = ending.where.get("pc_symbol") or ending.where.get("pc", "?")
        source = ending.where.get("pc_source")
        what += f", in {where}" + (f" ({source})" if source else "")
    if observation.complete_line is not None:
        what += "; the runner had completed but never ended"
    return what


def _hang_facts(ending: Ending) -> dict[str, Any]:
    return {"stop": ending.stop, **(ending.where or {})}


def _suspicion(observation: Observation) -> dict[str, Any] | None:
    """Words that prove nothing but may explain a bad end."""
    if not observation.suspects:
        return None
    first = observation.suspects[0]
    return {"suspect": first.text, "suspect_line": first.line}


def _wrong_firmware(observation: Observation, build_id: str | None) -> _Finding:
    if build_id is None or observation.build_id == build_id:
        return None
    said = observation.build_id or "nothing"
    return "NO_VERDICT", Cause(
        "wrong_firmware", f"asked for build {build_id}, the target said {said}"
    )


def _never_completed(observation: Observation) -> _Finding:
    if observation.complete_line is not None:
        return None
    said = (
        f"the last line was: {observation.last_line}" if observation.lines else "nothing was said"
    )
    return "NO_VERDICT", Cause(
        "no_end_marker",
        f"the runner never said it completed; {said}",
        observation.lines or None,
        _suspicion(observation),
    )


def _incomplete(outputs: Outputs) -> _Finding:
    if outputs.missing:
        return "NO_VERDICT", Cause("output_missing", f"not written: {', '.join(outputs.missing)}")
    if outputs.misshapen:
        return "MISMATCH", Cause("output_size", "; ".join(outputs.misshapen))
    if not outputs.diffs:
        return "NO_VERDICT", Cause("nothing_compared", "no output was compared with anything")
    return None


def _mismatch(outputs: Outputs, expectation: Expectation) -> _Finding:
    bad = [d for d in outputs.diffs if not d.within(expectation.tolerance_lsb)]
    if bad:
        worst = max(bad, key=lambda d: d.worst_abs)
        return "MISMATCH", Cause("outputs_differ", worst.describe(), None, _facts(worst))
    reference = expectation.reference
    same_program = reference is not None and reference.pte_sha256 == expectation.pte_sha256
    if reference is not None and same_program and reference.outputs != outputs.sha256:
        return "MISMATCH", Cause(
            "reference_outputs", "the outputs are not those of the accepted reference run"
        )
    return None


def _facts(worst: TensorDiff) -> dict[str, Any]:
    return {
        "output": worst.output,
        "input_set": worst.input_set,
        "index": list(worst.worst_index or ()),
        "lsb": worst.worst_lsb,
        "got": worst.got,
        "expected": worst.expected,
    }


def _program_changed(expectation: Expectation) -> _Finding:
    if expectation.pte_unchanged:
        return None
    return "NO_VERDICT", Cause(
        "program_changed",
        "the outputs match, but the .pte is not the one the expected outputs were computed for",
    )


def _over_budget(metrics: Mapping[str, int], expectation: Expectation) -> _Finding:
    limits = expectation.limits
    missing = sorted(limits.keys() - metrics.keys())
    if missing:
        return "NO_VERDICT", Cause("not_measured", f"no figure for {', '.join(missing)}")
    over = [name for name, most in limits.items() if metrics[name] > most]
    if over:
        text = "; ".join(f"{n} is {metrics[n]} bytes, at most {limits[n]} fit" for n in over)
        return "OVER_BUDGET", Cause("over_limit", text, None, {"metrics": over})
    if expectation.reference is None:
        return None
    missing = expectation.reference.unmeasured(metrics, expectation.toolchain)
    if missing:
        return "NO_VERDICT", Cause("not_measured", f"no figure for {', '.join(missing)}")
    grown = expectation.reference.growth(metrics, expectation.toolchain)
    if grown:
        text = "; ".join(g.describe() for g in grown)
        return "OVER_BUDGET", Cause("grown", text, None, {"metrics": [g.metric for g in grown]})
    return None


def _notes(expectation: Expectation) -> tuple[str, ...]:
    notes = []
    reference = expectation.reference
    if reference is None:
        notes.append("no reference run accepted yet")
    else:
        if expectation.toolchain not in reference.firmware:
            notes.append(f"no accepted footprint for toolchain {expectation.toolchain}")
        if reference.pte_sha256 != expectation.pte_sha256:
            notes.append("the .pte differs from the accepted one")
    if not expectation.pte_unchanged:
        notes.append("the .pte is not the one that was exported: its sha256 differs")
    return tuple(notes)


def limit_notes(observation: Observation) -> tuple[str, ...]:
    """A passing run may end by a limit of the model, where nothing tells the model to stop."""
    stop = observation.stop
    if stop is None or stop.reason not in _MODEL_LIMITS or observation.complete_line is None:
        return ()
    return (f"ended by the model's own limit after the runner had completed (line {stop.line})",)


def worst(diffs: Sequence[TensorDiff]) -> float | None:
    """The largest difference in LSB over all outputs; None when one has no scale."""
    values = [d.worst_lsb for d in diffs]
    return None if any(v is None for v in values) else max((v or 0.0 for v in values), default=0.0)
