"""Histories in both databases."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.nightly.history.database import open_history
from harness.nightly.history.store import History

from . import postgresql


@pytest.fixture(scope="session")
def pg_server() -> Iterator[postgresql.Server]:
    with postgresql.server() as made:
        yield made


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'history.db'}"
    made: postgresql.Server = request.getfixturevalue("pg_server")
    return made.new_database(f"t{os.urandom(6).hex()}")


@pytest.fixture
def history(url: str) -> Iterator[History]:
    opened = open_history(url)
    yield opened
    opened.close()
