"""What a suite's tests were exported with, and what of it is different now.

That is all that a worker had imported at its end; of the folders of ExecuTorch that this came from
the names of all modules, and every other file; the versions of all installed packages; and the
variables that these read. What a test did with it is not known: a difference may affect every test,
unless it is in the file of another test.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from harness.conformance.suites import Suite, Tooling
from harness.system.json_file import MALFORMED, read_json
from harness.system.paths import import_root

_VARIABLES = (
    "TORCH",
    "PYTORCH",
    "EXECUTORCH",
    "ARM_",
    "TOSA",
    "VELA",
    "TEST_",
    "FLAT",
    "PYTHONHASH",
)
_OURS = ("EXECUTORCH_ROOT",)  # set for every run, to its folder
_LARGE = 16 << 20  # bytes: of larger files the times count, and not the content


@dataclass(frozen=True)
class Content:
    """Of a file: what stat(2) says, and the sha256 (of the times where it is large)."""

    times: tuple[int, int, int]
    sha256: str


@dataclass(frozen=True)
class Surroundings:
    """``files``: by "root:path below it"; ``listings``: of folders, the names of modules."""

    files: Mapping[str, Content]
    listings: Mapping[str, str]
    versions: Mapping[str, str]
    variables: Mapping[str, str]

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    def with_more(self, other: Surroundings) -> Surroundings:
        return Surroundings(
            {**self.files, **other.files},
            {**self.listings, **other.listings},
            other.versions,
            other.variables,
        )


@dataclass(frozen=True)
class Roots:
    """Folders that files are named by, so that another checkout may hold the same. ``tests``: where
    the suite is, as "root:path"; ``package``: ExecuTorch's."""

    folders: Mapping[str, Path]
    tests: str
    package: Path

    def name(self, path: Path) -> str:
        for root, folder in self.folders.items():
            if path.is_relative_to(folder):
                return f"{root}:{path.relative_to(folder)}"
        return f":{path}"

    def path(self, name: str) -> Path:
        root, _, below = name.partition(":")
        return self.folders[root] / below if root else Path(below)

    def test_file(self, name: str) -> str | None:
        """The file of a test as test ids have it; None for any other file."""
        below = name.removeprefix(f"{self.tests}/")
        is_test = below != name and Path(below).name.startswith("test_") and below.endswith(".py")
        return below if is_test and Path(below).parent.name in ("ops", "models") else None


def roots_of(suite: Suite, tooling: Tooling | None) -> Roots:
    directory = suite.directory(tooling)
    package = directory
    for _ in Path(suite.root).parts:
        package = package.parent
    found = {"suite": package.parent, "python": Path(sys.prefix), "harness": import_root()}
    return Roots(found, f"suite:{package.name}/{suite.root}", package)


def surroundings_now(roots: Roots, loaded: Iterable[str]) -> Surroundings:
    """``loaded``: files of the modules that were imported. Those that are gone are left out: of a
    module that torch made up as it went nothing is there to change."""
    paths = {Path(path) for path in loaded}
    folders = {path.parent for path in paths if path.is_relative_to(roots.package)}
    files = {**_contents(roots, paths), **_contents(roots, set(_data(roots.package, folders)))}
    listings = {roots.name(folder): _listing(folder) for folder in folders}
    return Surroundings(files, listings, _versions(), _variables())


def changes_since(then: Surroundings, roots: Roots) -> tuple[str, ...]:
    """What is different now: names of files as ``Roots`` has them, or sentences."""
    return tuple(_changes(then, roots))


def _changes(then: Surroundings, roots: Roots) -> Iterator[str]:
    versions = _versions()
    for name in sorted({*versions, *then.versions}):
        if versions.get(name) != then.versions.get(name):
            was, now = (of.get(name, "not there") for of in (then.versions, versions))
            yield f"the package {name}: {now}, was {was}"
    variables = _variables()
    for name in sorted({*variables, *then.variables}):
        if variables.get(name) != then.variables.get(name):
            yield f"the variable {name}"
    for name, listing in then.listings.items():
        if _listing(roots.path(name)) != listing:
            yield f"the modules in {name}"
    for name, content in then.files.items():
        if not _holds(roots.path(name), content):
            yield name


def also_touched(files: Iterable[str], then: Surroundings, roots: Roots) -> frozenset[str]:
    """``files`` of tests, as test ids have them, and those that import them."""
    texts = {
        test: roots.path(name).read_text("utf-8", "replace")
        for name in then.files
        if (test := roots.test_file(name)) is not None and roots.path(name).is_file()
    }
    touched: set[str] = set()
    waiting = set(files)
    while waiting:
        one = waiting.pop()
        touched.add(one)
        word = re.compile(rf"\b{re.escape(Path(one).stem)}\b")
        waiting |= {test for test, text in texts.items() if word.search(text)} - touched
    return frozenset(touched)


def changed_while(roots: Roots, now: Surroundings, since: float) -> str:
    """A file that was written after ``since`` (seconds since the epoch), or ""."""
    late = (name for name, content in now.files.items() if content.times[1] > since * 1e9)
    return next(late, "")


def read_surroundings(path: Path) -> Surroundings | None:
    try:
        fields: dict[str, Any] = read_json(path)
        files = {
            name: Content((c["times"][0], c["times"][1], c["times"][2]), str(c["sha256"]))
            for name, c in fields["files"].items()
        }
        return Surroundings(files, fields["listings"], fields["versions"], fields["variables"])
    except (OSError, *MALFORMED):
        return None


def _holds(path: Path, content: Content) -> bool:
    times = _times(path)
    return times == content.times or (times is not None and _digest(path, times) == content.sha256)


def _contents(roots: Roots, paths: set[Path]) -> dict[str, Content]:
    found = ((path, _times(path)) for path in sorted(paths))
    return {
        roots.name(path): Content(times, _digest(path, times))
        for path, times in found
        if times is not None
    }


def _data(package: Path, folders: set[Path]) -> Iterator[Path]:
    """Files below the folders of ExecuTorch's parts (``backends/arm``, ``exir``) that are no
    modules: schemas, tables."""
    parts = {folder.relative_to(package).parts for folder in folders}
    tops = {part[: 2 if part[0] == "backends" else 1] for part in parts if part}
    for top in tops:
        for folder, inner, names in os.walk(package.joinpath(*top)):
            if top == ("backends",):
                inner.clear()
            inner[:] = [name for name in inner if name != "__pycache__"]
            yield from (Path(folder, name) for name in names if not name.endswith((".py", ".pyc")))


def _listing(folder: Path) -> str:
    try:
        names = sorted(name for name in os.listdir(folder) if name != "__pycache__")
    except OSError:
        return ""
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def _times(path: Path) -> tuple[int, int, int] | None:
    try:
        is_ = path.stat()
    except OSError:
        return None
    return is_.st_size, is_.st_mtime_ns, is_.st_ino


def _digest(path: Path, times: tuple[int, int, int]) -> str:
    content = repr(times).encode() if times[0] > _LARGE else path.read_bytes()
    return hashlib.sha256(content).hexdigest()


def _versions() -> dict[str, str]:
    found = {one.metadata["Name"].lower(): one.version for one in distributions()}
    return {**found, "python itself": f"{sys.version} on {platform.platform()}"}


def _variables() -> dict[str, str]:
    """Their sha256: a value may be secret."""
    return {
        name: hashlib.sha256(os.fsencode(value)).hexdigest()
        for name, value in os.environ.items()
        if name.startswith(_VARIABLES) and name not in _OURS
    }
