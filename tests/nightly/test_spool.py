"""Protects results while their database is gone: on disk, whole, delivered once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.history.database import open_history
from harness.history.lines import Ending
from harness.history.store import Database
from harness.nightly.spool import Deliverer, Spool
from harness.system.files import DiskError
from tests.history import postgresql
from tests.history.made import at, night, row


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "home"))
    return open_history(f"sqlite:///{tmp_path}/h.db")


def test_what_is_kept_is_delivered_once(history: Database) -> None:
    spool = Spool(history.url)
    assert spool.waiting() == 0
    assert spool.deliver(history).rows == 0
    spool.keep([row(1)])
    spool.keep([row(2), Ending("n2", 1, at(2))])
    assert spool.waiting() == 3
    assert spool.deliver(history).rows == 2
    assert history.endings("n2") == {1: at(2)}
    assert spool.deliver(history).rows == 0
    assert spool.waiting() == 0


def test_a_killed_writer_spoils_its_own_line_alone(history: Database) -> None:
    spool = Spool(history.url)
    spool.keep([row(1), row(2)])
    spool.file.write_bytes(spool.file.read_bytes()[:-30])
    spool.keep([row(3)])
    assert spool.deliver(history).rows == 2
    assert [r.night for r in history.every()] == ["n1", "n3"]


def test_each_database_has_its_own(history: Database) -> None:
    assert Spool(history.url).file != Spool("postgresql://elsewhere/x").file


def test_a_disk_that_takes_nothing_is_told(
    history: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "file"))
    with pytest.raises(DiskError, match="keeping results for the history"):
        Spool(history.url).keep([row(1)])


def test_a_database_that_goes_away_in_the_middle_gets_everything_later(
    pg_server: postgresql.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIL_HOME", str(tmp_path))
    history = open_history(pg_server.new_database(f"t{os.urandom(6).hex()}"))
    deliverer = Deliverer(history, Spool(history.url))
    history.begin(night(1, "t/a", "t/b"))
    deliverer.append([row(1, case="t/a")])
    pg_server.stop()
    try:
        deliverer.append([row(1, case="t/b")])
        deliverer.end("n1", 1, at(1))
        assert deliverer.why is not None
        assert deliverer.spool.waiting() == 2
    finally:
        pg_server.start()
    later = Deliverer(history, Spool(history.url))
    later.append([row(2, case="t/a")])
    assert later.why is None
    assert [(r.night, r.case) for r in history.every()] == [
        ("n1", "t/a"), ("n1", "t/b"), ("n2", "t/a"),
    ]  # fmt: skip
    assert history.endings("n1") == {1: at(1)}
    history.close()
