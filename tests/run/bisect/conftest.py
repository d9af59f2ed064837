"""A searched history, with a worktree of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.system.git import borrowed
from tests.system.repository import Repository

from .histories import Searched, linear

Search = Callable[..., Searched]


@pytest.fixture
def searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Search]:
    """``searched("PASS", "MISMATCH", ...)``, or ``searched(repository=...)``."""
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "home"))
    with ExitStack() as stack:

        def make(*verdicts: str, repository: Repository | None = None) -> Searched:
            made = repository or linear(tmp_path / "checkout", *verdicts)
            return Searched(made, stack.enter_context(borrowed(made.folder, "bisect")))

        yield make
