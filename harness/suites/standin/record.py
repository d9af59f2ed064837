"""Records a simulation of the stand-in: console, files, and how to repeat it.

In the folder ``$HIL_STANDIN_RECORD`` a simulation N leaves ``N.log``, its console; ``N/``, the
files of the program's directory as they were at the end; and ``N.json``, the fields of a
``Simulation``. A simulation that was killed has no ``N.json``. The file
``refused`` has a line for each program that the stand-in could not simulate.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RECORD = "HIL_STANDIN_RECORD"  # the variable with the folder
REFUSED = "refused"  # a file in it: the stand-in ended with an error of its own
_FILE_LIMIT = 8 << 20  # bytes of a file that is copied
_Stamp = tuple[int, int, int]  # of a file: size, time of change, inode


@dataclass(frozen=True)
class Simulation:
    """``model`` was started with ``argv`` for the folder ``cwd``, and ended with ``status``.
    ``inputs``: names of the files that existed before. ``repeatable``: none of them has changed,
    and ``files`` has them all."""

    log: Path
    model: str
    argv: tuple[str, ...]
    cwd: str
    status: int
    inputs: tuple[str, ...]
    repeatable: bool

    @property
    def files(self) -> Path:
        return self.log.with_suffix("")


def read_simulation(log: Path) -> Simulation:
    """Raises OSError and whatever ``MALFORMED`` names."""
    fields: dict[str, Any] = json.loads(log.with_suffix(".json").read_text("utf-8"))
    for name in ("argv", "inputs"):
        fields[name] = tuple(map(str, fields[name]))
    return Simulation(log, **fields)


def mark_refused(why: str) -> None:
    """Writes in the recording's folder that a simulation has no record."""
    if directory := os.environ.get(RECORD):
        with suppress(OSError):
            os.makedirs(directory, exist_ok=True)
            with open(Path(directory, REFUSED), "a", encoding="utf-8") as file:
                file.write(f"{' '.join(why.split())}\n")


class StandinRecorder:
    def __init__(self, directory: Path, cwd: Path) -> None:
        self._base = directory / f"{time.time_ns()}-{os.getpid()}"
        self._cwd = cwd
        directory.mkdir(parents=True, exist_ok=True)
        self._log = os.open(f"{self._base}.log", os.O_WRONLY | os.O_CREAT, 0o644)
        self._before = _stamps(cwd)

    def write(self, data: bytes) -> None:
        """Appends to the console."""
        write_all(self._log, data)

    def copy_files(self) -> None:
        """Call it as soon as QEMU has ended: the caller of the stand-in may remove the files."""
        self._base.mkdir()
        for path in self._cwd.iterdir():
            if path.is_file() and path.stat().st_size <= _FILE_LIMIT:
                shutil.copyfile(path, self._base / path.name)

    def finish(self, model: str, argv: Sequence[str], status: int) -> None:
        after = _stamps(self._cwd)
        fields = {
            "model": model,
            "argv": list(argv),
            "cwd": str(self._cwd),
            "status": status,
            "inputs": sorted(self._before),
            "repeatable": all(size <= _FILE_LIMIT for size, _, _ in after.values())
            and self._before.items() <= after.items()
            and all(path.is_file() for path in self._cwd.iterdir()),
        }
        Path(f"{self._base}.json").write_text(json.dumps(fields))


def write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _stamps(directory: Path) -> dict[str, _Stamp]:
    files = ((path.name, path.stat()) for path in directory.iterdir() if path.is_file())
    return {name: (status.st_size, status.st_mtime_ns, status.st_ino) for name, status in files}
