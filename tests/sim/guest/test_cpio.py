"""The archive is read by the tool that defines the format, and is the same bytes twice."""

from __future__ import annotations

import random
import shutil
import subprocess

import pytest

from harness.sim.guest.image import archive, device_entry, directory_entry, file_entry, link_entry

ENTRIES = {
    "init": link_entry("bin/sh"),
    "bin/sh": file_entry(b"\x7fELF...", executable=True),
    "etc/deep/name": file_entry(b"x"),
    "dev/console": device_entry(5, 1),
    "tmp": directory_entry(),
}


def test_every_field_is_where_the_kernel_reads_it() -> None:
    """13 numbers of eight digits behind the magic; name and content on multiples of four."""
    data = archive({"a": file_entry(b"12345")})
    assert data[:6] == b"070701"
    fields = [int(data[6 + 8 * n : 14 + 8 * n], 16) for n in range(13)]
    assert fields == [1, 0o100644, 0, 0, 1, 0, 5, 0, 0, 0, 0, 2, 0]
    assert data[110:112] == b"a\0"
    assert data[112:120] == b"12345\0\0\0"
    assert data[120:126] == b"070701"
    assert b"TRAILER!!!\0" in data[120:]
    assert len(data) % 4 == 0


@pytest.mark.skipif(shutil.which("cpio") is None, reason="needs cpio")
def test_cpio_lists_what_was_put_in() -> None:
    said = subprocess.run(
        ["cpio", "-itv"], input=archive(ENTRIES), capture_output=True, check=True
    ).stdout.decode()
    rows = {line.split()[8]: line for line in said.splitlines()}
    assert rows["init"].startswith("lrwxrwxrwx")
    assert rows["init"].endswith("init -> bin/sh")
    assert rows["bin/sh"].startswith("-rwxr-xr-x")
    assert rows["etc/deep"].startswith("drwxr-xr-x")
    console = next(line for line in said.splitlines() if "dev/console" in line)
    assert console.startswith("crw-------")
    assert "5,   1" in console


def test_the_order_of_the_entries_changes_nothing() -> None:
    shuffled = list(ENTRIES.items())
    random.Random(20261122).shuffle(shuffled)
    assert archive(dict(shuffled)) == archive(ENTRIES)
