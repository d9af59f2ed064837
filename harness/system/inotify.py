"""Which files of a folder anybody opened meanwhile, as the kernel tells it: inotify(7)."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

# <sys/inotify.h>
_MODIFY, _OPEN, _CREATE, _OVERFLOW, _IS_DIRECTORY = 0x2, 0x20, 0x100, 0x4000, 0x40000000
_HEADER = struct.Struct("iIII")
_MOST_FOLDERS = 1000


@dataclass
class Opened:
    """``read``: files that were opened and not written to; ``trouble``: why they are not known."""

    read: set[str] = field(default_factory=set)
    trouble: str = ""


@contextmanager
def opened_below(folder: Path, into: Opened) -> Iterator[None]:
    """Fills ``into`` when the block ends. Folders with a leading dot and virtual environments are
    left out, and what is made meanwhile."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:
        into.trouble = f"opened files cannot be watched: {os.strerror(ctypes.get_errno())}"
        yield
        return
    try:
        watched: dict[int, str] = {}
        for place in _folders(folder):
            number = libc.inotify_add_watch(
                descriptor, os.fsencode(place), _MODIFY | _OPEN | _CREATE
            )
            if number < 0 or len(watched) >= _MOST_FOLDERS:
                into.trouble = f"the folders below {folder} cannot be watched"
                break
            watched[number] = place
        yield
        _collect(descriptor, watched, into)
    finally:
        os.close(descriptor)


def _folders(folder: Path) -> Iterator[str]:
    for place, below, files in os.walk(folder):
        if "pyvenv.cfg" in files:
            below.clear()
            continue
        below[:] = [name for name in below if not name.startswith(".") and name != "__pycache__"]
        yield place


def _collect(descriptor: int, watched: dict[int, str], into: Opened) -> None:
    made: set[str] = set()
    for number, mask, name in _events(descriptor):
        if mask & _OVERFLOW:
            into.trouble = "more files were opened than the kernel told"
        elif not mask & _IS_DIRECTORY and name:
            (into.read if mask & _OPEN else made).add(os.path.join(watched[number], name))
    into.read -= made


def _events(descriptor: int) -> Iterator[tuple[int, int, str]]:
    while True:
        try:
            data = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            return
        at = 0
        while at < len(data):
            number, mask, _cookie, length = _HEADER.unpack_from(data, at)
            at += _HEADER.size
            yield number, mask, os.fsdecode(data[at : at + length].rstrip(b"\0"))
            at += length
