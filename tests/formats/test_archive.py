"""Protects reading and writing archives, against binutils."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from harness.core.errors import MalformedFile
from harness.formats import archive as ar
from tests.link.arm_object import NewSymbol, write_object

OBJECT = write_object([NewSymbol("soft", "def", True)])


@pytest.mark.parametrize("options", ["rcs", "rcsT"])
def test_archives_are_those_of_ar(tmp_path: Path, options: str) -> None:
    names = ["a.o", "a_member_with_a_long_name.o"]
    for name in names:
        (tmp_path / name).write_bytes(OBJECT)
    subprocess.run(["arm-none-eabi-ar", options, "libx.a", *names], cwd=tmp_path, check=True)
    found = ar.members(tmp_path / "libx.a")
    assert [m.name for m in found] == names
    assert found[1].data == OBJECT
    assert "soft" in ar.index(tmp_path / "libx.a")


def test_our_archives_are_read_by_ar(tmp_path: Path) -> None:
    ar.write_archive(tmp_path / "libx.a", [("a.o", OBJECT, ["soft"]), ("b.o", b"odd", [])])
    said = subprocess.run(
        ["arm-none-eabi-ar", "t", "libx.a"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said.split() == ["a.o", "b.o"]
    assert ar.index(tmp_path / "libx.a") == ("soft",)


def _archives(folder: Path) -> dict[str, bytes]:
    names = ["a.o", "a_member_with_a_long_name.o"]
    for name in names:
        (folder / name).write_bytes(OBJECT)
    made = {}
    for options in ("rcs", "rcsT"):
        subprocess.run(
            ["arm-none-eabi-ar", options, f"{options}.a", *names], cwd=folder, check=True
        )
        made[options] = (folder / f"{options}.a").read_bytes()
    head = f"{'#1/8':<16}{0:<12}{0:<6}{0:<6}{644:<8}{12:<10}`\n".encode()
    return {**made, "BSD": ar.MAGIC + head + b"b.o\0\0\0\0\0data"}


def _read(path: Path) -> bool:
    """Whether it is sound; a damaged one is told as such, and nothing else is raised."""
    sound = True
    for read in (ar.members, ar.index):
        try:
            read(path)
        except MalformedFile:
            sound = False
    return sound


@pytest.mark.parametrize("kind", ["rcs", "rcsT", "BSD"])
def test_an_archive_that_breaks_off_is_damaged(tmp_path: Path, kind: str) -> None:
    """At whatever byte: every place and length is looked at before it is used (seed 3)."""
    whole, path = _archives(tmp_path)[kind], tmp_path / "x.a"
    path.write_bytes(whole)
    assert _read(path)
    broken = 0
    lengths = range(8, len(whole))
    for length in random.Random(3).sample(lengths, min(150, len(lengths))):
        path.write_bytes(whole[:length])
        broken += not _read(path)
    assert broken > 50
    path.write_bytes(whole[:-1])
    with pytest.raises(MalformedFile, match=r"x\.a: "):
        ar.members(path)


def test_random_damage_of_an_archive_is_survived(tmp_path: Path) -> None:
    seed = 20261121
    print("seed", seed)
    rng = random.Random(seed)
    path = tmp_path / "x.a"
    for whole in _archives(tmp_path).values():
        for _ in range(80):
            content = bytearray(whole)
            for _ in range(rng.randint(1, 4)):
                content[rng.randrange(8, len(content))] = rng.choice(b"/#0179 `\n\xff\0x")
            path.write_bytes(content)
            _read(path)
