"""Protects results while their database is gone: kept on disk, delivered once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.nightly.history.database import Recorder, open_history
from harness.nightly.history.store import History, HistoryUnreachable
from harness.system.files import DiskError
from tests.nightly.history import postgresql
from tests.nightly.history.made import night, row


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "home"))
    return open_history(f"sqlite:///{tmp_path}/h.db")


def gone(history: History, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """A recorder whose history does not answer any more."""
    recorder = Recorder(history)

    def refuse(*_: object) -> None:
        raise HistoryUnreachable(history.url, "it is gone")

    monkeypatch.setattr(history, "append", refuse)
    return recorder


def test_what_is_kept_is_delivered_once(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        recorder = gone(history, patch)
        assert recorder.waiting() == 0
        recorder.append([row(1)])
        recorder.append([row(2)], last=True)
        assert recorder.waiting() == 2
        assert recorder.error is not None
    recorder.deliver()
    assert [r.night for r in history.every()] == ["n1", "n2"]
    recorder.deliver()
    assert recorder.waiting() == 0


def test_each_database_has_its_own(history: History, tmp_path: Path) -> None:
    other = open_history(f"sqlite:///{tmp_path}/other.db")
    assert Recorder(history).outbox != Recorder(other).outbox


def test_a_disk_that_takes_nothing_is_an_error(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "file"))
    with pytest.raises(DiskError, match="keeping results for the history"):
        gone(history, monkeypatch).append([row(1)])


def test_a_database_that_goes_away_in_the_middle_gets_everything_later(
    pg_server: postgresql.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIL_HOME", str(tmp_path))
    history = open_history(pg_server.new_database(f"t{os.urandom(6).hex()}"))
    recorder = Recorder(history)
    history.begin(night(1, "t/a", "t/b"))
    recorder.append([row(1, case="t/a")])
    pg_server.stop()
    try:
        recorder.append([row(1, case="t/b")])
        recorder.append([], last=True)
        assert recorder.error is not None
        assert recorder.waiting() == 1
    finally:
        pg_server.start()
    later = Recorder(history)
    later.append([row(2, case="t/a")])
    assert later.error is None
    assert [(r.night, r.case) for r in history.every()] == [
        ("n1", "t/a"),
        ("n1", "t/b"),
        ("n2", "t/a"),
    ]
    history.close()
