"""Protects reading and writing archives, against binutils."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.formats import archive as ar
from harness.link.smaller.candidate import NewSymbol, write_object

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
    said = subprocess.run(["arm-none-eabi-ar", "t", "libx.a"], cwd=tmp_path, capture_output=True,
                          text=True, check=True).stdout  # fmt: skip
    assert said.split() == ["a.o", "b.o"]
    assert ar.index(tmp_path / "libx.a") == ("soft",)
