"""Whether ninja can be trusted with a build tree that is there, or has to start from nothing.

It compares times of files, so that it does not see: a file that is put in place with an old time
(``mv``, ``cp -p``, ``rsync -t``); one that was edited while it was compiled, whose object is
newer; and what no rule of the checkout's CMake names (linker scripts, code generators, the files
of a glob). A program of such a tree would stand for sources that it was not made from. Here the
time of the last *change* (ctime, which nobody sets) says which files to look at.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR

from harness.firmware.executorch.checkout import BUILT, Checkout
from harness.firmware.executorch.parts import part_files
from harness.system.files import write_whole
from harness.system.git import files

_STATE = "settled.json"
_CLOCK = ".clock"
# What compilers tell ninja that they have read.
_COMPILED = (".c", ".cc", ".cpp", ".h", ".hpp", ".inc", ".s", ".S")
# What takes no part in the build: texts, the exporter's Python, which lies beside the C++, and of
# backends for other machines all but what a compiler may be told to include.
_TEXTS = (".md", ".rst", ".ipynb")
_EXPORTERS = ("backends", "devtools", "examples", "exir", "extension")
_BACKENDS = ("arm", "cortex_m")
_RUNNER = "executor_runner"  # ... but for its scripts


@dataclass(frozen=True)
class Inputs:
    """The files that a build may read, with their times."""

    names: str  # a digest of them
    changes: Sequence[tuple[Path, int, int]]  # path, ctime, mtime in ns

    def changed_since(self, moment: int) -> Iterator[tuple[Path, int]]:
        """Path and mtime of what was touched then or later."""
        return ((path, mtime) for path, ctime, mtime in self.changes if ctime >= moment)


def inputs(checkout: Checkout) -> Inputs:
    """As they are now. Raises GitFailed."""
    with ThreadPoolExecutor() as pool:
        own = pool.submit(files, checkout.root, BUILT)
        found = [*pool.map(part_files, checkout.parts.values())]
    root = checkout.root
    mine = [path for path in own.result() if not _idle(path.relative_to(root))]
    digest = hashlib.sha256()
    changes = []
    for path in (*mine, *(path for part in found for path in part)):
        try:
            stat = path.lstat()
        except OSError:  # deleted, and still in the index
            continue
        if not _foreign(path, root):
            digest.update(f"{path}\n".encode("utf-8", "surrogateescape"))
        if not S_ISDIR(stat.st_mode):
            changes.append((path, stat.st_ctime_ns, stat.st_mtime_ns))
    return Inputs(digest.hexdigest(), changes)


def now(tree: Path) -> int:
    """The time as files get it, which is behind the clock's by some milliseconds."""
    clock = tree / _CLOCK
    clock.touch()
    return clock.stat().st_mtime_ns


def usable(tree: Path, there: Inputs) -> bool:
    """Whether ninja sees everything that changed since the tree was settled."""
    try:
        state = json.loads((tree / _STATE).read_text())
        settled, names = int(state["settled"]), str(state["names"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
    if names != there.names:
        return False
    changed = there.changed_since(settled)
    return all(path.suffix in _COMPILED and mtime > settled for path, mtime in changed)


def unsettle(tree: Path) -> None:
    """From now on the tree may be in any state."""
    (tree / _STATE).unlink(missing_ok=True)


def settle(tree: Path, checkout: Checkout, before: Inputs, began: int) -> bool:
    """After a build that ended by itself: whether its sources stood still since ``began``, when
    they were as ``before``. If so the next build can go on from there."""
    moment = now(tree)
    there = inputs(checkout)
    if there.names != before.names or any(there.changed_since(began)):
        return False
    write_whole(tree / _STATE, json.dumps({"settled": moment, "names": there.names}))
    return True


def _idle(name: Path) -> bool:
    if name.suffix == ".py" and _RUNNER not in name.parts:
        return name.parts[0] in _EXPORTERS
    return name.suffix in _TEXTS or (_of_others(name) and name.suffix not in _COMPILED)


def _foreign(path: Path, root: Path) -> bool:
    """A source of another machine's backend: it may come and go."""
    return root in path.parents and _of_others(path.relative_to(root))


def _of_others(name: Path) -> bool:
    return len(name.parts) > 2 and name.parts[0] == "backends" and name.parts[1] not in _BACKENDS
