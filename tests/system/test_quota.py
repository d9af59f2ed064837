"""What a program has written too much of."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from harness.system.confine import ENVIRONMENT
from harness.system.process import Bounds, Ended, Stop, run
from harness.system.quota import Account, Excess, Quota, mend_modes, usage
from tests.system.test_process import watching

SMALL = Quota(file_bytes=1 << 16, total_bytes=1 << 17, files=10)


def test_what_is_there_before_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "given").write_bytes(bytes(1 << 18))
    for n in range(20):
        (tmp_path / f"g{n}").touch()
    account = Account(tmp_path, SMALL)
    assert account.excess() is None
    (tmp_path / "own").write_bytes(bytes(100))
    assert account.excess() is None


@pytest.mark.parametrize(
    ("sizes", "excess"),
    [
        ([1 << 16], Excess.FILE_BYTES),
        ([(1 << 16) - 1] * 3, Excess.TOTAL_BYTES),
        ([0] * 11, Excess.FILES),
        ([0] * 10, None),
    ],
)
def test_each_limit(tmp_path: Path, sizes: list[int], excess: Excess | None) -> None:
    account = Account(tmp_path, SMALL)
    for number, size in enumerate(sizes):
        (tmp_path / f"f{number}").write_bytes(bytes(size))
    assert account.excess() is excess


def test_a_file_with_holes_counts_its_size(tmp_path: Path) -> None:
    account = Account(tmp_path, Quota(file_bytes=1 << 30, total_bytes=1 << 20))
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 29)
    assert account.excess() is Excess.TOTAL_BYTES


def test_folders_are_looked_into_and_links_are_not(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "f").write_bytes(bytes(10_000))
    (tmp_path / "out").symlink_to("/usr")
    found = usage(tmp_path)
    assert (found.files, found.largest) == (4, 10_000)


def test_folders_deeper_than_any_runner_makes_them_are_too_many(tmp_path: Path) -> None:
    """Below some depth their paths are too long to look into."""
    account, place = Account(tmp_path), tmp_path
    for _ in range(70):
        place = place / "d"
        place.mkdir()
    assert account.excess() is Excess.UNCOUNTED


def test_a_folder_that_cannot_be_looked_into_is_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root there is none, so the refusal is planted."""
    (tmp_path / "shut").mkdir()
    account = Account(tmp_path, SMALL)
    look = os.scandir

    def refused(place: str) -> Any:
        if place.endswith("shut"):
            raise PermissionError(13, "Permission denied", place)
        return look(place)

    monkeypatch.setattr(os, "scandir", refused)
    assert account.excess() is Excess.UNCOUNTED


def test_what_a_guest_leaves_gives_nobody_its_owner_s_rights(tmp_path: Path) -> None:
    (tmp_path / "shut" / "below").mkdir(parents=True)
    program, outside = tmp_path / "shut" / "program", tmp_path.parent / "outside"
    for file in (program, outside):
        file.touch()
        file.chmod(0o6755)
    (tmp_path / "link").symlink_to(outside)
    (tmp_path / "shut").chmod(0o300)
    mend_modes(tmp_path)
    assert stat.S_IMODE(program.stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "shut").stat().st_mode) == 0o700
    assert stat.S_IMODE(outside.stat().st_mode) == 0o6755, "a link leads out of the folder"


def limited(tmp_path: Path, script: str) -> Ended:
    (tmp_path / "work").mkdir()
    account = Account(tmp_path / "work", SMALL)
    return run(
        ["setsid", "sh", "-c", script],
        cwd=tmp_path / "work",
        environment=ENVIRONMENT,
        console=tmp_path / "c",
        bounds=Bounds(30, 30),
        watch=watching(excess=account.excess),
    )


def test_who_writes_too_much_is_stopped(tmp_path: Path) -> None:
    """It sleeps for an hour afterwards."""
    ended = limited(tmp_path, "for i in 1 2 3 4 5 6 7 8 9 10 11; do : > f$i; done; sleep 3600")
    assert (ended.stop, ended.excess) == (Stop.OUTPUT_LIMIT, Excess.FILES)


def test_who_ends_before_anybody_looks_is_found_too(tmp_path: Path) -> None:
    ended = limited(tmp_path, "head -c 70000 /dev/zero > big")
    assert (ended.stop, ended.status) == (Stop.EXITED, 0)
    assert ended.excess is Excess.FILE_BYTES


def test_a_console_without_end(tmp_path: Path) -> None:
    ended = run(
        ["setsid", "cat", "/dev/zero"],
        cwd=tmp_path,
        environment=dict(os.environ),
        console=tmp_path / "c",
        bounds=Bounds(60, 60, output_bytes=1 << 20),
    )
    assert (ended.stop, ended.excess) == (Stop.OUTPUT_LIMIT, Excess.CONSOLE)
