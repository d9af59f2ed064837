"""Who else could define a symbol: archives, objects and sources that are not on the link line."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.formats import archive as ar
from harness.formats.damage import DamagedFile
from harness.formats.elf import Symbol
from harness.link.failure import member_of
from harness.link.line.fileapi import CMakeTarget, read_targets
from harness.link.model.index import units_of
from harness.link.why.zephyr import ZephyrBuild, zephyr_build

_SOURCES = {".c", ".cc", ".cpp", ".cxx", ".s", ".S"}
_OBJECTS = {".o", ".obj", ".a"}
_SKIPPED = {".git", "node_modules", "__pycache__", ".venv", "CMakeTmp"}
_MOST_FILES = 40_000
_SECONDS = 2.5
_WEAK = re.compile(r"\bweak\b|\w*WEAK\w*")


@dataclass(frozen=True)
class Found:
    """Something in the tree that defines a symbol."""

    path: Path
    member: str  # "libx.a(y.o)", or the file's name
    symbol: Symbol


@dataclass(frozen=True)
class SourceFound:
    path: Path
    line: int
    weak: bool
    compiled: bool  # a compile command names it
    object: Path | None  # what that command writes


@dataclass(frozen=True)
class Tree:
    """A build directory and the sources it was made from."""

    build: Path
    also: tuple[Path, ...] = field(default=())

    @cached_property
    def source(self) -> Path | None:
        cache = self.build / "CMakeCache.txt"
        if not cache.is_file():
            return None
        found = re.search(r"^CMAKE_HOME_DIRECTORY:\w+=(.+)$", cache.read_text("utf-8", "replace"),
                          re.MULTILINE)  # fmt: skip
        return Path(found[1]) if found else None

    @cached_property
    def zephyr(self) -> ZephyrBuild | None:
        """What else is known of a build directory of Zephyr's."""
        return zephyr_build(self.build)

    @cached_property
    def compile_commands(self) -> dict[Path, Path | None]:
        """Source to object; from compile_commands.json, else from ninja's own data base, and
        from CMake's File API."""
        try:
            found = dict(_compiled(self._entries()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            found = {}  # written by hand, or half written: there are other ways to know
        for target in self.targets:
            for source in target.sources:
                if source.suffix in _SOURCES:
                    found.setdefault(source.resolve(), target.object_of(source))
        return found

    @cached_property
    def targets(self) -> tuple[CMakeTarget, ...]:
        """What CMake's File API says; often nothing."""
        return read_targets(self.build)

    def target_of_file(self, file: str) -> str | None:
        """The target that makes an archive or a program, given as a path or a name of a file;
        or that compiles a source."""
        path = Path(file)
        for target in self.targets:
            if any(self.build / path == made or file == made.name for made in target.artifacts):
                return target.name
        for target in self.targets:
            if path in target.sources or path.resolve() in target.sources:
                return target.name
        return None

    def _entries(self) -> Any:
        file = self.build / "compile_commands.json"
        return json.loads(file.read_text()) if file.is_file() else self._ninja_entries()

    def _ninja_entries(self) -> list[dict[str, str]]:
        import shutil
        import subprocess

        ninja = shutil.which("ninja")
        if ninja is None or not (self.build / "build.ninja").is_file():
            return []
        done = subprocess.run([ninja, "-C", str(self.build), "-t", "compdb"], capture_output=True,
                              text=True, timeout=60, check=False)  # fmt: skip
        start = done.stdout.find("[")
        return [] if done.returncode or start < 0 else list(json.loads(done.stdout[start:]))

    def program(self, on_line: Iterable[Path]) -> str | None:
        """The target that is linked from these files, by the folder of its own objects."""
        folders = {folder for path in on_line for folder in path.parents}
        linked = (t for t in self.targets if t.links and t.objects in folders)
        return next((target.name for target in linked), None)

    def users_of(self, library: Path) -> tuple[str, ...]:
        """The targets that link this library."""
        return tuple(
            target.name
            for target in self.targets
            if any(Path(text).name == library.name for text in target.libraries())
        )

    @cached_property
    def built(self) -> tuple[Path, ...]:
        return tuple(_files([self.build, *self.also], _OBJECTS))

    @cached_property
    def sources(self) -> tuple[Path, ...]:
        """Those that are compiled, and those that stand beside them and below the source."""
        roots = [r for r in (self.source, *self.also) if r is not None]
        listed = list(self.compile_commands)
        inside = {*roots, self.build.resolve()}
        folders = dict.fromkeys(path.parent for path in listed)
        roots += [f for f in folders if not inside.intersection((f, *f.parents))]
        roots += self.zephyr.roots if self.zephyr is not None else ()
        return tuple(dict.fromkeys([*listed, *_files(roots or [self.build], _SOURCES)]))

    def definers(self, name: str, on_line: Iterable[Path]) -> list[Found]:
        """Archives and objects that define the name and are not on the link line."""
        used = {path.resolve() for path in on_line}
        found = []
        for path in self.built:
            if path.resolve() not in used and not self._is_left_over(path):
                found += defining(path, name)
        inside = {f.path for f in found if f.path.suffix == ".a"}
        archived = {member_of(f.member) for f in found if f.path in inside}
        return [f for f in found if f.path in inside or f.path.name not in archived]

    def _is_left_over(self, path: Path) -> bool:
        """An object in a target's folder that nothing writes any more: its source was taken out
        of the build."""
        targets = any(p.suffix == ".dir" and p.parent.name == "CMakeFiles" for p in path.parents)
        return targets and bool(self._objects) and path.resolve() not in self._objects

    @cached_property
    def _objects(self) -> frozenset[Path]:
        return frozenset(o.resolve() for o in self.compile_commands.values() if o is not None)

    def in_sources(self, name: str) -> list[SourceFound]:
        """Source files that seem to define a function or variable of this name."""
        found = []
        deadline = time.monotonic() + _SECONDS
        for path in self.sources:
            if time.monotonic() > deadline:
                break
            spot = _definition(path, name)
            if spot is not None:
                compiled = path.resolve() in self.compile_commands
                found.append(
                    SourceFound(path, spot[0], spot[1], compiled,
                                self.compile_commands.get(path.resolve()))
                )  # fmt: skip
        return found


def _compiled(entries: Any) -> Iterator[tuple[Path, Path | None]]:
    """Source and object of each entry of a compilation database."""
    for entry in entries:
        directory = Path(entry["directory"])
        source = (directory / entry["file"]).resolve()
        if source.suffix in _SOURCES:
            words = entry.get("command", " ".join(entry.get("arguments", ()))).split()
            output = words[words.index("-o") + 1] if "-o" in words[:-1] else None
            yield source, directory / output if output else None


def defining(path: Path, name: str) -> list[Found]:
    """The objects of a file that define the name for others to use."""
    try:
        if path.suffix == ".a" and (index := ar.index(path)) and name not in index:
            return []
        if name.encode() not in path.read_bytes():
            return []
        units, _ = units_of(path, path.name)
    except (OSError, DamagedFile):
        return []
    return [
        Found(path, unit.name, symbol)
        for unit in units
        for symbol in unit.globals
        if symbol.name == name and symbol.defined
    ]


def toolchain_archives(search: Sequence[Path], used: Iterable[Path], name: str) -> Path | None:
    """An archive in the linker's search path that defines the name."""
    seen = {path.resolve() for path in used}
    for directory in dict.fromkeys(path.resolve() for path in search if path.is_dir()):
        for path in sorted(directory.glob("lib*.a")):
            if path.resolve() not in seen and name in _index(path):
                return path
    return None


def _index(path: Path) -> tuple[str, ...]:
    """What an archive says that it defines; nothing when it cannot be read."""
    try:
        return ar.index(path)
    except (OSError, DamagedFile):
        return ()


def _definition(path: Path, name: str) -> tuple[int, bool] | None:
    """Line, and whether it is weak, of a definition of ``name`` in a source file."""
    try:
        raw = path.read_bytes()
    except OSError:
        return None
    if name.encode() not in raw:
        return None
    text = raw.decode("utf-8", "replace")
    if path.suffix in (".s", ".S"):
        label = re.search(rf"^\s*{re.escape(name)}:", text, re.MULTILINE)
        weak = re.search(rf"\.weak\s+{re.escape(name)}\b", text)
        return (text.count("\n", 0, label.start()) + 1, bool(weak)) if label else None
    text = _NO_CODE.sub(_blank, text)
    for match in re.finditer(rf"(?<![\w.])(?<!->){re.escape(name)}(?!\w)", text):
        if (said := _defined_at(text, match)) is not None:
            return text.count("\n", 0, match.start()) + 1, bool(_WEAK.search(said))
    return None


# Comments, directives and strings; a // in a string begins no comment.
_NO_CODE = re.compile(
    r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*|^[ \t]*\#(?:[^\\\n/]|\\.|/(?!\*))*',
    re.DOTALL | re.MULTILINE,
)


def _blank(match: re.Match[str]) -> str:
    """The lines of a match, empty, and an empty string for one."""
    return '""' if match[0][0] == '"' else "\n" * match[0].count("\n")


_BEFORE = 4000  # characters of a declaration before its name that are looked at
_PARAMETERS = re.compile(r"\s*\([^;{}]*\)\s*(?:\b\w+\b\s*(?:\([^;{})]*\)\s*)?)*\{")
_VALUE = re.compile(r"\s*(?:\[[^\]]*\]\s*)*[=;]")
_TYPE = re.compile(r"^[A-Za-z_][\w\s*:<>,]*\Z", re.MULTILINE)
_NO_DEFINITION = re.compile(r"\b(?:return|if|while|extern|typedef|static)\b|=\s*$")


def _defined_at(text: str, name: re.Match[str]) -> str | None:
    """The head of the function or variable that is defined where its name stands, else None. Each
    pattern is anchored: sources of others are long, and not always C."""
    before = text[max(0, name.start() - _BEFORE) : name.start()]
    head = before[max(before.rfind(mark) for mark in ";{}#") + 1 :]
    function = _PARAMETERS.match(text, name.end())
    if function is not None:
        taken = not _NO_DEFINITION.search(head) or "extern" in head
        return head + function[0] if taken else None
    declared = _TYPE.search(head) if _VALUE.match(text, name.end()) else None
    if declared is None or _NO_DEFINITION.search(declared[0]):
        return None
    return declared[0]


def _files(roots: Sequence[Path], suffixes: set[str]) -> Iterator[Path]:
    count, deadline = 0, time.monotonic() + _SECONDS
    for root in roots:
        for directory, folders, names in os.walk(root):
            folders[:] = sorted(f for f in folders if f not in _SKIPPED)
            for name in sorted(names):
                path = Path(directory, name)
                if os.path.splitext(name)[1] in suffixes and path.is_file():  # no FIFO
                    yield path
                    count += 1
            if count > _MOST_FILES or time.monotonic() > deadline:
                return
