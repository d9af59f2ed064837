"""The results of CI jobs: a verdict for each call of the FVP, and of a job.

A script's exit status proves little: ExecuTorch's takes an empty log for a good one, expects the
failure of a test that found no FVP, and compares nothing in many of its runs. So each simulation is
judged by its console (``judge_log``), and each test of pytest as in ExecuTorch's suites.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.core.safe_text import counted
from harness.core.verdict import ExitCode, Verdict, Word
from harness.judge.console_log import judge_log
from harness.log.parser import parse_console
from harness.suites.results import NO_STANDIN, Phase, SuiteTest, results_of
from harness.suites.standin.record import REFUSED
from harness.system.artifact_cache import key_of
from harness.system.files import read_json, text_of

_PRINTED = re.compile(rb"(?:Output\[\d+\]| {4}\[\d+\] = ).*")  # elements, by runner and sample
_MAX_ERROR = re.compile(rb"max_absolute_error: +([0-9.]+|inf|nan)")


class Exactness(Word):
    """How far the outputs of a call are proven. The runner prints errors with six decimals."""

    PYTORCH = "exact to PyTorch"
    TOLERANCE = "within the job's tolerance only"
    NOTHING = "compared with nothing"


class JobVerdict(Word):
    PASSED = "passed"
    UNPROVEN = "unproven"  # ExecuTorch's script passed, but its evidence proves nothing
    FAILED = "failed"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class FvpCall:
    """One simulation that a job's script started itself; ``verdict`` is one of ``Verdict``.
    ``error``: the largest difference to the reference of its bundle, as the runner printed it.
    ``outputs``: a digest of the outputs that it printed; "" if it printed none."""

    model: str
    verdict: str
    cause: str = ""
    exactness: Exactness = Exactness.NOTHING
    error: float | None = None
    outputs: str = ""
    kind: str = ""  # of the cause

    @property
    def proven(self) -> bool:
        return Verdict(self.verdict).log_exit_code is ExitCode.PASSED


@dataclass(frozen=True)
class JobResult:
    """``status``: of ExecuTorch's own script. ``reasons``: why the verdict is not ``passed``.
    ``tests``: counts by result; ``exact``: how many passed tests equal their reference bit for bit,
    of how many that was observed; ``constant``: whose outputs were one value throughout."""

    name: str
    place: str
    commit: str
    verdict: JobVerdict
    reasons: tuple[str, ...] = ()
    status: int | None = None
    seconds: float = 0.0
    calls: tuple[FvpCall, ...] = ()
    tests: dict[str, int] = field(default_factory=dict)
    exact: tuple[int, int] = (0, 0)
    constant: int = 0
    notes: tuple[str, ...] = ()
    provided: tuple[str, ...] = ()  # what stood for its own set-up
    log: str = ""

    @property
    def exactness(self) -> str:
        """In words, for a table."""
        kinds = Counter(call.exactness for call in self.calls if call.proven)
        texts = [f"{counted(count, 'call')} {kind}" for kind, count in kinds.items()]
        if self.exact[1]:
            texts.append(f"{self.exact[0]} of {self.exact[1]} tests exact to PyTorch")
        if self.constant:
            texts.append(f"{self.constant} with outputs of one value")
        return "; ".join(texts)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "exactness": self.exactness}


def read_calls(record: Path) -> tuple[FvpCall, ...]:
    """The simulations that scripts started, in their order; those of pytest are below ``tests``."""
    return tuple(_call(log) for log in sorted(record.glob("*.log")))


def _call(log: Path) -> FvpCall:
    console = log.read_bytes()
    judgement = judge_log(parse_console(console))
    cause = judgement.cause.text if judgement.cause else ""
    try:
        model = str(read_json(log.with_suffix(".json"))["model"])
    except (OSError, ValueError, KeyError):
        return FvpCall("", "HANG", "the simulation was ended before the program was")
    printed = [text.decode("latin-1") for text in _PRINTED.findall(console)]
    outputs = key_of(printed)[:12] if printed else ""
    errors = [float(text) for text in _MAX_ERROR.findall(console)]
    if judgement.verdict is not Verdict.PASS or not errors:
        kind = judgement.cause.kind if judgement.cause else ""
        return FvpCall(model, str(judgement.verdict), cause, outputs=outputs, kind=kind)
    exactness = Exactness.TOLERANCE if max(errors) else Exactness.PYTORCH
    return FvpCall(model, str(judgement.verdict), cause, exactness, max(errors), outputs)


def other_outputs(before: JobResult, calls: Sequence[FvpCall]) -> Iterator[str]:
    """The simulations that printed other outputs than an earlier run of the job, or prove less."""
    for number, (old, new) in enumerate(zip(before.calls, calls, strict=False), 1):
        if old.outputs and new.outputs and old.outputs != new.outputs:
            yield f"simulation {number} printed other outputs than at {before.commit}"
        if old.exactness is Exactness.PYTORCH is not new.exactness and new.proven:
            yield f"simulation {number}: {old.exactness} at {before.commit}, now {new.exactness}"


def changes(before: JobResult, after: JobResult) -> tuple[str, ...]:
    """Other differences between two runs of a job."""
    names = ("verdict", "tests", "exactness")
    pairs = ((name, getattr(before, name), getattr(after, name)) for name in names)
    return tuple(
        f"{name} at {before.commit}: {old or 'none'}, now {new or 'none'}"
        for name, old, new in pairs
        if old != new
    )


def read_tests(path: Path) -> tuple[tuple[SuiteTest, ...], int]:
    """The tests of a job's pytest, and how many runs of tests were repeated."""
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    phases = [Phase.from_json(json.loads(line)) for line in lines]
    reruns = sum(phase.outcome == "rerun" for phase in phases)
    return results_of([phase for phase in phases if phase.outcome != "rerun"]), reruns


def doubts(
    calls: Sequence[FvpCall], tests: Sequence[SuiteTest], record: Path, *, simulates: bool
) -> tuple[str, ...]:
    """Why a job whose script ended well proves nothing, or less than it says."""
    found = [
        f"simulation {number}: {call.verdict}: {call.cause}"
        for number, call in enumerate(calls, 1)
        if not call.proven
    ]
    if (record / REFUSED).exists():
        reasons = text_of(record / REFUSED).splitlines() or ["the reason was not kept"]
        found += [f"the stand-in refused a program: {reason}" for reason in reasons]
    if missing := [test for test in tests if test.cause.startswith(NO_STANDIN)]:
        found.append(f"{counted(len(missing), 'test')} expected to fail for want of an FVP or ELF")
    if tests and not any(test.result == "passed" for test in tests):
        found.append("no test passed")
    if simulates and not calls and not any(test.simulated for test in tests):
        found.append("nothing was simulated")
    return tuple(found)
