"""What an export read besides the model's own source: files, folders and variables.

They belong to a cached Program as its sources belong to its key: it is used again only where all
of them still are what they were. Imports no torch; checking takes a ``stat`` of each file.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.system.files import read_regular

_SETTLED_NS = 2_000_000_000  # a file changed later than this may change again unseen by its times


@dataclass(frozen=True)
class Seen:
    """A file or a folder. ``path`` as it was named, so one that is relative depends on where one
    stands; ``digest`` of a file's content, or of the names in a folder, None for what was not
    there. ``times``: what stat(2) says that no writer can leave as it was, if that is settled."""

    path: str
    digest: str | None
    times: tuple[int, ...] = ()

    def holds(self) -> bool:
        if self.times and self.times == _times(self.path):
            return True
        return digest_of(self.path) == self.digest


@dataclass(frozen=True)
class Inputs:
    """``home``: the folder of the model's file, on which paths may depend. ``variables`` has the
    sha256 of each value, None for one that was not set. ``unknown``: why it cannot be known what
    was read, or ""."""

    home: str = ""
    seen: tuple[Seen, ...] = ()
    variables: tuple[tuple[str, str | None], ...] = ()
    unknown: str = ""

    def __bool__(self) -> bool:
        return bool(self.seen or self.variables or self.unknown)

    def hold(self, home: str, environ: Mapping[str, str] = os.environ) -> bool:
        """Whether an export would read the same again."""
        return (
            not self.unknown
            and (not self.seen or self.home == home)
            and all(value_digest(environ.get(name)) == then for name, then in self.variables)
            and all(one.holds() for one in self.seen)
        )

    def name(self) -> str:
        """Equal for equal content, so that two states of a file have an entry each."""
        facts = [self.home, [(s.path, s.digest) for s in self.seen], self.variables, self.unknown]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]


NO_INPUTS = Inputs()


def inputs_from(fields: Mapping[str, Any]) -> Inputs:
    """From JSON. Raises one of MALFORMED."""
    return Inputs(
        fields["home"],
        tuple(Seen(s["path"], s["digest"], tuple(s["times"])) for s in fields["seen"]),
        tuple((name, digest) for name, digest in fields["variables"]),
        fields["unknown"],
    )


def seen_now(path: str) -> Seen:
    """Raises OSError for what is neither a file nor a folder, nor absent."""
    digest, times = digest_of(path), _times(path)
    settled = bool(times) and time.time_ns() - times[-1] > _SETTLED_NS
    return Seen(path, digest, times if settled and os.path.isfile(path) else ())


def digest_of(path: str) -> str | None:
    """None for what is not there, and for what cannot be read."""
    try:
        if os.path.isdir(path):
            names = "\0".join(sorted(os.listdir(path)))
            return "names:" + hashlib.sha256(names.encode(errors="surrogateescape")).hexdigest()
        return hashlib.sha256(read_regular(Path(path))).hexdigest()
    except (OSError, ValueError):
        return None


def value_digest(value: str | None) -> str | None:
    """A variable may hold a secret, so its value is not kept."""
    if value is None:
        return None
    return hashlib.sha256(value.encode(errors="surrogateescape")).hexdigest()


def _times(path: str) -> tuple[int, ...]:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
