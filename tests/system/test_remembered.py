"""Protects answers that are remembered: none is believed that is damaged, or of other facts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.system import remembered


@pytest.fixture(autouse=True)
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "cache" / "tools"


def test_an_answer_is_of_its_kind_and_facts() -> None:
    remembered.remember("key", "facts", "text\nof two lines")
    assert remembered.answer("key", "facts") == "text\nof two lines"
    assert remembered.answer("key", "facts ") is None
    assert remembered.answer("other", "facts") is None
    remembered.forget("key")
    assert remembered.answer("key", "facts") is None


@pytest.mark.parametrize("damaged", [b"", b"\n", b"\xff\xfe", b"text", None])
def test_a_damaged_answer_is_none(tools: Path, damaged: bytes | None) -> None:
    remembered.remember("key", "facts", "abcdef")
    (file,) = tools.iterdir()
    file.write_bytes(file.read_bytes()[:-1] if damaged is None else damaged)
    assert remembered.answer("key", "facts") is None


def test_the_answer_of_other_facts_in_its_place_is_none(tools: Path) -> None:
    remembered.remember("key", "one", "1")
    remembered.remember("key", "two", "2")
    one, two = sorted(tools.iterdir(), key=lambda file: file.read_text()[-1])
    one.write_bytes(two.read_bytes())
    assert remembered.answer("key", "one") is None
    assert remembered.answer("key", "two") == "2"


def test_a_file_that_may_change_unseen_has_no_stamp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was changed a moment ago can change again within the clock's step."""
    file = tmp_path / "f"
    file.write_text("a")
    assert remembered.stamps([str(file)]) is None
    monkeypatch.setattr(remembered, "_SETTLED_NS", -(10**10))
    before = remembered.stamps([str(file)])
    status = file.stat()
    file.write_text("b")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert before is not None
    assert remembered.stamps([str(file)]) != before
    with pytest.raises(FileNotFoundError):
        remembered.stamps([str(tmp_path / "absent")])
