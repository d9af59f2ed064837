"""The guest's current directory: what is put there, and what the guest left in it.

The guest may do anything in it, so nothing is written through what is found there: a link could
lead out. Several processes of a run use it one after another; what one of them wrote is kept
where the next cannot touch it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.simulate.guest_files import output_base, written_outputs
from harness.simulate.transcript import LeftFile


class GuestDirectory:
    """OSError, as from any file operation, when the disk does not play along."""

    def __init__(self, path: Path, aside: Path) -> None:
        """``path`` must not exist yet, so whatever is found in it was made by this run.
        ``aside`` is where outputs are kept meanwhile."""
        path.mkdir(parents=True)
        self._path = path
        self._aside = aside
        self._placed: set[str] = set()

    def place(self, copies: Mapping[str, Path], files: Mapping[str, bytes]) -> None:
        """Put files there, by name: copies, for the guest may write to what it finds."""
        for name, source in copies.items():
            shutil.copyfile(source, self._free(name))
        for name, content in files.items():
            self._free(name).write_bytes(content)
        self._placed |= {*copies, *files}

    def forget_outputs(self, input_set: int) -> None:
        """Whatever has the name of an output of a set that is still to be run."""
        for path in list(self._path.glob(f"{output_base(input_set)}-*.bin")):
            _remove(path)

    def keep_outputs(self, input_set: int) -> None:
        """Out of the guest's reach, until ``put_back``."""
        self._aside.mkdir(exist_ok=True)
        for path in list(written_outputs(self._path, input_set)):
            path.rename(self._aside / path.name)

    def put_back(self) -> None:
        """Every output that was kept."""
        if not self._aside.exists():
            return
        for path in list(self._aside.iterdir()):
            path.rename(self._free(path.name))
        self._aside.rmdir()

    def left(self) -> tuple[LeftFile, ...]:
        """The regular files that we had not put there, by name."""
        found = []
        for folder, _, names in os.walk(self._path):
            for name in names:
                path = Path(folder) / name
                relative = str(path.relative_to(self._path))
                if relative not in self._placed and path.is_file() and not path.is_symlink():
                    found.append(LeftFile(relative, path.stat().st_size))
        return tuple(sorted(found, key=lambda file: file.name))

    def discard(self, files: Iterable[LeftFile]) -> None:
        """Remove what the guest left: there was too much of it to keep."""
        for file in files:
            (self._path / file.name).unlink(missing_ok=True)

    def _free(self, name: str) -> Path:
        path = self._path / name
        _remove(path)
        return path


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
