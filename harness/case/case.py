"""A Case: one model on one target, the unit that gets a verdict."""

from __future__ import annotations

from dataclasses import dataclass

from harness.errors import UsageError

RUNNER = "runner"  # in place of a model: the target's runner, whose sizes are accepted too


@dataclass(frozen=True)
class Case:
    """``model`` is a catalogue name, the path of a user's model file, or ``RUNNER``."""

    target: str
    model: str

    @property
    def label(self) -> str:
        """The model's short name: the file's stem for a user's file."""
        stem = self.model.rsplit("/", 1)[-1]
        return stem.removesuffix(".py")

    @property
    def id(self) -> str:
        return f"{self.target}/{self.label}"


def parse_case(text: str) -> Case:
    """``TARGET/MODEL`` as ``hil accept`` takes it. Raises UsageError for anything else."""
    target, slash, model = text.partition("/")
    if not (target and slash and model):
        raise UsageError(
            f"{text!r} is not a case",
            hint="a case is TARGET/MODEL, for example corstone-300-m55/ds_cnn",
        )
    return Case(target, model)
