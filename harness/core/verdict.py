"""What a case can end with, and the exit code of ``hil`` that follows from it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum


class Word(str, Enum):
    """An enum whose members are their own text, in records, in JSON and when printed."""

    def __str__(self) -> str:
        return str(self.value)


class ExitCode(IntEnum):
    """What ``hil`` ends with."""

    PASSED = 0
    FAILED = 1  # a product failure, or nothing proven
    USAGE = 2  # wrong usage: an option, a target file, a model file
    INFRASTRUCTURE = 3  # a tool is missing, a simulator does not start
    INTERRUPTED = 130  # 128 + SIGINT, as shells have it


_FAILURE = (ExitCode.FAILED, "bold red", True)
_UNPROVEN = (ExitCode.FAILED, "yellow", False)


class Verdict(Word):
    """How a case ended, in one word. Only PASS is proven good.

    ``style`` is how a terminal shows it. ``product_failure``: the product under test failed,
    rather than the infrastructure or our knowledge of it. ``meaning`` and ``do``, what to do about
    it, are for `hil why` and the docs. Only ``hil judge`` of a console log gives COMPLETED: a run
    has its outputs compared, or nothing is proven.
    """

    exit_code: ExitCode
    style: str
    product_failure: bool
    meaning: str
    do: str

    def __new__(
        cls, name: str, outcome: tuple[ExitCode, str, bool], meaning: str, do: str
    ) -> Verdict:
        member = str.__new__(cls, name)
        member._value_ = name
        member.exit_code, member.style, member.product_failure = outcome
        member.meaning, member.do = meaning, do
        return member

    PASS = (
        "PASS",
        (ExitCode.PASSED, "green", False),
        "every output byte, end marker, budget and file of the run is as it has to be",
        "nothing",
    )
    COMPLETED = (
        "COMPLETED",
        (ExitCode.FAILED, "cyan", False),
        "only of a console log: the run ended, and nothing in the log compared its outputs",
        "let the runner compare (a .bpte), or run the program with `hil run`",
    )
    MISMATCH = (
        "MISMATCH",
        _FAILURE,
        "it ran to its end and gave other outputs than the reference",
        "look at the operator and element that the cause names; `hil npu reduce` and "
        "`--firmware both` narrow it down",
    )
    FAULT = (
        "FAULT",
        _FAILURE,
        "the program, the runner or the board's CPU failed while it ran",
        "look at the line of the console that the cause names",
    )
    HANG = (
        "HANG",
        _FAILURE,
        "it did not end in its time, or said and did nothing for too long",
        "look at the last line of the console; `--limit-factor` is for slow machines",
    )
    NO_VERDICT = (
        "NO_VERDICT",
        _UNPROVEN,
        "something that PASS needs is not there, so that nothing is proven; or there was nothing "
        "to run, because what was asked for makes no sense (exit status 2)",
        "read in the cause what was missing",
    )
    OVER_BUDGET = (
        "OVER_BUDGET",
        _FAILURE,
        "right outputs, and a figure above its limit or grown beyond its slack, or too low an "
        "accuracy; or, before a run, more memory than the target has",
        "run `hil size OLD NEW --why 1000` to see what grew, and `hil accept CASE --reason ...` if "
        "it is meant",
    )
    EXPORT_ERROR = (
        "EXPORT_ERROR",
        _FAILURE,
        "the model gave no program that would prove something",
        "look at the stage and line that the cause names; `hil --debug` has the traceback",
    )
    BUILD_ERROR = (
        "BUILD_ERROR",
        _FAILURE,
        "the runner did not compile",
        "read the compiler's message in the cause",
    )
    LINK_ERROR = (
        "LINK_ERROR",
        _FAILURE,
        "the runner compiled and did not link",
        "run `hil link explain TARGET/runner`, then `hil link reduce`",
    )
    INFRA = (
        "INFRA",
        (ExitCode.INFRASTRUCTURE, "magenta", False),
        "a tool, the disk or the simulator failed; it says nothing of what was to be tested",
        "run `hil doctor`, install what it lacks, and run the case again",
    )
    SKIPPED = (
        "SKIPPED",
        _UNPROVEN,
        "the FVP that the case wants is not installed, and such cases are skipped here",
        'run `hil doctor`: it says where to get it; the setting `fvp_missing = "fail"` makes it an '
        "error",
    )

    @property
    def passed(self) -> bool:
        return self is Verdict.PASS


def exit_code(verdicts: Iterable[Verdict]) -> ExitCode:
    """Of several cases together.

    A skipped case neither passes nor fails; nothing run, or only skipped cases, is nothing
    proven.
    """
    return together(verdict.exit_code for verdict in verdicts if verdict is not Verdict.SKIPPED)


def together(codes: Iterable[ExitCode]) -> ExitCode:
    """A failure outweighs wrong usage, and both outweigh the infrastructure."""
    present = set(codes)
    order = (ExitCode.FAILED, ExitCode.USAGE, ExitCode.INFRASTRUCTURE, ExitCode.PASSED)
    return next((code for code in order if code in present), ExitCode.FAILED)
