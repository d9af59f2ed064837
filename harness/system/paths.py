"""Where things are: the project's own files, and the state directory ``.hil``."""

from __future__ import annotations

import os
from pathlib import Path

from harness.system.settings import settings


def project_root() -> Path:
    """The checkout that holds ``targets/`` and ``cmake/``."""
    return Path(__file__).resolve().parents[2]


def state_dir() -> Path:
    """``$HIL_HOME``, or ``cache`` of the user's settings, or ``.hil`` beside them; without settings
    ``.hil`` in the current directory. Not created here."""
    if "HIL_HOME" in os.environ:
        return Path(os.environ["HIL_HOME"]).absolute()
    said = settings()
    return said.cache or (said.folder or Path.cwd()) / ".hil"


def cache_dir(kind: str) -> Path:
    """Content-addressed artefacts of one kind: ``programs``, ``firmware``."""
    return state_dir() / "cache" / kind


def runs_dir() -> Path:
    return state_dir() / "runs"


def references_dir(repository: Path | None = None) -> Path:
    """Accepted reference runs, reviewed files, written only by ``hil accept``: ``$HIL_REFERENCES``;
    or ``references`` of the user's settings, or the folder of that name beside them; without
    settings the one in ``repository``, a user's, or in ours."""
    if os.environ.get("HIL_REFERENCES"):
        return Path(os.environ["HIL_REFERENCES"])
    said = settings(repository)
    return said.references or (said.folder or repository or project_root()) / "references"
