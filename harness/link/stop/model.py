"""Why a build stopped before a linker had anything to say, as data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from harness.errors.verdict import Word


class StopKind(Word):
    """What refused; the values are those of ``kind`` in --json."""

    WORKSPACE = "workspace"
    BOARD = "board"
    TOOLCHAIN = "toolchain"
    VERSION = "version"
    PACKAGE = "package"
    PYTHON = "python"
    MODULE = "module"
    CMAKE = "cmake"
    DEVICETREE = "devicetree"
    BINDING = "binding"
    KCONFIG = "kconfig"
    COMPILE = "compile"
    NOT_KNOWN = "not_known"


@dataclass(frozen=True)
class Stop:
    """``line``: of the log, from 1. ``file`` and ``at``: what to edit, and its line, where the log
    says it. ``subject``: the option, source or node that it is about. ``fix`` is empty where
    nothing is sure to help."""

    kind: StopKind
    line: int
    text: str
    cause: str
    fix: str = ""
    file: str | None = None
    at: int | None = None
    subject: str | None = None

    def summary(self) -> dict[str, Any]:
        return {**asdict(self), "kind": self.kind.value}

    @property
    def where(self) -> str:
        return f"{self.file}:{self.at}" if self.file and self.at else self.file or ""


@dataclass(frozen=True)
class Statement:
    """One message of a log in one line, however it was wrapped. ``file`` and ``at``: where CMake
    says that it is, of the user's own files if one of them called what complains."""

    line: int
    text: str
    file: str | None = None
    at: int | None = None


@dataclass(frozen=True)
class StopRule:
    """``pattern`` names what ``cause`` and ``fix`` say in braces; its groups ``file`` and ``at``
    are the place. ``needle`` is in every such message, and spares the search."""

    kind: StopKind
    needle: str
    pattern: re.Pattern[str]
    cause: str
    fix: str

    def read(self, statement: Statement) -> Stop | None:
        match = self.pattern.search(statement.text) if self.needle in statement.text else None
        if match is None:
            return None
        groups = {name: value or "" for name, value in match.groupdict().items()}
        said = {**groups, "place": _place(groups, statement)}
        file, at = groups.get("file"), groups.get("at")
        if not file and self.kind not in _NOT_OF_A_FILE:
            file, at = statement.file, str(statement.at or "")
        return Stop(
            self.kind, statement.line, statement.text,
            self.cause.format_map(said), self.fix.format_map(said),
            file or None, int(at) if at else None,
            next((groups[name] for name in _SUBJECTS if groups.get(name)), None),
        )  # fmt: skip


# What is wrong is not in the file that called what complains.
_NOT_OF_A_FILE = (StopKind.WORKSPACE, StopKind.BOARD, StopKind.TOOLCHAIN, StopKind.PYTHON,
                  StopKind.KCONFIG)  # fmt: skip
_SUBJECTS = ("symbol", "source", "label", "alias", "property", "package", "variable", "board")


def _place(groups: Mapping[str, str], statement: Statement) -> str:
    file, at = groups.get("file"), groups.get("at")
    if not file:
        file, at = statement.file, str(statement.at or "")
    return f"{file}:{at}" if file and at else file or "the file that it names"


def rules(kind: StopKind, *rows: tuple[str, str, str, str]) -> tuple[StopRule, ...]:
    """Rows of needle, pattern, cause and fix."""
    return tuple(StopRule(kind, needle, re.compile(pattern), cause, fix)
                 for needle, pattern, cause, fix in rows)  # fmt: skip
