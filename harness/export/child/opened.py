"""Records which files Python opens, and which folders it lists, while a model is exported.

By audit events (PEP 578; their names are those of "Audit events table" in Python's documentation).
Not seen: files that native code opens by itself, what other processes read, and that a file was
looked for without opening it (``os.path.exists``).
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from harness.system.paths import data_root, import_root

_OPENS = {"open", "sqlite3.connect", "ctypes.dlopen"}
_LISTS = {"os.listdir", "os.scandir"}
_TEMPORARY = {"tempfile.mkdtemp", "tempfile.mkstemp"}
_PACKAGES = {"site-packages", "dist-packages"}
_KERNELS = ("/proc/", "/sys/", "/dev/")


class OpenedFiles:
    """Records from now on. A hook cannot be removed: the process has to be a fork for one model
    (``main._fork``)."""

    def __init__(self) -> None:
        self._start = os.getcwd()
        self._seen: dict[tuple[str, str], None] = {}  # absolute path, and name for the cache
        self._temporary: set[str] = set()
        self.written: set[str] = set()
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in _OPENS and event not in _LISTS and event not in _TEMPORARY:
            return
        given = "." if arguments[0] is None and event in _LISTS else arguments[0]
        if not isinstance(given, (str, bytes, os.PathLike)):  # a descriptor
            return
        name = os.fsdecode(given)
        with suppress(OSError):  # a current directory that is gone
            if event in _TEMPORARY:
                self._temporary.add(os.path.abspath(name))
            elif event in _LISTS:
                # an import looks into every folder of sys.path
                if "importlib" not in sys._getframe(1).f_code.co_filename:
                    self._add(name, os.O_RDONLY)
            elif event != "ctypes.dlopen" or os.sep in name:
                self._add(name, arguments[2] if event == "open" else os.O_RDONLY)

    def _add(self, name: str, flags: int) -> None:
        path = os.path.abspath(name)
        if flags & (os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
            self.written.add(path)
        if not flags & os.O_WRONLY:
            relative = not os.path.isabs(name) and os.getcwd() == self._start
            self._seen[path, f"./{os.path.normpath(name)}" if relative else ""] = None

    def inputs(self, root: Path, own: Path) -> Iterator[tuple[Path, str]]:
        """Every file that was opened for reading, also one that was absent, and every folder below
        ``root`` that was listed. With the name where it is relative to the directory that the
        export began in, else "".

        Without those of installed packages, of Python, of the exporter and of the kernel, temporary
        ones, what the model wrote and removed, and what is below ``own``.
        """
        for path, name in [*self._seen]:
            if os.path.isdir(path):
                counts = Path(path).is_relative_to(root)
            else:
                counts = os.path.exists(path) or path not in self.written
            temporary = any(path == made or path.startswith(f"{made}/") for made in self._temporary)
            if counts and not temporary and not is_installed(path, own):
                yield Path(path), name


def is_installed(path: str, *own: Path) -> bool:
    """Whether a file belongs to an installed package, Python, the harness, the ExecuTorch that
    exports, the kernel, or is below ``own``."""
    parts = Path(path).parts
    if not _PACKAGES.isdisjoint(parts) or "__pycache__" in parts or path.startswith(_KERNELS):
        return True
    exporter = [Path(place).parent for place in import_module("executorch").__path__]
    library = Path(sysconfig.get_path("stdlib"))
    places = [library, import_root() / "harness", data_root() / "targets", *exporter]
    return any(Path(path).is_relative_to(place) for place in (*places, *own))
