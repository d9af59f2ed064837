"""Errors, as types that carry the facts.

Every error knows the verdict a case ends with when it is raised, and the exit code of ``hil``.
The message is one or two sentences; ``hint`` says what to do next.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from harness.core.safe_text import plain
from harness.core.verdict import ExitCode, Verdict


class HarnessError(Exception):
    """Base of all errors the harness raises on purpose.

    ``kind`` names the cause for machines (``record.json``, ``--json``). What the message mentions
    is also an attribute, so that nobody has to parse the message: ``path`` is the file or directory
    it is about, ``facts`` everything else, by name. Text from outside is made harmless here, once
    for all front ends.
    """

    kind = "internal"
    verdict = Verdict.INFRA
    exit_code = ExitCode.INFRASTRUCTURE

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        path: Path | str | None = None,
        kind: str | None = None,
        **facts: Any,
    ) -> None:
        self.message = plain(message)
        self.hint = None if hint is None else plain(hint)
        super().__init__(self.message)
        self.path = None if path is None else str(path)
        if kind is not None:
            self.kind = kind
        vars(self).update(facts)

    @property
    def facts(self) -> dict[str, Any]:
        """The attributes by name, for records and ``--json``."""
        own = {n: v for n, v in vars(self).items() if n not in ("message", "hint", "kind")}
        return {name: value for name, value in own.items() if value is not None}


class UsageError(HarnessError):
    """The caller asked for something that does not exist or makes no sense."""

    kind = "usage"
    verdict = Verdict.NO_VERDICT
    exit_code = ExitCode.USAGE


class NotThere(UsageError):
    """``path``: what was named, ``what`` it should be."""

    def __init__(self, path: Path | str, what: str = "file", *, hint: str = "") -> None:
        self.what = what
        also = f"; {hint}" if hint else ""
        super().__init__(
            f"there is no {what} {path}",
            hint=f"paths start at the current directory, {Path.cwd()}{also}",
            path=path,
        )


class BadModel(UsageError):
    """A user's model file is wrong."""

    kind = "bad_model"


class Unknown(UsageError):
    """An unknown name.

    ``close``: what may have been meant, for the hint; by default the known names that are similar.
    """

    def __init__(
        self,
        message: str,
        name: str,
        known: Iterable[str],
        *,
        close: Iterable[str] | None = None,
        listing: str = "there are: ",
    ) -> None:
        self.name = name
        self.known = tuple(known)
        self.close = tuple(get_close_matches(name, self.known) if close is None else close)
        meant = f"did you mean {' or '.join(self.close)}?"
        super().__init__(message, hint=meant if self.close else listing + ", ".join(self.known))


class TargetError(UsageError):
    """A YAML file is malformed.

    ``errors``: all errors of the file, this one first, where several are collected."""

    kind = "bad_target"

    def __init__(
        self,
        file: Path,
        line: int,
        message: str,
        *,
        hint: str | None = None,
        errors: Iterable[str] | None = None,
    ) -> None:
        super().__init__(f"{file}:{line}: {message}", hint=hint)
        self.file = str(file)
        self.line = line
        self.errors = None if errors is None else tuple(errors)


class InfraError(HarnessError):
    """A tool is missing, a disk is full, a simulator does not start."""

    kind = "infrastructure"


class ToolMissing(InfraError):
    """``tool``: what is missing, ``package``: the package that has it, if known."""

    kind = "tool_missing"
    tool: str | None = None
    package: str | None = None


class FvpMissing(ToolMissing):
    """The FVP that a case needs is not installed, and the user said to skip such cases."""

    kind = "fvp_missing"
    verdict = Verdict.SKIPPED
    exit_code = ExitCode.FAILED

    def __init__(self, fvp: ToolMissing) -> None:
        super().__init__(fvp.message, tool=fvp.tool, package=fvp.package, hint=fvp.hint)


class ExportError(HarnessError):
    """``log``: the end of what torch and ExecuTorch printed meanwhile."""

    kind = "export"
    verdict = Verdict.EXPORT_ERROR
    exit_code = ExitCode.FAILED
    log: str | None = None


class BuildError(HarnessError):
    kind = "build"
    verdict = Verdict.BUILD_ERROR
    exit_code = ExitCode.FAILED


class LinkError(BuildError):
    kind = "link"
    verdict = Verdict.LINK_ERROR


class MalformedFile(UsageError):
    """The file does not keep to its format; ``offset`` is in bytes from its start."""

    kind = "malformed_file"

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(f"{what} (at offset {offset} = 0x{offset:x})")
        self.what = what
        self.offset = offset

    @property
    def facts(self) -> dict[str, Any]:
        """Without ``what``, which is in the message."""
        return {name: value for name, value in super().facts.items() if name != "what"}

    def within(self, file: object, part_offset: int = 0) -> MalformedFile:
        """Return the same error for ``file``, whose damaged part is at ``part_offset``."""
        return MalformedFile(f"{file}: {self.what}", part_offset + self.offset)
