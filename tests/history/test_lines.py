"""Protects the JSON lines: nothing is lost on the way, and a bad line is told by its number."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.history.database import open_history
from harness.history.lines import (
    BadLine,
    Brought,
    Ending,
    bring,
    everything,
    line_of,
    read_lines,
)
from harness.history.store import Database

from .made import at, night, row


@pytest.fixture
def full(history: Database) -> Database:
    history.begin(night(1, "a/b", "a/c", shards=2))
    history.begin(night(2, "a/b"))
    history.append([row(1, "INFRA"), row(1, attempt=2), row(2, "MISMATCH")])
    history.end("n1", 2, at(1, 5))
    history.end("n2", 1, at(2, 5))
    return history


def test_a_history_goes_into_another_and_is_the_same(full: Database, tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    file.write_text("".join(map(line_of, everything(full))))
    other = open_history(f"sqlite:///{tmp_path}/other.db")
    assert bring(other, read_lines(file)) == Brought(nights=2, rows=3, known=0)
    assert list(everything(other)) == list(everything(full))
    assert bring(other, read_lines(file)) == Brought(nights=0, rows=0, known=5)
    assert list(everything(other)) == list(everything(full))
    other.close()


GOOD = line_of(row(1)) + line_of(night(1, "a/b")) + line_of(Ending("n1", 1, at(1)))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "is no line of a history"),
        ("[]", "is no line of a history"),
        ('{"row": {"schema": 9}}', "it is of schema 9, and this reads 1"),
        ('{"sheep": {"schema": 1}}', "'sheep' is neither night nor row nor ending"),
        ('{"row": {"schema": 1, "verdict": "GREAT"}}', "GREAT"),
        (line_of(row(1)).strip().replace('"attempt":1', '"attempt":"x"'), "attempt"),
        (line_of(row(1)).strip().replace('"case":"', '"case":7,"x":"'), "unexpected keyword"),
        ('{"ending": {"night": "n", "shard": "one", "time": ""}}', "invalid literal"),
    ],
)
def test_a_line_that_is_none_is_told_with_its_number(line: str, why: str, tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(GOOD + line + "\n")
    with pytest.raises(BadLine, match=why) as caught:
        list(read_lines(file))
    assert caught.value.line == 4
    assert str(caught.value).startswith(f"{file}:4: ")


def test_a_line_that_a_killed_writer_left_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(GOOD + line_of(row(2))[:-20])
    assert len(list(read_lines(file))) == 3
