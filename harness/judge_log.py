"""The verdict on a lone console log, from anybody's CI: no run directory, no simulator. Pure.

A log proves less than a run. PASS needs a runner that says it completed, no failure on any
line, and at least one bundled test set that the runner itself compared (``Test_result: PASS``).
Outputs that nobody compared, a log that is cut, or a model's limit are never PASS. What a log
cannot tell is said in the notes, whatever the verdict.
"""

from __future__ import annotations

from harness.judge import Cause, Verdict, failed, limit_notes, model_limit
from harness.observe import Observation


def judge_log(observation: Observation) -> Verdict:
    notes = (*_unknown(observation), *limit_notes(observation))
    finding = failed(observation) or model_limit(observation) or _unproven(observation)
    if finding is None:
        return Verdict("PASS", None, notes)
    return Verdict(finding[0], finding[1], notes)


def _unproven(observation: Observation) -> tuple[str, Cause] | None:
    last = observation.lines or None
    if not observation.lines:
        return "NO_VERDICT", Cause("empty_log", "the log is empty")
    if observation.runner_line is None and not observation.progress:
        return "NO_VERDICT", Cause(
            "no_runner_line",
            f"no line of an ExecuTorch runner; the last line is: {observation.last_line}",
            last,
        )
    if observation.complete_line is None:
        return "NO_VERDICT", Cause(
            "no_end_marker",
            f"the runner never says it completed; {_reached(observation)}",
            last,
            _suspect(observation),
        )
    if not observation.bundle_passes:
        return "NO_VERDICT", Cause(
            "nothing_compared",
            "the run completed, but nothing in the log compares its outputs with anything",
            observation.complete_line,
        )
    return None


def _reached(observation: Observation) -> str:
    if not observation.progress:
        return f"the last line is: {observation.last_line}"
    stage = observation.progress[-1]
    return f"it got as far as {stage.stage.value} (line {stage.line}: {stage.text})"


def _suspect(observation: Observation) -> dict[str, object] | None:
    if not observation.suspects:
        return None
    first = observation.suspects[0]
    return {"suspect": first.text, "suspect_line": first.line}


def _unknown(observation: Observation) -> tuple[str, ...]:
    """What no log can tell, or this one does not."""
    firmware = (
        f"the firmware says it is build {observation.build_id}; whether that was meant is unknown"
        if observation.build_id
        else "which firmware ran is unknown"
    )
    notes = ["how the process ended (exit status, signal) is unknown", firmware,
             "which .pte ran is unknown"]  # fmt: skip
    if observation.bundle_passes:
        notes.append(
            f"{observation.bundle_passes} bundled test set(s) compared by the runner itself, with "
            "its own tolerance (ExecuTorch's default: 0.01 absolute and relative)"
        )
    if observation.tensors or observation.output_files:
        count = len(observation.tensors) or len(observation.output_files)
        notes.append(f"{count} output(s) in the log, compared with nothing")
    if observation.cut:
        notes.append("the last line has no end: the log may be cut")
    if observation.failures_dropped:
        notes.append(f"{observation.failures_dropped} more failure lines")
    return tuple(notes)
