"""Where a header is that a compiler did not find: below another name in its include folders, in the
project, or under a name that is spelt alike beside the source. Reads the files that a log names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path

_INCLUDE_FOLDER = re.compile(r"-(?:I|isystem)\s*(?P<folder>/[^\s\"']+)")
_ZEPHYR = "zephyr"  # before Zephyr 3.1 its headers had names without that folder
_ALIKE = 0.8
_LISTS = "CMakeLists.txt"
_MOST_FOLDERS = 2_000
_NOT_SEARCHED = ("build", "node_modules")


def fix_for(header: str, where: str, file: str, calls: Iterable[str]) -> str | None:
    """What to do for ``header``, which ``file`` includes (``where``: with its line); None where its
    place is not certain. ``calls``: of the compiler, among other lines of a log."""
    source = Path(file)
    matches = (m for text in calls for m in _INCLUDE_FOLDER.finditer(text))
    folders = list(dict.fromkeys(Path(m["folder"]) for m in matches))
    if any((folder / _ZEPHYR / header).is_file() for folder in folders):
        return f"Write #include <{_ZEPHYR}/{header}> in {where}, in place of {header}."
    lists = next((f / _LISTS for f in source.parents if (f / _LISTS).is_file()), None)
    own = [f for f in folders if lists is not None and f.is_relative_to(lists.parent)]
    names = {name: folder for folder in (*own, source.parent) for name in _names(folder)}
    if alike := get_close_matches(header, names, 1, _ALIKE):
        return f"Correct {header} in {where}: there is {alike[0]} in {names[alike[0]]}."
    places = sorted(_with(header, lists.parent)) if lists is not None else []
    if lists is None or len(places) != 1:
        return None
    folder = os.path.relpath(places[0], lists.parent)
    return (
        f"Add the folder {folder}, which has {header}, to the target's include folders in {lists}: "
        f"target_include_directories(TARGET PRIVATE {folder}), in Zephyr with app for TARGET."
    )


def _names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir() if entry.suffix in (".h", ".hpp", ".hh")]
    except OSError:
        return []


def _with(header: str, root: Path) -> Iterator[Path]:
    """The folders below ``root`` from which ``header`` is found."""
    for number, (directory, folders, _) in enumerate(os.walk(root)):
        if number >= _MOST_FOLDERS:
            return
        folders[:] = [f for f in folders if not f.startswith((".", *_NOT_SEARCHED))]
        if Path(directory, header).is_file():
            yield Path(directory)
