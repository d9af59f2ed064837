"""Protects how a database is found, made and refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from harness.core.errors import HarnessError
from harness.core.verdict import ExitCode
from harness.nightly.history.database import (
    TABLES,
    UnknownDatabase,
    history_url,
    open_history,
)
from harness.nightly.history.store import HistoryUnreachable, metadata
from harness.system.files import DiskError

from .made import row


def test_a_new_history_has_the_tables_that_are_used(url: str) -> None:
    open_history(url).close()
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    found = sa.MetaData()
    found.reflect(engine)
    assert {t.name: {c.name for c in t.columns} for t in found.tables.values()} == {
        t.name: {c.name for c in t.columns} for t in metadata.tables.values()
    }
    with engine.connect() as connection:
        assert connection.scalars(sa.text("SELECT version_num FROM alembic_version")).all() == [
            TABLES
        ]
    engine.dispose()


def test_opening_again_keeps_what_is_there(url: str) -> None:
    first = open_history(url)
    first.append([row(1)])
    first.close()
    again = open_history(url)
    assert len(list(again.every())) == 1
    again.close()


def test_without_a_word_it_is_in_the_state_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIL_HOME", str(tmp_path))
    assert history_url(None, {}) == f"sqlite:///{tmp_path}/history.db"
    assert history_url(None, {"HIL_HISTORY": "sqlite:///x"}) == "sqlite:///x"
    assert history_url("sqlite:///y", {"HIL_HISTORY": "sqlite:///x"}) == "sqlite:///y"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("history.db", "it is not a URL"),
        ("mysql://me:secret@h/d", "neither sqlite nor postgresql"),
        ("sqlite://", "nothing would be kept"),
        ("sqlite:///", "nothing would be kept"),  # sqlite:///$UNSET
        ("sqlite:///:memory:", "nothing would be kept"),
        ("sqlite:///file::memory:?uri=true", "nothing would be kept"),
        ("sqlite:///file:x?mode=memory&uri=true", "nothing would be kept"),
        ("sqlite://me:secret@host/history.db", "it names no file"),
        ("sqlite:////dev/null", "not a regular file"),
        ("sqlite:////", "not a regular file"),
        ("sqlite:////tmp", "not a regular file"),
    ],
)
def test_what_is_not_a_history_is_reported_without_its_password(said: str, why: str) -> None:
    with pytest.raises(UnknownDatabase, match=why) as caught:
        open_history(said)
    assert caught.value.exit_code is ExitCode.USAGE
    assert "secret" not in str(caught.value)
    assert "sqlite:///" in (caught.value.hint or "")


def test_a_file_that_is_something_else_is_not_touched(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("no database, " * 100)
    with pytest.raises(UnknownDatabase, match="the file is something else"):
        open_history(f"sqlite:///{file}")
    assert file.read_text() == "no database, " * 100


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DiskError, match="making the folder of the history"):
        open_history(f"sqlite:///{tmp_path}/file/history.db")


def test_a_server_that_nobody_runs_is_the_infrastructure(tmp_path: Path) -> None:
    with pytest.raises(HistoryUnreachable) as caught:
        open_history(f"postgresql://me:secret@/none?host={tmp_path}&sslpassword=secret")
    assert caught.value.exit_code is ExitCode.INFRASTRUCTURE
    assert "secret" not in str(caught.value)


def test_a_history_of_another_version_is_refused(url: str) -> None:
    open_history(url).close()
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(HarnessError, match="revision 9999") as caught:
        open_history(url)
    assert caught.value.kind == "newer_history"
    assert caught.value.facts["revision"] == "9999"
