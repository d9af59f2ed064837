"""Watches what a user's code reads while it is exported.

Python tells an audit hook (PEP 578) which files it opens, which folders it lists, which processes
it starts and which hosts it asks; reads of ``os.environ`` are seen by its own class. What native
code opens by itself (a reader of weights in C++ or Rust) Python does not tell: in the folder of
the model inotify(7) does. Only what happens on behalf of the user's code counts, seen from the
Python stack: a package that is imported looks at many things that decide nothing of a model, and
what torch and ExecuTorch are is in the key by their versions.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import site
import sys
import sysconfig
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from harness.export.inputs import Inputs, Seen, seen_now, value_digest
from harness.system.inotify import Opened, opened_below
from harness.system.paths import import_root, state_dir

_LISTINGS = {"os.listdir", "os.scandir"}
_FILES = {"open", "ctypes.dlopen", "sqlite3.connect", *_LISTINGS}
_BEYOND = {
    "subprocess.Popen": "starts a process",
    "os.system": "starts a process",
    "os.posix_spawn": "starts a process",
    "os.exec": "starts a process",
    "os.fork": "starts a process",
    "socket.connect": "asks the network",
    "socket.getaddrinfo": "asks the network",
}
_IMPORTING = "<frozen importlib"
_Listener = Callable[[str, tuple[Any, ...]], None]


class Watch:
    """What was read so far, on behalf of the file of a model; nothing for a model of the wheel."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._thread = threading.get_ident()
        self._foreign = _foreign_places()
        self._theirs: dict[str, bool] = {}
        self._paths: dict[str, tuple[int, ...]] = {}
        self._made: set[str] = set()
        self._variables: dict[str, str | None] = {}
        self._set: set[str] = set()
        self._unknown = ""
        self._looking = False
        self._native = Opened()

    def inputs(self, sources: Collection[Path]) -> Inputs:
        """``sources``: what is in the key already. To be asked when the export is over."""
        if self._file is None:
            return Inputs()
        known = {str(path) for path in sources}
        seen = dict(self._sorted_out(known))
        resolved = {os.path.realpath(path) for path in (*seen, *self._made)}
        for path in self._native.read - resolved:
            if self.is_theirs(path) and not path.endswith((".py", ".pyc")):
                seen[path] = seen_now(path)
        unknown = self._unknown or self._native.trouble
        variables = tuple(sorted((n, value_digest(v)) for n, v in self._variables.items()))
        files = tuple(seen[path] for path in sorted(seen))
        return Inputs(str(self._file.parent), files, variables, unknown)

    def _sorted_out(self, known: Collection[str]) -> Iterator[tuple[str, Seen]]:
        """The files that were there before and still are, and those that were not and are not."""
        for path in _imported_by(self._file, self.is_theirs):
            self._paths.setdefault(path, _status(path))
        for path, then in self._paths.items():
            now = _status(path)
            mine = path in self._made or os.path.realpath(path) in known
            if mine or (then and not now):
                continue
            if then != now:
                self._unknown = self._unknown or f"{path} changed while it was read"
            elif now and not (os.path.isfile(path) or os.path.isdir(path)):
                self._unknown = self._unknown or f"it reads {path}, which is no file"
            else:
                yield path, seen_now(path)

    def heard(self, event: str, args: tuple[Any, ...]) -> None:
        """An audit event; called in the middle of anything, so it raises nothing."""
        if event not in _FILES and event not in _BEYOND:
            return
        if threading.get_ident() != self._thread or not self._for_the_user():
            return
        if event in _BEYOND:
            self._unknown = self._unknown or f"it {_BEYOND[event]}"
        elif isinstance(path := args[0], str | bytes | os.PathLike):
            name = os.fsdecode(path) or "."
            library = event == "ctypes.dlopen" and os.sep not in name  # the linker finds it
            import_looks = event in _LISTINGS and _importing()
            if not self.is_theirs(name) or library or import_looks:
                return
            if name.endswith(".pyc"):
                name = importlib.util.source_from_cache(name) if "__pycache__" in name else name
            if event == "open" and _makes(args[1], args[2]):
                self._made |= {name, os.path.abspath(name)}
            else:
                self._paths.setdefault(name, _status(name))

    def looked_for(self, path: object) -> None:
        """A file that was asked for with stat(2): whether it is there may decide, too."""
        if self._looking or not isinstance(path, str | bytes | os.PathLike):
            return
        self._looking = True  # which itself asks
        name = os.fsdecode(path)
        if self._concerns_us() and self.is_theirs(name) and not os.path.isdir(name):
            self._paths.setdefault(name, _status(name))
        self._looking = False

    def variable(self, name: str, value: str | None) -> None:
        if name not in self._set and self._concerns_us():
            self._variables.setdefault(name, value)

    def variable_set(self, name: str) -> None:
        self._set.add(name)

    def whole_environment(self) -> None:
        if self._concerns_us():
            self._unknown = self._unknown or "it reads all of the environment"

    def is_theirs(self, path: str) -> bool:
        """Neither Python's, nor an installed package's, nor ours."""
        known = self._theirs.get(path)
        if known is None:
            place = os.path.abspath(path)
            known = not path.startswith("<") and not place.startswith(self._foreign)
            self._theirs[path] = known
        return known

    def _concerns_us(self) -> bool:
        return threading.get_ident() == self._thread and self._for_the_user()

    def _for_the_user(self) -> bool:
        """Outwards from here to the exporter: code of the user's, with no import of a package
        between."""
        frame: FrameType | None = sys._getframe(2)
        package = False
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith(_IMPORTING):
                if package:
                    return False
            elif file.startswith(_EXPORTER):
                if not file.endswith("watch.py"):
                    return False
            elif self.is_theirs(file):
                return True
            else:
                package = True
            frame = frame.f_back
        return False

    @contextmanager
    def listening(self) -> Iterator[None]:
        if self._file is None:
            yield
            return
        listeners = _listeners()
        with (
            opened_below(self._file.parent, self._native),
            _environment_seen_by(self),
            _stat_seen_by(self),
        ):
            listeners.append(self.heard)
            try:
                yield
            finally:
                listeners.remove(self.heard)


_EXPORTER = str(Path(__file__).parent)


def _importing() -> bool:
    """Whether it is Python that looks for a module just now."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(_IMPORTING)


@cache
def _listeners() -> list[_Listener]:
    """Python does not let go of an audit hook, so there is one, for whoever listens just now."""
    listeners: list[_Listener] = []

    def hook(event: str, args: tuple[Any, ...]) -> None:
        for listener in listeners:
            listener(event, args)

    sys.addaudithook(hook)
    return listeners


@contextmanager
def _environment_seen_by(watch: Watch) -> Iterator[None]:
    """``os.environ`` is the same object meanwhile, with eyes."""
    kind = type(os.environ)

    class Watched(kind):  # type: ignore[valid-type,misc]
        def __getitem__(self, name: str) -> str:
            try:
                value: str = super().__getitem__(name)
            except KeyError:
                watch.variable(name, None)
                raise
            watch.variable(name, value)
            return value

        def __setitem__(self, name: str, value: str) -> None:
            watch.variable_set(name)
            super().__setitem__(name, value)

        def __iter__(self) -> Iterator[str]:
            watch.whole_environment()
            return iter(list(super().__iter__()))

    os.environ.__class__ = Watched
    try:
        yield
    finally:
        os.environ.__class__ = kind


@contextmanager
def _stat_seen_by(watch: Watch) -> Iterator[None]:
    """No audit event tells of ``Path.exists``."""
    original = os.stat

    def stat(path: Any, *args: Any, **kwargs: Any) -> os.stat_result:
        watch.looked_for(path)
        return original(path, *args, **kwargs)

    os.stat = stat
    try:
        yield
    finally:
        os.stat = original


def _foreign_places() -> tuple[str, ...]:
    """With a separator behind each, for ``startswith``."""
    paths = sysconfig.get_paths()
    base = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix,
            "installed_base": sys.base_prefix}  # fmt: skip
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    places = {paths[name] for name in names}
    places |= {sysconfig.get_paths(vars=base)[name] for name in names}
    places |= {*site.getsitepackages(), site.getusersitepackages()}
    places |= {str(import_root() / "harness"), str(state_dir())}
    return tuple(f"{place}{os.sep}" for place in {*places, *map(os.path.realpath, places)})


def _status(path: str) -> tuple[int, ...]:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _makes(mode: object, flags: object) -> bool:
    """Whether an ``open`` leaves nothing of what was there, or is for writing alone."""
    if isinstance(mode, str):
        return "r" not in mode and not ("a" in mode and "+" in mode)
    if not isinstance(flags, int):
        return False
    return bool(flags & (os.O_EXCL | os.O_TRUNC)) or flags & os.O_ACCMODE == os.O_WRONLY


def _imported_by(file: Path | None, theirs: Callable[[str], bool]) -> Iterator[str]:
    """Files of the user's modules that were imported before, which nobody opens again."""
    pending, done = [file], set()
    while pending:
        path = pending.pop()
        if path is None or path in done:
            continue
        done.add(path)
        for name in _names_in(path):
            origin = getattr(sys.modules.get(name), "__file__", None)
            if origin and origin.endswith(".py") and theirs(origin):
                yield origin
                pending.append(Path(origin))


def _names_in(path: Path) -> Iterator[str]:
    """Modules, and names that may be modules, of the import statements of a file."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            parts = name.split(".")
            yield from (".".join(parts[: n + 1]) for n in range(len(parts)))
