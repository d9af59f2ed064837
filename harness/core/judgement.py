"""A judgement as data: the verdict, its cause, and whose fault it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.core.verdict import Verdict, Word


class Reason(Word):
    """Causes that no line of the console names; the others are ``log.Kind``."""

    OUTPUT_MISSING = "output_missing"
    OUTPUT_SIZE = "output_size"
    OUTPUT_UNDECLARED = "output_undeclared"
    FILES_REWRITTEN = "files_rewritten"
    OUTPUTS_DIFFER = "outputs_differ"
    FLOAT_ROUNDING = "float_rounding"
    KNOWN_DEFECT = "known_defect"
    DEFECTS_UNREAD = "defects_unread"
    REFERENCE_OUTPUTS = "reference_outputs"
    REFERENCE_PROGRAM = "reference_program"
    NOT_ACCEPTED = "not_accepted"
    TRUTH_OUTPUTS = "truth_outputs"
    NOTHING_COMPARED = "nothing_compared"
    UNKNOWN_LINE = "unknown_line"  # after an end marker
    NO_INFERENCE = "no_inference"
    ONLY_NAN = "only_nan"
    PROGRAM_CHANGED = "program_changed"
    WRONG_FIRMWARE = "wrong_firmware"
    OVER_LIMIT = "over_limit"
    GROWN = "grown"
    ACCURACY = "accuracy"
    NOT_DELEGATED = "not_delegated"
    ALARM = "alarm"
    NOT_MEASURED = "not_measured"
    PROCESS_CRASH = "process_crash"
    SIMULATOR_KILLED = "simulator_killed"
    NOT_STARTED = "not_started"
    EXIT_STATUS = "exit_status"
    EXIT_UNKNOWN = "exit_unknown"
    NO_END_MARKER = "no_end_marker"
    NO_RUNNER_LINE = "no_runner_line"
    EMPTY_LOG = "empty_log"
    CONSOLE_CUT = "console_cut"
    NPU_UNSUPPORTED = "npu_unsupported"
    NPU_MODEL = "npu_model"
    NPU_FAULT = "npu_fault"
    NPU_REFUSED = "npu_refused"


@dataclass(frozen=True)
class Cause:
    """Why a verdict is not PASS. ``line`` counts transcript lines from 1.

    ``kind`` is the word of a ``log.Kind``, a ``Reason``, a stop or a ``HarnessError``.
    """

    kind: str
    text: str
    line: int | None = None
    facts: dict[str, Any] | None = None

    @property
    def label(self) -> str:
        """The kind, and which line of the console it is of."""
        return f"{self.kind} (console line {self.line})" if self.line else self.kind


@dataclass(frozen=True)
class Blame:
    """Whose fault a wrong result is: in one word, in words, and as data.

    ``reason``: the kind of the cause from then on, if it has a name of its own."""

    culprit: str
    text: str
    facts: Mapping[str, Any]
    reason: Reason | None = None


# What is not PASS, and why; None: nothing is wrong.
Finding = tuple[Verdict, Cause] | None


@dataclass(frozen=True)
class Judgement:
    """The verdict, its first cause, and notes to report with it."""

    verdict: Verdict
    cause: Cause | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, finding: Finding, notes: tuple[str, ...]) -> Judgement:
        """PASS, when nothing is wrong."""
        return cls(Verdict.PASS, None, notes) if finding is None else cls(*finding, notes)

    @property
    def passed(self) -> bool:
        return self.verdict.passed
