"""Protects the short way to a case's runs: it says what the history says, or nothing."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from harness.history.database import open_history
from harness.history.place import spool_dir
from harness.history.quick import runs_of
from harness.history.store import Database

from .made import night, row


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize("most", [None, 1, 2, 30])
def test_it_is_what_the_history_says(history: Database, url: str, most: int | None) -> None:
    history.begin(night(1, "t/a"))
    history.append([row(2, "INFRA", "t/a"), row(2, case="t/a", attempt=2), row(1, case="t/a"),
                    row(1, case="t/b")])  # fmt: skip
    assert len(history.of_case("t/a")) == 3
    assert runs_of(url, "t/a", most) == history.of_case("t/a", most=most)
    assert runs_of(url, "t/c", most) == []


def test_it_says_nothing_of_tables_that_it_does_not_know(url: str) -> None:
    assert runs_of(url, "t/a") is None  # there are none yet
    history = open_history(url)
    assert runs_of(url, "t/a") == []
    with history._engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    history.close()
    assert runs_of(url, "t/a") is None


def test_it_makes_no_file(tmp_path: Path) -> None:
    assert runs_of(f"sqlite:///{tmp_path}/none.db", "t/a") is None
    assert not (tmp_path / "none.db").exists()


def test_it_says_nothing_while_results_wait(history: Database, url: str) -> None:
    history.append([row(1, case="t/a")])
    spool_dir().mkdir(parents=True)
    (spool_dir() / "0123.jsonl").touch()
    assert runs_of(url, "t/a") is None


@pytest.mark.parametrize(
    "said",
    ["sqlite://", "sqlite:///x.db?mode=ro", "mysql://h/d", "x.db",
     "postgresql://hil@/none?host=/nowhere"],
)  # fmt: skip
def test_other_addresses_are_left_to_the_history(said: str) -> None:
    assert runs_of(said, "t/a") is None


def test_a_row_that_is_none_is_left_to_the_history(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/h.db"
    history = open_history(url)
    history.append([row(1, case="t/a")])
    history.close()
    with sqlite3.connect(tmp_path / "h.db") as there:
        there.execute('UPDATE rows SET body = \'{"verdict": "NEVER"}\'')
    assert runs_of(url, "t/a") is None


def test_asking_for_a_case_imports_no_sqlalchemy(tmp_path: Path) -> None:
    """What the short way is for."""
    url = f"sqlite:///{tmp_path}/h.db"
    history = open_history(url)
    history.append([row(1, case="t/a")])
    history.close()
    argv = [sys.executable, "-X", "importtime", "-m", "harness", "history", "t/a"]
    done = subprocess.run([*argv, "--history", url], capture_output=True, text=True, check=True)
    assert "t/a" in done.stdout
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "harness.history.quick" in imported
    assert not imported & {"sqlalchemy", "asyncio", "pydantic"}
