"""Protects the guest's directory between processes: nothing is written through what a guest left
there, and what one process wrote is out of reach of the next."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.simulate.guest_directory import GuestDirectory


@pytest.fixture
def guest(tmp_path: Path) -> GuestDirectory:
    return GuestDirectory(tmp_path / "work", tmp_path / "outputs")


def test_a_used_directory_is_refused(guest: GuestDirectory, tmp_path: Path) -> None:
    with pytest.raises(FileExistsError):
        GuestDirectory(tmp_path / "work", tmp_path / "outputs")


def test_files_are_put_anew_over_whatever_is_there(guest: GuestDirectory, tmp_path: Path) -> None:
    """A link in place of an input would lead out of the guest's directory."""
    work, outside, source = tmp_path / "work", tmp_path / "outside", tmp_path / "input"
    outside.write_text("mine")
    source.write_text("input")
    (work / "a").symlink_to(outside)
    (work / "b").mkdir()
    (work / "b" / "c").write_text("x")
    (work / "d").symlink_to(outside)
    guest.place({"a": source, "b": source}, {"d": b"bytes"})
    assert outside.read_text() == "mine"
    assert [(work / name).read_text() for name in "abd"] == ["input", "input", "bytes"]
    assert guest.left() == ()


def test_what_is_called_like_an_output_to_come_is_removed(
    guest: GuestDirectory, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    (work / "s1-0.bin").write_text("forged")
    (work / "s1-7.bin").symlink_to(tmp_path)
    (work / "s1-2.bin").mkdir()
    (work / "s10-0.bin").write_text("of another set")
    guest.forget_outputs(1)
    assert [path.name for path in work.iterdir()] == ["s10-0.bin"]


def test_outputs_are_kept_and_come_back_over_what_a_later_process_left(
    guest: GuestDirectory, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    (work / "s0-0.bin").write_text("right")
    (work / "s0-1.bin").write_text("right, too")
    guest.keep_outputs(0)
    assert list(work.iterdir()) == []
    (work / "s0-0.bin").mkdir()
    (work / "s0-1.bin").symlink_to(tmp_path / "outside")
    guest.put_back()
    assert (work / "s0-0.bin").read_text() == "right"
    assert (work / "s0-1.bin").read_text() == "right, too"
    assert not (tmp_path / "outside").exists()
    assert not (tmp_path / "outputs").exists()
    assert [file.name for file in guest.left()] == ["s0-0.bin", "s0-1.bin"]


def test_without_a_second_process_nothing_is_put_aside(
    guest: GuestDirectory, tmp_path: Path
) -> None:
    guest.put_back()
    assert not (tmp_path / "outputs").exists()
