"""The verdict on a lone console log, from anybody's CI: no run directory, no simulator. Pure.

A log proves less than a run. PASS needs a runner that says it completed, no failure on any
line, and at least one bundled test set that the runner itself compared (``Test_result: PASS``);
with several runs in the log, of each. Where all completed and not all compared their outputs, the
verdict is COMPLETED, which a run by the harness cannot have. A log that is cut or a model's limit
are never PASS. ``unknowable`` lists what no log can show, whatever the verdict.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness.core.errors import UsageError
from harness.core.judgement import Cause, Finding, Judgement, Reason
from harness.core.tables import read_table
from harness.core.verdict import Verdict
from harness.judge.ending import failed, limit_notes, model_limit, not_loaded, suspicion
from harness.judge.symbols import with_symbols
from harness.log.events import ENDS, Kind, Observation, Progress, Stage
from harness.log.parser import LogParser
from harness.system.files import regular

_PIECE = 1 << 20  # bytes read at a time


def judge_log(observation: Observation) -> Judgement:
    notes = (*_notes(observation), *limit_notes(observation))
    finding = (
        failed(observation)
        or not_loaded(observation)
        or model_limit(observation)
        or _unproven(observation)
    )
    return Judgement.of(finding, notes)


def _unproven(observation: Observation) -> Finding:
    last = observation.lines or None
    if not observation.lines:
        return Verdict.NO_VERDICT, Cause(Reason.EMPTY_LOG, "the log is empty")
    if observation.runner_line is None and not observation.progress:
        text = f"no line of an ExecuTorch runner; the last line is: {observation.last_line}"
        return Verdict.NO_VERDICT, Cause(Reason.NO_RUNNER_LINE, text, last)
    if not observation.over:
        reached = f"the last line is: {observation.last_line}"
        if observation.progress:
            reached = _as_far_as(observation.progress[-1])
        text = f"the runner never says it completed; {reached}"
        return Verdict.NO_VERDICT, Cause(Reason.NO_END_MARKER, text, last, suspicion(observation))
    runs = _runs(observation)
    return (
        _incomplete(runs)
        or _said_to_have_failed(observation)
        or _nothing_ran(observation)
        or _not_compared(runs)
        or _gone_on(observation)
    )


_PREPARATION = (Stage.BOOTED, Stage.PROGRAM, Stage.METHOD, Stage.INPUTS)
_EXECUTION = (Stage.EXECUTING, Stage.EXECUTED)
_SHOWS_INFERENCE = (*_EXECUTION, Stage.OUTPUT)


@dataclass(frozen=True)
class _Runs:
    """The runs of a log.

    ``begun``: the last step of a run that never ended; ``silent``: the end of the first run that
    compared nothing."""

    begun: Progress | None
    silent: Progress | None


def _runs(observation: Observation) -> _Runs:
    begun: Progress | None = None
    ends: list[Progress] = []
    for step in observation.progress:
        if step.stage in ENDS:
            if begun is not None or not ends:
                ends.append(step)
            elif step.stage is Stage.COMPLETE:  # else the program ends that the runner was in
                ends[-1:] = [step] if ends[-1].stage is Stage.ENDED else [ends[-1], step]
            begun = None
        elif step.stage is Stage.METHOD and begun is not None and begun.stage in _EXECUTION:
            break  # another run begins
        elif step.stage in _EXECUTION or (ends and step.stage in _PREPARATION):
            begun = step
    starts = [0, *(end.line for end in ends)]
    silent = (
        end
        for start, end in zip(starts, ends, strict=False)
        if not any(start < line <= end.line for line in observation.bundle_lines)
    )
    return _Runs(begun, next(silent, None))


def _not_compared(runs: _Runs) -> Finding:
    if runs.silent is None:
        return None
    text = "the run completed, but nothing in the log compares its outputs with anything"
    return Verdict.COMPLETED, Cause(Reason.NOTHING_COMPARED, text, runs.silent.line)


def _gone_on(observation: Observation) -> Finding:
    stray = next(iter(observation.strays), None)
    if stray is None:
        return None
    verdict = Verdict.COMPLETED if observation.strays_settled else Verdict.NO_VERDICT
    text = (
        "the outputs compared well, but after an end marker there is a line that no known runner, "
        f"simulator or CI system prints: {stray.text}"
    )
    return verdict, Cause(Reason.UNKNOWN_LINE, text, stray.line)


def _incomplete(runs: _Runs) -> Finding:
    if runs.begun is None:
        return None
    text = f"one of several runs in the log never says it completed; {_as_far_as(runs.begun)}"
    return Verdict.NO_VERDICT, Cause(Reason.NO_END_MARKER, text, runs.begun.line)


def _said_to_have_failed(observation: Observation) -> Finding:
    suspect = next((s for s in observation.suspects if s.kind is Kind.JOB_FAILED), None)
    if suspect is None:
        return None
    text = f"the runner completed, and yet the log says: {suspect.text}"
    return Verdict.NO_VERDICT, Cause(Kind.JOB_FAILED, text, suspect.line)


def _nothing_ran(observation: Observation) -> Finding:
    """No inference, no output, or only NaN: a run that completed without doing anything."""
    if observation.bundle_lines:
        return None
    tensors = observation.tensors
    executed = any(step.stage in _SHOWS_INFERENCE for step in observation.progress)
    shown = executed or tensors or observation.output_files or observation.op_ticks
    nothing = observation.complete_line is not None and not shown
    if nothing or (observation.output_count == 0 and not tensors):
        text = "the runner completed, but the log shows no inference and no output"
        return Verdict.NO_VERDICT, Cause(Reason.NO_INFERENCE, text, observation.lines or None)
    read = [tensor for tensor in tensors if tensor.elements]
    if read and all(tensor.only_nan for tensor in read):
        line = tensors[0].line
        return Verdict.NO_VERDICT, Cause(Reason.ONLY_NAN, "every output in the log is NaN", line)
    return None


def _as_far_as(step: Progress) -> str:
    return f"it got as far as {step.stage.value} (line {step.line}: {step.text})"


def _notes(observation: Observation) -> tuple[str, ...]:
    notes = []
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
    missing = observation.failures and observation.failures[0].kind is Kind.OPERATOR_MISSING
    if missing and not observation.over:
        end = "ExecuTorch's sample goes on and spins until a limit"
        notes.append(f"nothing ended the program: {end}")
    if observation.failures_dropped:
        notes.append(f"{observation.failures_dropped} more failure lines")
    gone_on = (s for s in observation.suspects if s.kind is not Kind.JOB_FAILED)
    if observation.over and (suspect := next(gone_on, None)):
        notes.append(f"the run went on after line {suspect.line}: {suspect.text}")
    return tuple(notes)


@dataclass(frozen=True)
class JudgedLog:
    path: Path
    judgement: Judgement
    observation: Observation

    @property
    def unknowable(self) -> tuple[str, ...]:
        """Names the facts that a log cannot show, in sentences."""
        firmware = "which firmware ran is unknown"
        if build := self.observation.build_id:
            firmware = f"the firmware says it is build {build}; whether that was meant is unknown"
        ended = "how the process ended (exit status, signal) is unknown"
        return ended, firmware, "which .pte ran is unknown"

    def summary(self) -> dict[str, Any]:
        cause, seen = self.judgement.cause, self.observation
        return {
            "log": str(self.path),
            "verdict": self.judgement.verdict,
            "cause": None if cause is None else asdict(cause),
            "notes": list(self.judgement.notes),
            "unknown": list(self.unknowable),
            "lines": seen.lines,
            "progress": [{"stage": p.stage.value, "line": p.line} for p in seen.progress],
            "metrics": seen.metrics,
            "pmu": seen.pmu,
            "bundle_passes": seen.bundle_passes,
            "outputs": [asdict(tensor) for tensor in seen.tensors],
            "stop": None if seen.stop is None else asdict(seen.stop),
            "versions": seen.versions,
        }


def judge_file(path: Path, elf: Path | None = None, prefix: str | None = None) -> JudgedLog:
    """Judge a log.

    ``prefix``: a regular expression for what stands before every line. Raises UsageError if the log
    cannot be read, or if the expression is malformed."""
    try:
        reader, first = LogParser(prefix=re.compile(prefix.encode()) if prefix else None), b""
    except re.error as error:
        raise UsageError(f"--prefix {prefix!r} is not a regular expression: {error}") from error
    try:
        with regular(path) as (file, _):
            while piece := file.read(_PIECE):
                first = first or piece
                reader.feed(piece)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", path=path) from error
    observation = reader.finish()
    if elf is not None:
        observation = with_symbols(observation, elf)
    judgement = judge_log(observation)
    if judgement.cause is not None and judgement.cause.kind == Reason.NO_RUNNER_LINE:
        files = read_table(__file__).items()
        named = (f"this is {what}" for what, words in files if re.search(words.encode(), first))
        judgement = replace(judgement, notes=(*judgement.notes, *list(named)[:1]))
    return JudgedLog(path, judgement, observation)
