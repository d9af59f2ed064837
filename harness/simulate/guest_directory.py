"""The guest's current directory: what is put there, and what the guest left in it.

The guest may do anything in it, so nothing is written through what is found there: a link could
lead out. Of a run in several processes each has its own, below that of the run, where the others
cannot see it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import TYPE_CHECKING

from harness.simulate.guest_files import written_outputs

if TYPE_CHECKING:
    from harness.simulate.transcript import LeftFile


def make(path: Path, copies: Mapping[str, Path], files: Mapping[str, bytes]) -> frozenset[Path]:
    """A directory with files in it, by name: copies, for the guest may write to what it finds.
    What was put there.

    ``path`` must not exist yet, so whatever else is found in it was made by this run. OSError,
    here and below, when the disk does not play along.
    """
    path.mkdir(parents=True)
    for name, source in copies.items():
        shutil.copyfile(source, path / name)
    for name, content in files.items():
        (path / name).write_bytes(content)
    return frozenset(path / name for name in (*copies, *files))


def move_outputs(guest: Path, input_set: int, to: Path) -> None:
    """The outputs of a set, into a directory that no guest has."""
    for path in list(written_outputs(guest, input_set)):
        path.rename(to / path.name)


def clear(guest: Path, placed: Iterable[Path]) -> None:
    """Away with what was put there, and with the directory when nothing else is in it."""
    for path in placed:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    if not any(guest.iterdir()):
        guest.rmdir()


def discard(work: Path, files: Iterable[LeftFile]) -> None:
    """Remove what a guest left: there was too much of it to keep."""
    for file in files:
        (work / file.name).unlink(missing_ok=True)


def left(work: Path, placed: Set[Path]) -> tuple[LeftFile, ...]:
    """The regular files in and below a directory that we had not put there, by name."""
    from harness.simulate.transcript import LeftFile  # of a run that has ended

    found = []
    for folder, _, names in os.walk(work):
        for path in (Path(folder) / name for name in names):
            if path not in placed and path.is_file() and not path.is_symlink():
                found.append(LeftFile(str(path.relative_to(work)), path.stat().st_size))
    return tuple(sorted(found, key=lambda file: file.name))
