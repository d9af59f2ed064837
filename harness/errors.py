"""What can go wrong, as types that carry the facts.

Every error knows the verdict a case ends with when it is raised, and, from that, the exit
code of ``hil``. The message is one or two sentences; ``hint`` says what to do next.
"""

from __future__ import annotations

from typing import Any


class HarnessError(Exception):
    """Base of all errors the harness raises on purpose.

    ``kind`` names the cause for machines (``record.json``, ``--json``); ``facts`` holds the
    figures that the message mentions, so that nobody has to parse the message.
    """

    kind = "internal"
    verdict = "INFRA"
    exit_code = 3

    def __init__(self, message: str, *, hint: str | None = None, **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.facts = facts


class UsageError(HarnessError):
    """The caller asked for something that does not exist or makes no sense."""

    kind = "usage"
    verdict = "NO_VERDICT"
    exit_code = 2


class TargetError(UsageError):
    """A target file is malformed; ``facts`` has ``file`` and ``line``."""

    kind = "bad_target"


class InfraError(HarnessError):
    """A tool is missing, a disk is full, a simulator does not start."""

    kind = "infrastructure"


class ToolMissing(InfraError):
    kind = "tool_missing"


class FvpMissing(ToolMissing):
    """The FVP that a case needs is not installed, and the user said to skip such cases."""

    kind = "fvp_missing"
    verdict = "SKIPPED"
    exit_code = 1


class ExportError(HarnessError):
    kind = "export"
    verdict = "EXPORT_ERROR"
    exit_code = 1


class DeadModelError(ExportError):
    """The model's outputs do not depend on its inputs, so a PASS would prove nothing."""

    kind = "dead_model"


class BuildError(HarnessError):
    kind = "build"
    verdict = "BUILD_ERROR"
    exit_code = 1


class LinkError(BuildError):
    kind = "link"
    verdict = "LINK_ERROR"
