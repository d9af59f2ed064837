"""A Case: one model on one target, the unit that gets a verdict."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from harness.config.identity import identity, located, repository_of
from harness.core.errors import UsageError

RUNNER = "runner"  # in place of a model: the target's runner, whose sizes are accepted too
_LONGEST = 60  # characters of a name in the name of a directory


@dataclass(frozen=True)
class Case:
    """``target`` is a target's name or the path of its file, with ``@Mode`` where that is not the
    default; ``model`` is a catalogue name, the path of a user's model file, or ``RUNNER``.

    ``name`` is the model's identity, the same from every directory; a record keeps it. It is
    found when a Case is made without it.

    Raises UsageError for a name with control characters: it would be printed at the start of lines
    that a terminal or a CI system obeys.
    """

    target: str
    model: str
    name: str = ""

    def __post_init__(self) -> None:
        for text in (self.target, self.model, self.name):
            if not text.isprintable():
                raise UsageError(
                    f"the name {text!r} has control characters", hint="rename the file"
                )
        if not self.name:
            object.__setattr__(self, "name", identity(self.model))

    @property
    def id(self) -> str:
        return f"{self.board}/{self.name}"

    @property
    def board(self) -> str:
        """The target's name."""
        file, at, mode = self.target.partition("@")
        return f"{Path(file).stem}{at}{mode}" if file.endswith(".yaml") else self.target

    @property
    def slug(self) -> str:
        """The end of the name, for the name of a directory that is also told apart otherwise."""
        plain = re.sub(r"[^\w.-]+", "-", self.name.removesuffix(".py")).strip("-.")
        return plain[-_LONGEST:].lstrip("-.") or "model"


def parse_case(text: str) -> Case:
    """``TARGET/MODEL`` as ``hil accept`` takes it, and as ``Case.id`` says it, from wherever in the
    user's repository. Raises UsageError for anything else."""
    target, slash, model = _split(text)
    if not (target and slash and model):
        raise UsageError(
            f"{text!r} is not a case",
            hint="a case is TARGET/MODEL, for example corstone-300-m55/ds_cnn",
        )
    here = Path.cwd()
    return Case(target, located(model, repository_of(here / model) or here))


def _split(text: str) -> tuple[str, str, str]:
    """At the slash behind the target, whose file may be named by its path."""
    file = re.match(r".*?\.yaml(?:@[\w-]+)?(?=/)", text)
    head = file[0] if file else ""
    before, slash, model = text[len(head) :].partition("/")
    return head + before, slash, model
