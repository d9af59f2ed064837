"""What a program has written too much of."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.system.confine import ENVIRONMENT
from harness.system.process import Bounds, Ended, Stop, run
from harness.system.quota import Account, Excess, Quota, mend_modes, remove, usage
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


def test_a_folder_of_any_depth_is_removed(tmp_path: Path) -> None:
    """Deeper than a path reaches, and than a function calls itself; some of it shut."""
    name, outside = "d" * 100, tmp_path / "outside"
    outside.mkdir()
    top = tmp_path / "top"
    top.mkdir()
    here = os.open(top, os.O_RDONLY)
    for depth in range(1100):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.symlink(outside, "link", dir_fd=below)
        os.fchmod(here, 0 if depth % 100 == 50 else 0o700)
        os.close(here)
        here = below
    os.close(here)
    try:
        assert usage(top).whole is False
        assert remove(top) == ""
        assert not top.exists()
        assert outside.is_dir()
    finally:  # pytest could not
        subprocess.run(["rm", "-rf", top], check=True)


def limited(tmp_path: Path, script: str) -> Ended:
    (tmp_path / "work").mkdir()
    account = Account(tmp_path / "work", SMALL)
    return run(
        ["sh", "-c", script],
        cwd=tmp_path / "work",
        environment=ENVIRONMENT,
        console=tmp_path / "c",
        bounds=Bounds(30, 30),
        watch=watching(excess=account.excess),
    )


def python(body: str) -> str:
    return shlex.join(["exec", sys.executable, "-c", body])


@pytest.mark.parametrize(
    "hold",
    [
        "file = open('f', 'w+b'); os.unlink('f'); file.write(bytes(60000)); file.flush()",
        "file = os.open('.', os.O_TMPFILE | os.O_RDWR); os.write(file, bytes(60000))",
        "import mmap; file = open('f', 'w+b'); os.truncate('f', 60000); os.unlink('f'); "
        "kept.append(mmap.mmap(file.fileno(), 4096)); os.closerange(3, 99)",
    ],
    ids=["removed", "never-named", "only-mapped"],
)
def test_a_file_without_a_name_counts_while_somebody_has_it(tmp_path: Path, hold: str) -> None:
    """A walk does not find it, and the disk is as full. It sleeps for an hour afterwards."""
    body = f"import os, time; kept = []\nfor _ in range(3):\n  {hold}\n  kept.append(file)\n"
    ended = limited(tmp_path, python(f"{body}time.sleep(3600)"))
    assert (ended.stop, ended.excess) == (Stop.OUTPUT_LIMIT, Excess.TOTAL_BYTES)


def test_memory_without_a_name_is_not_a_file(tmp_path: Path) -> None:
    body = (
        "import mmap, os, time; m = os.memfd_create('m'); os.truncate(m, 1 << 20); "
        "a, b = mmap.mmap(m, 1 << 20), mmap.mmap(-1, 1 << 20); a[:] = b[:]; time.sleep(0.5)"
    )
    ended = limited(tmp_path, python(body))
    assert (ended.stop, ended.status, ended.excess) == (Stop.EXITED, 0, None)


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
        ["cat", "/dev/zero"],
        cwd=tmp_path,
        environment=dict(os.environ),
        console=tmp_path / "c",
        bounds=Bounds(60, 60, output_bytes=1 << 20),
    )
    assert (ended.stop, ended.excess) == (Stop.OUTPUT_LIMIT, Excess.CONSOLE)
