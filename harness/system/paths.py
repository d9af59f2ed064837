"""Where things are: the project's own files, and the state directory ``.hil``."""

from __future__ import annotations

import os
from pathlib import Path


def project_root() -> Path:
    """The checkout that holds ``targets/`` and ``cmake/``."""
    return Path(__file__).resolve().parents[2]


def state_dir() -> Path:
    """``$HIL_HOME``, or ``.hil`` in the current directory. Not created here."""
    return Path(os.environ.get("HIL_HOME", ".hil")).absolute()


def cache_dir(kind: str) -> Path:
    """Content-addressed artefacts of one kind: ``programs``, ``firmware``."""
    return state_dir() / "cache" / kind


def runs_dir() -> Path:
    return state_dir() / "runs"


def references_dir(repository: Path | None = None) -> Path:
    """Accepted reference runs, reviewed files, written only by ``hil accept``: ``$HIL_REFERENCES``,
    or ``references`` in a user's repository, or in ours."""
    return Path(os.environ.get("HIL_REFERENCES") or (repository or project_root()) / "references")
