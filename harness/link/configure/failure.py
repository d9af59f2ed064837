"""Why a build stopped before its link, as data, and the known messages that say so."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from harness.core.verdict import Word
from harness.link.facts import read_facts


class BuildFailureKind(Word):
    """What stopped the build; the values are those of ``kind`` in --json."""

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
class BuildFailure:
    """``line``: of the log, from 1. ``file`` and ``at``: what to edit, and its line, where the log
    names them. ``subject``: the option, source or node that the failure is about. ``fix`` is empty
    where nothing is sure to help."""

    kind: BuildFailureKind
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
        return _place(self.file, str(self.at or "")) if self.file else ""


@dataclass(frozen=True)
class Statement:
    """One message of a log in one line, however it was wrapped. ``file`` and ``at``: the place that
    CMake names, in the user's own files if one of them called what complains."""

    line: int
    text: str
    file: str | None = None
    at: int | None = None


# Kinds that are not the fault of the file that called what complains.
_NOT_OF_A_FILE = (
    BuildFailureKind.WORKSPACE,
    BuildFailureKind.BOARD,
    BuildFailureKind.TOOLCHAIN,
    BuildFailureKind.PYTHON,
    BuildFailureKind.KCONFIG,
)
_SUBJECTS = ("symbol", "source", "label", "alias", "property", "package", "variable", "board")


@dataclass(frozen=True)
class Rule:
    """A row of ``messages.yaml``."""

    kind: BuildFailureKind
    needle: str
    pattern: str
    cause: str
    fix: str = ""
    compiled: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", BuildFailureKind(self.kind))
        object.__setattr__(self, "compiled", re.compile(self.pattern))

    def read(self, statement: Statement) -> BuildFailure | None:
        """The failure that the statement reports, if it is of this rule."""
        match = self.compiled.search(statement.text) if self.needle in statement.text else None
        if match is None:
            return None
        words = {name: value or "" for name, value in match.groupdict().items()}
        file, at = words.get("file"), words.get("at")
        called = statement.file, str(statement.at or "")
        words["place"] = _place(*((file, at) if file else called))
        if not file and self.kind not in _NOT_OF_A_FILE:
            file, at = called
        return BuildFailure(
            self.kind,
            statement.line,
            statement.text,
            self.cause.format_map(words),
            self.fix.format_map(words),
            file or None,
            int(at) if at else None,
            next((words[name] for name in _SUBJECTS if words.get(name)), None),
        )


def _place(file: str | None, at: str | None) -> str:
    return f"{file}:{at}" if file and at else file or "the file that it names"


@cache
def rules() -> tuple[Rule, ...]:
    """In order: the first that matches a statement explains it."""
    return read_facts(Rule, Path(__file__).with_name("messages.yaml"))
