"""A persistent build tree: after an edit only the files that depend on it are built.

Ninja compares times of files, so it misses a file that is replaced by one with an old time (``mv``,
``cp -p``, ``rsync -t``); a file edited while it was compiled, whose object is newer; and files that
no rule names (those of a glob, in a checkout also linker scripts and code generators). A program of
such a tree would not match its sources. Here the time of the last *change* (ctime, which no tool
sets) selects the files to check. If ninja could miss a change, the tree is built from nothing,
which is quick with ccache."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR

from harness.core.errors import BuildError, InfraError
from harness.system import artifact_cache
from harness.system.files import write_whole
from harness.system.locks import in_use

_STATE = "settled.json"
_CLOCK = ".clock"


class SourcesChanged(InfraError):
    """The sources were edited during the build, so that the ELF's content is unknown."""

    def __init__(self, sources: str, place: Path | None = None) -> None:
        super().__init__(
            f"{sources} changed while its runner was built", hint="run it again", path=place
        )


@dataclass(frozen=True)
class BuildTree:
    """The build is in ``place``/build, its logs are in ``place``.

    ``facts``: plain data; a tree with other facts is not reused. ``sources``: every file that the
    build may read now; an added or removed one restarts the build from nothing. ``known``: whether
    ninja has a rule that reads the file.
    """

    place: Path
    facts: object
    sources: Callable[[], Iterable[Path]]
    known: Callable[[Path], bool] = lambda _path: True

    @property
    def folder(self) -> Path:
        return self.place / "build"

    @contextmanager
    def building(self, error: SourcesChanged) -> Iterator[bool]:
        """The block builds in ``folder``. Yields whether ninja can continue there; if not, it is
        empty. The caller holds the lock of ``place``.

        Raises ``error`` if the sources changed meanwhile, also instead of a BuildError.
        """
        in_use(self.place)
        # The time that new files get, which lags the clock by some milliseconds.
        clock = self.place / _CLOCK
        clock.touch()
        began, before = clock.stat().st_mtime_ns, self._inputs()
        usable = self._is_usable(before)
        (self.place / _STATE).unlink(missing_ok=True)
        if not usable:
            artifact_cache.clear(self.folder)
            self.folder.mkdir()
        self._settle(before, began, ended=False)
        try:
            yield usable
        except (BuildError, KeyboardInterrupt) as failure:
            # A file that was being made is made again: ninja has no entry of it in its log, or one
            # that is older than the file's inputs.
            if self._inputs() == before:
                self._settle(before, began)
            elif isinstance(failure, BuildError):
                raise error from failure
            raise
        if self._inputs() != before:
            raise error
        self._settle(before, began)

    def _inputs(self) -> _Inputs:
        names = hashlib.sha256()
        times = []
        for path in self.sources():
            try:
                stat = path.lstat()
            except OSError:  # deleted, and still in git's index
                continue
            names.update(f"{path}\n".encode("utf-8", "surrogateescape"))
            if not S_ISDIR(stat.st_mode):
                times.append((path, stat.st_ctime_ns, stat.st_mtime_ns))
        return _Inputs(names.hexdigest(), times)

    def _is_usable(self, inputs: _Inputs) -> bool:
        """Whether ninja sees everything that changed since the last build."""
        try:
            state = json.loads((self.place / _STATE).read_text())
            facts, names, began = state["facts"], state["names"], int(state["began"])
            ended = bool(state["ended"])
        except (OSError, ValueError, KeyError, TypeError):
            return False
        same = (facts, names) == (json.loads(json.dumps(self.facts)), inputs.names)
        if not same or not (self.folder / "build.ninja").is_file():
            return False
        changed = ((path, mtime) for path, ctime, mtime in inputs.times if ctime > began)
        return all(ended and self.known(path) and mtime > began for path, mtime in changed)

    def _settle(self, inputs: _Inputs, began: int, *, ended: bool = True) -> None:
        """Stores the state after a build with unchanged sources, also one that was cancelled; and
        before it, for one that is killed: what changed since may have changed while it was read."""
        state = {"facts": self.facts, "names": inputs.names, "began": began, "ended": ended}
        write_whole(self.place / _STATE, json.dumps(state))


@dataclass(frozen=True)
class _Inputs:
    """The files that a build may read: a digest of their names, and their times."""

    names: str
    times: Sequence[tuple[Path, int, int]]  # path, ctime, mtime in ns
