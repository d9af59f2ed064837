"""Protects how a database is found, made and refused."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from harness.core.errors import HarnessError
from harness.core.verdict import ExitCode
from harness.export.program import OutputAccuracy, Witnessed
from harness.nightly.history.database import (
    HEAD,
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
    with engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, metadata) == []
        assert context.get_current_revision() == HEAD
    engine.dispose()


def test_a_history_of_the_first_version_is_brought_up_to_date(url: str) -> None:
    """Its rows have no accuracy."""
    open_history(url).close()
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    body = asdict(row(1))
    del body["accuracy"], body["witness"]
    names = ("night", "case", "time", "target", "model", "source", "suite", "verdict", "cause")
    old = dict.fromkeys((*names, "branch", "commit", "pull_request"), "x")
    with engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE rows DROP COLUMN sqnr_db"))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0001'"))
        table = sa.Table("rows", sa.MetaData(), autoload_with=connection)
        connection.execute(table.insert().values(**old, attempt=1, body=body))
    history = open_history(url)
    accuracy = (OutputAccuracy("output0", 3, 24.5, 1.0, 0.0), OutputAccuracy("b", 3, 9.5, None, 0))
    history.append([row(2, accuracy=accuracy, witness=Witnessed(5, 4, 1))])
    assert [(each.sqnr_db, each.witness) for each in history.every()] == [
        (9.5, Witnessed(5, 4, 1)),
        (None, None),
    ]
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        found = connection.scalars(sa.text("SELECT sqnr_db FROM rows ORDER BY id"))
        assert list(found) == [None, 9.5]
    engine.dispose()
    history.close()


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


def test_a_history_of_a_later_version_is_refused(url: str) -> None:
    open_history(url).close()
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(HarnessError, match="revision 9999") as caught:
        open_history(url)
    assert caught.value.kind == "newer_history"
    assert caught.value.facts["revision"] == "9999"
