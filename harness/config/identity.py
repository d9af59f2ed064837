"""What a model is called wherever cases are told apart: references, reports, JUnit.

A catalogue model is called by its name. A user's file is called by its path within the repository
that holds it, ending and all (``models/tinynet.py``), so that it is taken neither for a catalogue
model of that name nor for a file of that name in another folder. What is in the file is the other
half: recorded outputs are of one ``.pte``, known by its sha256 (``harness.judge.reference``).
"""

from __future__ import annotations

import os
from pathlib import Path

from harness.system.settings import OWN

_SUFFIX = ".py"  # a model that ends so is a file


def is_user_file(model: str) -> bool:
    """Whether a model is named by the path of a user's file."""
    return model.endswith(_SUFFIX)


def identity(model: str) -> str:
    """The name of a model that is given as a user gives it.

    A file in no repository has its absolute path: nothing else tells it from others.
    """
    if not is_user_file(model):
        return model
    file = Path(os.path.abspath(model))  # as it is called, whatever a link points to
    root = repository_of(file)
    return file.as_posix() if root is None else file.relative_to(root).as_posix()


def repository_of(file: Path) -> Path | None:
    """The root of the repository that a file is in: the next folder above it with a ``.git``; where
    none has one, as in an image, the next with a ``hil.toml``, and then the uppermost with a
    ``pyproject.toml``. None without any."""
    folders = list(file.absolute().parents)
    git = next((folder for folder in folders if (folder / ".git").exists()), None)
    own = next((folder for folder in folders if (folder / OWN).is_file()), None)
    projects = [folder for folder in folders if (folder / "pyproject.toml").is_file()]
    return git or own or next(reversed(projects), None)


def located(name: str, folder: Path) -> str:
    """A relative path of a model's or target's file as seen from the current directory or, where
    there is none, from ``folder``; what is no path as it is."""
    if not name.endswith((_SUFFIX, ".yaml")) or Path(name).is_file():
        return name
    there = folder / name
    return str(there) if there.is_file() else name
