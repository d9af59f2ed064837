"""The verdict on a lone console log, from anybody's CI: no run directory, no simulator. Pure.

A log proves less than a run. PASS needs a runner that says it completed, no failure on any
line, and at least one bundled test set that the runner itself compared (``Test_result: PASS``);
with several runs in the log, of each. Outputs that nobody compared, a log that is cut, or a
model's limit are never PASS. What a log cannot tell is said in the notes, whatever the verdict.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.errors.verdict import Verdict
from harness.judge.ending import failed, limit_notes, model_limit
from harness.judge.evidence import Cause, Finding, Judgement, Reason, judgement
from harness.judge.symbols import with_symbols
from harness.observe import Kind, Observation, Progress, Stage
from harness.observe.reader import Reader

_PIECE = 1 << 20  # bytes read at a time


def judge_log(observation: Observation) -> Judgement:
    notes = (*_unknown(observation), *limit_notes(observation))
    finding = failed(observation) or model_limit(observation) or _unproven(observation)
    return judgement(finding, notes)


def _unproven(observation: Observation) -> Finding:
    last = observation.lines or None
    if not observation.lines:
        return Verdict.NO_VERDICT, Cause(Reason.EMPTY_LOG, "the log is empty")
    if observation.runner_line is None and not observation.progress:
        return Verdict.NO_VERDICT, Cause(
            Reason.NO_RUNNER_LINE,
            f"no line of an ExecuTorch runner; the last line is: {observation.last_line}",
            last,
        )
    if observation.complete_line is None:
        return Verdict.NO_VERDICT, Cause(
            Reason.NO_END_MARKER,
            f"the runner never says it completed; {_reached(observation)}",
            last,
            _suspect(observation),
        )
    return _each_run(observation) or _said_to_have_failed(observation)


_PREPARATION = (Stage.PROGRAM, Stage.METHOD, Stage.INPUTS)
_EXECUTION = (Stage.EXECUTING, Stage.EXECUTED)


def _each_run(observation: Observation) -> Finding:
    """A log may hold several runs; each must complete and compare its outputs."""
    begun: Progress | None = None  # how far a run got that has not completed yet
    after = 0  # the line where the run before it completed
    for step in observation.progress:
        if step.stage is Stage.COMPLETE:
            if not any(after < line <= step.line for line in observation.bundle_lines):
                return Verdict.NO_VERDICT, Cause(
                    Reason.NOTHING_COMPARED,
                    "the run completed, but nothing in the log compares its outputs with anything",
                    step.line,
                )
            begun, after = None, step.line
        elif step.stage is Stage.METHOD and begun is not None and begun.stage in _EXECUTION:
            break  # another run begins
        elif step.stage in _EXECUTION or (after and step.stage in _PREPARATION):
            begun = step
    if begun is None:
        return None
    return Verdict.NO_VERDICT, Cause(
        Reason.NO_END_MARKER,
        f"one of several runs in the log never says it completed; it got as far as "
        f"{begun.stage.value} (line {begun.line}: {begun.text})",
        begun.line,
    )


def _said_to_have_failed(observation: Observation) -> Finding:
    said = next((s for s in observation.suspects if s.kind is Kind.EXIT_STATUS), None)
    if said is None:
        return None
    return Verdict.NO_VERDICT, Cause(
        Reason.EXIT_STATUS, f"the runner completed, and yet the log says: {said.text}", said.line
    )


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
    for block in observation.blocks:
        size = f"{len(block.data)} bytes" if block.whole else "damaged"
        notes.append(f"what is in {block.name} ({size}, in base64 on line {block.line})")
    if observation.cut:
        notes.append("the last line has no end: the log may be cut")
    if observation.failures_dropped:
        notes.append(f"{observation.failures_dropped} more failure lines")
    return tuple(notes)


@dataclass(frozen=True)
class JudgedLog:
    path: Path
    judgement: Judgement
    observation: Observation

    def summary(self) -> dict[str, Any]:
        cause, seen = self.judgement.cause, self.observation
        return {
            "log": str(self.path),
            "verdict": self.judgement.verdict,
            "cause": None if cause is None else asdict(cause),
            "unknown": list(self.judgement.notes),
            "lines": seen.lines,
            "progress": [{"stage": p.stage.value, "line": p.line} for p in seen.progress],
            "metrics": {name: m.value for name, m in seen.metrics.items()},
            "pmu": {name: m.value for name, m in seen.pmu.items()},
            "bundle_passes": seen.bundle_passes,
            "outputs": [
                {
                    "index": t.index,
                    "dtype": t.dtype,
                    "elements": len(t.values),
                    "whole": t.whole,
                    "sizes": t.sizes,
                }
                for t in seen.tensors
            ],
            "files": [
                {"name": b.name, "bytes": len(b.data), "whole": b.whole, "line": b.line}
                for b in seen.blocks
            ],
            "stop": None if seen.stop is None else asdict(seen.stop),
            "versions": seen.versions,
        }


def judge_file(path: Path, elf: Path | None = None) -> JudgedLog:
    """Raises UsageError when the log cannot be read."""
    reader = Reader()
    try:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                reader.feed(piece)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", path=path) from error
    observation = reader.finish()
    if elf is not None:
        observation = with_symbols(observation, elf)
    return JudgedLog(path, judge_log(observation), observation)
