"""A Case: one model on one target, the unit that gets a verdict; and what its model is called.

A catalogue model is called by its name. A user's file is called by its path within the repository
that holds it, ending and all (``models/tinynet.py``), so that it is taken neither for a catalogue
model of that name nor for a file of that name in another folder. What is in the file is the other
half: recorded outputs are of one ``.pte``, known by its sha256 (``harness.judge.reference``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from harness.core.errors import UsageError
from harness.system.settings import OWN

OR_ALLOW = "or let it be new with --allow-new NAME (pytest: --hil-allow-new NAME)"
RUNNER = "runner"  # instead of a model: the target's runner, whose sizes are accepted too
_SUFFIX = ".py"  # a model that ends so is a file
_LONGEST = 60  # characters of a name in the name of a directory


@dataclass(frozen=True)
class Case:
    """One model on one target.

    ``target`` is a target's name or the path of its file, with ``@Mode`` where that is not the
    default; ``model`` is a catalogue name, the path of a user's model file, or ``RUNNER``.

    ``name`` is the model's identity, the same from every directory; a record keeps it. It is found
    when a Case is made without it.

    Raises UsageError for a name with control characters: it would be printed at the start of lines
    that a terminal or a CI system obeys."""

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
    def shown_name(self) -> str:
        """Return the name for a person: a model outside any repository by its shortest path."""
        path = Path(self.name)
        if not path.is_absolute():
            return self.name
        here = Path.cwd()
        return str(path.relative_to(here)) if path.is_relative_to(here) else path.name

    @property
    def title(self) -> str:
        """For a person: the target and the model."""
        return f"{self.board}/{self.shown_name}"

    @property
    def slug(self) -> str:
        """The end of the name, as part of a directory's name; it need not be unique."""
        plain = re.sub(r"[^\w.-]+", "-", self.name.removesuffix(".py")).strip("-.")
        return plain[-_LONGEST:].lstrip("-.") or "model"


def parse_case(text: str) -> Case:
    """Read ``TARGET/MODEL``, from wherever in the user's repository. Raises UsageError."""
    # The target may be the path of its file.
    file = re.match(r".*?\.yaml(?:@[\w-]+)?(?=/)", text)
    head = file[0] if file else ""
    before, slash, model = text[len(head) :].partition("/")
    target = head + before
    if not (target and slash and model):
        raise UsageError(
            f"{text!r} is not a case",
            hint="a case is TARGET/MODEL, for example corstone-300-m55/ds_cnn",
        )
    here = Path.cwd()
    return Case(target, located(model, repository_of(here / model) or here))


def is_user_file(model: str) -> bool:
    """Whether a model is named by the path of a user's file."""
    return model.endswith(_SUFFIX)


def is_allowed(case: Case, allow_new: Sequence[str]) -> bool:
    """Return whether a subject may be new, by TARGET/MODEL or the model; ``*`` is anything."""
    return any(fnmatchcase(name, one) for one in allow_new for name in (case.id, case.name))


def identity(model: str) -> str:
    """Return the name of a model that is given as a user gives it.

    A file in no repository has its absolute path: nothing else tells it from others."""
    if not is_user_file(model):
        return model
    file = Path(os.path.abspath(model))  # as it is called, whatever a link points to
    root = repository_of(file)
    return file.as_posix() if root is None else file.relative_to(root).as_posix()


def repository_of(file: Path) -> Path | None:
    """Return the root of the repository that a file is in; None without any.

    It is the next folder above with a ``.git``; where none has one, as in an image, the next with a
    ``hil.toml``, and then the uppermost with a ``pyproject.toml``."""
    folders = list(file.absolute().parents)
    git = next((folder for folder in folders if (folder / ".git").exists()), None)
    own = next((folder for folder in folders if (folder / OWN).is_file()), None)
    projects = [folder for folder in folders if (folder / "pyproject.toml").is_file()]
    return git or own or next(reversed(projects), None)


def located(name: str, folder: Path) -> str:
    """Find a file name in the current directory or in ``folder``; return other names unchanged."""
    if not name.endswith((_SUFFIX, ".yaml")) or Path(name).is_file():
        return name
    there = folder / name
    return str(there) if there.is_file() else name
