"""Protects the guest's directory: it is new, nothing is written or removed through what a guest
left there, and what it was given is not taken for what it made."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.sim.run_files import clear, discard, make, move_outputs


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_text("input")
    return path


def test_a_used_directory_is_refused(tmp_path: Path) -> None:
    make(tmp_path / "work", {}, {})
    with pytest.raises(FileExistsError):
        make(tmp_path / "work", {}, {})


def test_what_was_put_there_is_no_file_of_the_guest(tmp_path: Path, source: Path) -> None:
    work = tmp_path / "work"
    placed = make(work, {"a": source}, {"b": b"bytes"})
    assert [(work / name).read_text() for name in "ab"] == ["input", "bytes"]
    (work / "below").mkdir()
    (work / "below" / "a").write_text("the guest's own")
    (work / "link").symlink_to(source)
    discard(work, placed)
    assert sorted(path.name for path in work.iterdir()) == ["a", "b"]


def test_only_outputs_of_the_set_that_are_files_are_moved(tmp_path: Path, source: Path) -> None:
    """A link would make the harness read what the guest may not."""
    work, to = tmp_path / "work", tmp_path / "to"
    make(work, {}, {})
    to.mkdir()
    for name in ("s1-0.bin", "s1-1.bin", "s10-0.bin", "s0-0.bin"):
        (work / name).write_text(name)
    (work / "s1-2.bin").symlink_to(source)
    move_outputs(work, 1, to)
    assert sorted(path.name for path in to.iterdir()) == ["s1-0.bin", "s1-1.bin"]


def test_what_was_put_there_goes_whatever_became_of_it(tmp_path: Path, source: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").write_text("mine")
    work = tmp_path / "work"
    placed = make(work, {"a": source, "b": source, "c": source, "d": source}, {})
    for name in "abc":
        (work / name).unlink()
    (work / "a").symlink_to(outside)
    (work / "b").mkdir()
    (work / "b" / "more").write_text("x")
    clear(work, placed)
    assert not work.exists()
    assert (outside / "mine").read_text() == "mine"


def test_a_directory_with_something_of_the_guest_stays(tmp_path: Path, source: Path) -> None:
    work = tmp_path / "work"
    placed = make(work, {"a": source}, {})
    (work / "more").write_text("x")
    clear(work, placed)
    assert [path.name for path in work.iterdir()] == ["more"]
