"""The notes of earlier runs of a suite: which of them still hold, and how new ones are put by.

A folder of ``cache/suites`` is of one suite and of one state of all that exports its tests; more
than one is kept, for people go back and forth between states. Notes are put into it by renaming,
contents first, so that processes may share it.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import filelock

from harness.conformance.notes import BLOBS, COLLECTED, TESTS, Note, path_of, read_note
from harness.conformance.surroundings import (
    Roots,
    also_touched,
    changed_while,
    changes_since,
    read_surroundings,
    surroundings_now,
)
from harness.system.files import write_whole
from harness.system.json_file import MALFORMED, read_json
from harness.system.lease import in_use
from harness.system.paths import cache_dir

_STATE, _SECONDS = "surroundings.json", "seconds.json"
_SIMULATORS = 8  # that a test came to its result with: runners, versions of the NPU model
_STATES = 6  # of one suite that are looked at, the newest


@dataclass(frozen=True)
class Remembered:
    """``folder``: None when nothing fits. ``changed``: files of tests, as test ids have them, that
    are not as they were; ``why``: what else has changed since the nearest state, so that nothing
    of it holds."""

    folder: Path | None = None
    changed: frozenset[str] = frozenset()
    why: tuple[str, ...] = ()

    def note(self, test: str) -> Note | None:
        if self.folder is None or self.why or test.partition("::")[0] in self.changed:
            return None
        note = read_note(path_of(self.folder, test))
        return note if note is not None and note.test == test else None

    def collected(self, keyword: str | None) -> list[str] | None:
        """The tests that match, but for those in files that changed; None when it is not known.
        What a keyword matches only pytest decides, so each has a list of its own."""
        if self.folder is None or self.why:
            return None
        with suppress(OSError, *MALFORMED):
            known = read_json(self.folder / COLLECTED)[keyword or ""]
            ids = [str(one) for one in known["ids"]]
            return [one for one in ids if one.partition("::")[0] not in self.changed]
        return None

    def not_collected(self, keyword: str | None) -> list[str]:
        """Events of the files of tests that pytest could not read."""
        assert self.folder is not None
        known = read_json(self.folder / COLLECTED)[keyword or ""]
        return [json.dumps(event) for event in known["events"]]

    def content(self, name: str) -> bytes:
        """Raises OSError."""
        assert self.folder is not None
        return (self.folder / BLOBS / name).read_bytes()


def _place() -> Path:
    return cache_dir("suites")


def remembered(suite: str, roots: Roots) -> Remembered:
    """The state that is as now, or else the nearest one."""
    best = Remembered(why=("nothing is remembered",))
    for folder in _states(suite):
        in_use(folder)
        then = read_surroundings(folder / _STATE)
        if then is None:
            continue
        names = changes_since(then, roots)
        tests = {name: roots.test_file(name) for name in names}
        why = tuple(name for name, test in tests.items() if test is None)
        files = also_touched((test for test in tests.values() if test), then, roots)
        found = Remembered(folder, files, why)
        if not names:
            return found
        if best.folder is None or (len(why), len(names)) < (len(best.why), len(best.changed)):
            best = found
    return best


def _states(suite: str) -> Sequence[Path]:
    found = [path for path in _place().glob(f"{suite}+*") if path.is_dir()]
    return sorted(found, key=lambda path: -path.stat().st_mtime)[:_STATES]


def put_by(suite: str, roots: Roots, notes: Path, started: float, valid: Remembered) -> None:
    """What the workers noted in the folder ``notes``. Nothing is when something was written since
    ``started``: what was exported then nobody knows."""
    loaded = [path for file in notes.glob("loaded-*.json") for path in read_json(file)]
    if not loaded:
        return
    now = surroundings_now(roots, loaded)
    if changed_while(roots, now, started):
        return
    _place().mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(_place() / f".{suite}.lock"):
        same = remembered(suite, roots)
        if same.folder is None or same.why or same.changed:
            folder = _new(suite)
            _take_over(valid, folder)
        else:
            folder = same.folder
        then = read_surroundings(folder / _STATE)
        for part in (BLOBS, TESTS):
            (folder / part).mkdir(exist_ok=True)
            for file in (notes / part).glob("*"):
                file.replace(folder / part / file.name)
        _add_collection(folder, notes)
        write_whole(folder / _STATE, (then.with_more(now) if then else now).to_json())
        os.utime(folder)


def _new(suite: str) -> Path:
    folder = _place() / f"{suite}+{uuid.uuid4().hex[:12]}"
    in_use(folder)
    folder.mkdir()
    return folder


def _take_over(valid: Remembered, folder: Path) -> None:
    """What still holds of another state, where only files of tests have changed."""
    if valid.folder is None or valid.why:
        return
    for part in (BLOBS, TESTS):
        (folder / part).mkdir()
    for path in (valid.folder / TESTS).glob("*.json"):
        note = read_note(path)
        if note is None or note.test.partition("::")[0] in valid.changed:
            continue
        for simulation in note.simulations:
            for name in simulation.given.values():
                with suppress(FileExistsError, FileNotFoundError):
                    os.link(valid.folder / BLOBS / name, folder / BLOBS / name)
        os.link(path, folder / TESTS / path.name)
    state = read_surroundings(valid.folder / _STATE)
    if state is not None:
        write_whole(folder / _STATE, state.to_json())


def _add_collection(folder: Path, notes: Path) -> None:
    with suppress(OSError, *MALFORMED):
        new = read_json(notes / COLLECTED)
        known: dict[str, Any] = {}
        with suppress(OSError, *MALFORMED):
            known = dict(read_json(folder / COLLECTED))
        known[new["keyword"]] = {"ids": new["ids"], "events": new["events"]}
        write_whole(folder / COLLECTED, json.dumps(known))


def simulated_by(folder: Path, note: Note, by: str) -> None:
    """Note that ``by`` simulated it and came to the same."""
    if by not in note.by:
        replace(note, by=(by, *note.by)[:_SIMULATORS]).save(folder)


def seconds_of(suite: str) -> dict[str, float]:
    """How long each test took the last time it was exported."""
    with suppress(OSError, *MALFORMED):
        return {str(k): float(v) for k, v in read_json(_place() / f"{suite}-{_SECONDS}").items()}
    return {}


def add_seconds(suite: str, measured: Mapping[str, float]) -> None:
    _place().mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(_place() / f".{suite}.lock"):
        write_whole(_place() / f"{suite}-{_SECONDS}", json.dumps({**seconds_of(suite), **measured}))
