"""An initramfs: an archive in cpio's "newc" format, the same bytes for the same files, whoever
makes it and when.

Source: Linux, Documentation/driver-api/early-userspace/buffer-format.rst.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass

_MAGIC = b"070701"
_END = "TRAILER!!!"


@dataclass(frozen=True)
class Entry:
    """``mode`` has the type of file; ``content`` of a symbolic link is what it points to."""

    mode: int
    content: bytes = b""
    device: tuple[int, int] = (0, 0)


def directory() -> Entry:
    return Entry(stat.S_IFDIR | 0o755)


def file(content: bytes, *, executable: bool = False) -> Entry:
    return Entry(stat.S_IFREG | (0o755 if executable else 0o644), content)


def link(to: str) -> Entry:
    return Entry(stat.S_IFLNK | 0o777, to.encode())


def character_device(major: int, minor: int) -> Entry:
    return Entry(stat.S_IFCHR | 0o600, b"", (major, minor))


def archive(entries: Mapping[str, Entry]) -> bytes:
    """``entries`` by path without a leading slash; directories above them are made."""
    every: dict[str, Entry] = {}
    for path in sorted(entries):
        parts = path.split("/")
        for depth in range(1, len(parts)):
            every.setdefault("/".join(parts[:depth]), directory())
        every[path] = entries[path]
    pieces = [_piece(number, path, every[path]) for number, path in enumerate(every, start=1)]
    return b"".join([*pieces, _piece(0, _END, Entry(0))])


def _piece(number: int, path: str, entry: Entry) -> bytes:
    name = path.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    # inode, mode, uid, gid, links, time, size, device of the file system, device, name, checksum
    fields = (
        number,
        entry.mode,
        0,
        0,
        links,
        0,
        len(entry.content),
        0,
        0,
        *entry.device,
        len(name),
        0,
    )
    header = _MAGIC + b"".join(b"%08X" % field for field in fields)
    return _padded(header + name) + _padded(entry.content)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
