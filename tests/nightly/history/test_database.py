"""Protects how a database is found, made and refused."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext

from harness.core.errors import HarnessError
from harness.core.verdict import ExitCode
from harness.nightly.history import database
from harness.nightly.history.database import (
    HEAD,
    NewerHistory,
    UnknownDatabase,
    history_url,
    open_history,
)
from harness.nightly.history.store import HistoryUnreachable, metadata
from harness.system.files import DiskError

from .made import night, row


def test_the_steps_lead_to_the_tables_that_are_used(url: str) -> None:
    open_history(url).close()
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, metadata) == []
        assert context.get_current_revision() == HEAD
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
    [("history.db", "it is no URL"), ("mysql://me:secret@h/d", "neither sqlite nor postgresql")],
)
def test_what_is_no_history_is_told_without_its_password(said: str, why: str) -> None:
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


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
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
    with pytest.raises(NewerHistory, match="revision 9999") as caught:
        open_history(url)
    assert isinstance(caught.value, HarnessError)
    assert caught.value.revision == "9999"


def test_a_history_of_the_first_version_is_brought_up_to_date(url: str) -> None:
    """Its rows know their suite, and are of no branch."""
    open_history(url).close()
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        for table in ("nights", "rows", "culprits", "alembic_version"):
            connection.execute(sa.text(f"DROP TABLE {table}"))
        config = Config()
        config.set_main_option(
            "script_location", str(Path(database.__file__).parent / "migrations")
        )
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        fields = {"id": "n1", "suite": "weekly", "began": "2026"}
        body = {**asdict(night(1)), "schema": 1}
        del body["origin"]
        insert = sa.text(
            "INSERT INTO nights (id, suite, began, body) VALUES (:id, :suite, :began, :body)"
        )
        connection.execute(insert, {**fields, "body": json.dumps(body)})
        texts = ("case", "time", "target", "model", "source", "verdict", "cause")
        values = dict.fromkeys(texts, "x")
        names = ["night", "attempt", *values, "body"]
        marks = ", ".join(f":{name}" for name in names)
        quoted = ", ".join(f'"{name}"' for name in names)
        body = asdict(row(1))
        del body["suite"], body["origin"]
        insert = sa.text(f"INSERT INTO rows ({quoted}) VALUES ({marks})")
        connection.execute(
            insert, {**values, "night": "n1", "attempt": 1, "body": json.dumps(body)}
        )
    engine.dispose()
    history = open_history(url)
    assert history.last_of("x") == {"suite": "weekly", "branch": ""}
    assert len(history.of_case("x", suite="weekly", branch="")) == 1
    assert [n.id for n in history.nights(suite="weekly", branch="")] == ["n1"]
    history.close()
