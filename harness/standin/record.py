"""A copy of one simulation for whoever asked: its console, its files, and how to do it again.

Beside ``NUMBER.log`` (the console) and the folder ``NUMBER`` (the files of the program's directory,
as they were at the end) ``NUMBER.json`` says with which arguments the stand-in was called, how it
ended, which of the files were there before and are as they were, and which it made. A simulation
that did not come to its end has no such file.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from harness.standin.uart import write_all

RECORD = "HIL_STANDIN_RECORD"  # a directory that gets all this
_KEPT_BYTES = 8 << 20  # of one file
_Times = dict[str, tuple[int, int, int]]


class Record:
    def __init__(self, directory: Path, cwd: Path) -> None:
        self._place = directory / f"{time.time_ns()}-{os.getpid()}"
        self._cwd = cwd
        directory.mkdir(parents=True, exist_ok=True)
        self._log = os.open(f"{self._place}.log", os.O_WRONLY | os.O_CREAT, 0o644)
        self._before = _times(cwd)

    def take(self, data: bytes) -> None:
        write_all(self._log, data)

    def keep(self) -> None:
        """What the program read and wrote; its directory may be gone when somebody asks."""
        self._place.mkdir()
        for path in self._cwd.iterdir():
            if path.is_file() and path.stat().st_size <= _KEPT_BYTES:
                shutil.copyfile(path, self._place / path.name)

    def ended(self, name: str, argv: Sequence[str], status: int) -> None:
        """After ``keep``, when it did come to its end."""
        after = _times(self._cwd)
        made = sorted(path for path, times in after.items() if self._before.get(path) != times)
        whole = (
            all(times[0] <= _KEPT_BYTES for times in after.values())
            and set(self._before) <= set(after)
            and not set(made) & set(self._before)
            and all(path.is_file() for path in self._cwd.iterdir())
        )
        told = {
            "model": name,
            "argv": list(argv),
            "cwd": str(self._cwd),
            "status": status,
            "given": sorted(self._before),
            "made": made,
            "whole": whole,  # nothing is missing of what it read, or of what it made
        }
        Path(f"{self._place}.json").write_text(json.dumps(told))


def _times(directory: Path) -> _Times:
    found = ((path.name, path.stat()) for path in directory.iterdir() if path.is_file())
    return {name: (is_.st_size, is_.st_mtime_ns, is_.st_ino) for name, is_ in found}
