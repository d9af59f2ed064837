"""The verdicts of a case, and the exit code of ``hil`` that follows from them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum

from harness.core.tables import read_table


class Word(str, Enum):
    """An enum whose members are their own text, in records, in JSON and when printed."""

    def __str__(self) -> str:
        return str(self.value)


class ExitCode(IntEnum):
    """The exit codes of ``hil``."""

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
    rather than the infrastructure or our knowledge of it. Only ``hil judge`` of a console log gives
    COMPLETED: a run has its outputs compared, or nothing is proven.
    """

    exit_code: ExitCode
    style: str
    product_failure: bool

    def __new__(cls, name: str, *outcome: ExitCode | str | bool) -> Verdict:
        member = str.__new__(cls, name)
        member._value_ = name
        member.exit_code, member.style, member.product_failure = outcome  # type: ignore[assignment]
        return member

    PASS = "PASS", ExitCode.PASSED, "green", False
    COMPLETED = "COMPLETED", ExitCode.FAILED, "cyan", False
    MISMATCH = "MISMATCH", *_FAILURE
    FAULT = "FAULT", *_FAILURE
    HANG = "HANG", *_FAILURE
    NO_VERDICT = "NO_VERDICT", *_UNPROVEN
    OVER_BUDGET = "OVER_BUDGET", *_FAILURE
    EXPORT_ERROR = "EXPORT_ERROR", *_FAILURE
    BUILD_ERROR = "BUILD_ERROR", *_FAILURE
    LINK_ERROR = "LINK_ERROR", *_FAILURE
    INFRA = "INFRA", ExitCode.INFRASTRUCTURE, "magenta", False
    SKIPPED = "SKIPPED", *_UNPROVEN

    @property
    def meaning(self) -> str:
        """For `hil why` and the docs, as ``do``."""
        return str(read_table(__file__)[self.value]["meaning"])

    @property
    def do(self) -> str:
        """The next step for the user."""
        return str(read_table(__file__)[self.value]["do"])

    @property
    def log_exit_code(self) -> ExitCode:
        """The exit code of a log alone, unless ``--strict`` is given: there COMPLETED passes."""
        return ExitCode.PASSED if self is Verdict.COMPLETED else self.exit_code

    @property
    def passed(self) -> bool:
        return self is Verdict.PASS


def exit_code(verdicts: Iterable[Verdict]) -> ExitCode:
    """Return the exit code of several cases together.

    A skipped case neither passes nor fails. If no other case ran, nothing is proven."""
    return together(verdict.exit_code for verdict in verdicts if verdict is not Verdict.SKIPPED)


def together(codes: Iterable[ExitCode]) -> ExitCode:
    """Join exit codes: a failure outweighs wrong usage, and both outweigh the infrastructure."""
    present = set(codes)
    order = (ExitCode.FAILED, ExitCode.USAGE, ExitCode.INFRASTRUCTURE, ExitCode.PASSED)
    return next((code for code in order if code in present), ExitCode.FAILED)
