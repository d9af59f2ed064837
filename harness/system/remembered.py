"""Answers that were found once, by everything that they depend on: ``.hil/cache/tools``.

What is damaged, or somebody else's answer, is no answer. A cache that cannot be written only costs
time.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from harness.system.files import read_regular, write_whole
from harness.system.paths import cache_dir

_SETTLED_NS = 2_000_000_000  # a file changed later than this may change again unseen by its times


def answer(kind: str, facts: str) -> str | None:
    """What was remembered for exactly these facts."""
    asked = _digest(f"{kind}\0{facts}")
    try:
        said = read_regular(_place(kind, asked)).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    seal, _, text = said.partition("\n")
    return text if seal == _digest(f"{asked}\0{text}") else None


def remember(kind: str, facts: str, text: str) -> None:
    asked = _digest(f"{kind}\0{facts}")
    place = _place(kind, asked)
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place, f"{_digest(f'{asked}{chr(0)}{text}')}\n{text}")


def forget(kind: str) -> None:
    """Every answer of a kind."""
    with suppress(OSError):
        for place in cache_dir("tools").glob(f"{kind}-*"):
            place.unlink(missing_ok=True)


def stamps(files: Iterable[str]) -> str | None:
    """Of each file, in order, what stat(2) says that no writer can leave as it was. None while one
    of them may change again unseen. Raises OSError."""
    newest = time.time_ns() - _SETTLED_NS
    found = []
    for file in files:
        status = os.stat(file)
        if status.st_ctime_ns > newest:
            return None
        found.append(
            f"{file}\0{status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns} "
            f"{status.st_ctime_ns} {status.st_mode}"
        )
    return "\n".join(found)


def _place(kind: str, asked: str) -> Path:
    return cache_dir("tools") / f"{kind}-{asked[:32]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
