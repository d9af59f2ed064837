"""Accepted files whose model or target is no longer there: they gate nothing, and nobody notices.

A model that was renamed is a new one without a reference, and a reference without a model. The new
one is known by its program: the same bytes, or the same size in every part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.config.case import RUNNER, Case
from harness.config.identity import is_user_file
from harness.config.loading import load_target, load_targets
from harness.config.matrix import default_models
from harness.config.models import catalogue
from harness.core.errors import UsageError
from harness.firmware.source import label, source_names
from harness.judge.reference import Reference, load_reference, read_reference, references_of
from harness.run.measure import Measured, measure_cases
from harness.system.paths import references_dir
from harness.system.progress import Progress, silent


@dataclass(frozen=True)
class LeftOver:
    """``missing``: "model" or "target". ``renamed``: the subjects that it may be called now.
    ``failed``: in CI nothing that was accepted may go unnoticed."""

    subject: str
    path: Path
    missing: str
    renamed: tuple[str, ...] = ()
    failed: bool = False

    def message(self) -> str:
        text = f"{self.subject}: {self.path} is left over: there is no such {self.missing}"
        if self.renamed:
            new = " or ".join(self.renamed)
            return f"{text}; it was renamed to {new}, which has the same program: move the file"
        return f"{text}; remove the file, or bring the {self.missing} back"

    def summary(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "reference": str(self.path),
            "missing": self.missing,
            "renamed": list(self.renamed),
            "failed": self.failed,
        }


def left_over(*, strict: bool, progress: Progress = silent) -> list[LeftOver]:
    """Of the folder of references that holds here, in order. Exports the models without a reference
    when there is one to find the new name of.

    Raises UsageError for a malformed reference.
    """
    root = references_dir()
    found = list(_without_subject(root, strict))
    if not found:
        return []
    wanted = [case for one in found for case in _candidates(one)]
    measured = [m for m in measure_cases(wanted, progress) if isinstance(m, Measured)]
    return [
        LeftOver(
            one.subject, one.path, one.missing, _same_program(one, measured), failed=one.failed
        )
        for one in found
    ]


def _without_subject(root: Path, strict: bool) -> Iterator[LeftOver]:
    targets = {target.name for target in load_targets()}
    for path in sorted(root.rglob("*.json")):
        board, *rest = path.relative_to(root).parts
        name = _model("/".join(rest))
        subject = f"{board}/{name}"
        if not _is_target(board, targets):
            yield LeftOver(subject, path, "target", failed=strict)
        elif name != RUNNER and not _is_model(name, root):
            yield LeftOver(subject, path, "model", failed=strict)


def _model(file: str) -> str:
    """The name in ``add.json``, ``models/mine.py.executorch.json``, ``@/else/mine.py.json``."""
    name = file.removesuffix(".json").removeprefix("@")
    for source in source_names():
        if label(source):
            name = name.removesuffix(f".{source}")
    return name


def _is_target(board: str, known: set[str]) -> bool:
    if board.partition("@")[0] in known:
        return True
    try:
        load_target(board)
    except UsageError:
        return False
    return True


def _is_model(name: str, root: Path) -> bool:
    if not is_user_file(name):
        return name in catalogue()
    # a user's model is named by its path in the repository, whose root may be above the settings
    return any((folder / name).is_file() for folder in (Path("/"), *root.absolute().parents))


def _candidates(one: LeftOver) -> Iterator[Case]:
    """What has no reference yet and may be the same under another name."""
    board, _, name = one.subject.partition("/")
    if one.missing == "model":
        cases = [Case(board, model) for model in default_models()]
    else:
        targets = [target for target in load_targets() if target.name != board]
        cases = [Case(target.name, name) for target in targets] if name != RUNNER else []
    yield from (case for case in cases if load_reference(references_of(case), case) is None)


def _same_program(one: LeftOver, measured: list[Measured]) -> tuple[str, ...]:
    accepted = read_reference(one.path)
    board, _, name = one.subject.partition("/")
    same = (
        m.case.id
        for m in measured
        if _is_same(accepted, m)
        and (m.case.board == board if one.missing == "model" else m.case.name == name)
    )
    return tuple(dict.fromkeys(same))


def _is_same(accepted: Reference, measured: Measured) -> bool:
    if accepted.pte_sha256 == measured.pte_sha256 != "":
        return True
    kept = accepted.anatomies.get(measured.toolchain)
    return kept is not None and kept.anatomy.parts == kept.of(measured.anatomy).anatomy.parts
