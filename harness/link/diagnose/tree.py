"""Searches a build and its sources for what else could define a symbol: archives, objects and
sources that are not on the link line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.core.errors import InfraError, MalformedFile
from harness.formats import archive as ar
from harness.formats.elf import Symbol
from harness.link.build import build_steps
from harness.link.diagnose.zephyr import ZephyrBuild, cache_entries, zephyr_build
from harness.link.failure import member_of
from harness.link.index import units_of
from harness.system.files import read_json, read_regular, text_of

_SOURCES = {".c", ".cc", ".cpp", ".cxx", ".s", ".S"}
_HEADERS = {".h", ".hh", ".hpp", ".hxx", ".inc"}
_VERSION_SCRIPT = re.compile(r"--version-script[=,](?P<file>\S+)")
_OBJECTS = {".o", ".obj", ".a"}
# These are not candidates: other people's folders, CMake's probes, archives that only other specs
# choose (newlib's spec files: nano, nosys, rdimon, and its boards).
_SKIPPED = re.compile(
    r"\.git|node_modules|__pycache__|\.venv|CMakeTmp|CMakeScratch|CompilerId\w+|CMakeFiles-\w+"
)
_OF_OTHER_SPECS = re.compile(
    r"lib(?:\w*_nano|nosys|rdi?p?mon[\w-]*|gloss[\w-]*|g|semihost|dummyhost)\.a"
)
_MOST_FILES, _MOST_BYTES = 40_000, 1 << 30  # of one search; all of Zephyr is 13,000, 200 MB
_TARGET = re.compile(r"CMakeFiles/(?P<name>[^/\s]+)\.dir/")
_WEAK = re.compile(r"\bweak\b|\w*WEAK\w*")


@dataclass(frozen=True)
class ObjectDefinition:
    """An object or an archive's member in the tree that defines a symbol."""

    path: Path
    member: str  # "libx.a(y.o)", or the file's name
    symbol: Symbol


@dataclass(frozen=True)
class SourceDefinition:
    """``compiled``: a compile command names the file; ``object``: the output of that command."""

    path: Path
    line: int
    weak: bool = False
    static: bool = False  # counts only if there is no other
    inline: bool = False
    compiled: bool = False
    object: Path | None = None


@dataclass(frozen=True)
class FileSearch:
    """``complete``: False when the limit of files or bytes ended the search."""

    files: tuple[Path, ...]
    complete: bool


@dataclass(frozen=True)
class Tree:
    """A build directory and the sources it was made from."""

    build: Path
    most_files: int = _MOST_FILES
    most_bytes: int = _MOST_BYTES

    @cached_property
    def source(self) -> Path | None:
        home = cache_entries(self.build).get("CMAKE_HOME_DIRECTORY")
        return Path(home) if home else None

    @cached_property
    def zephyr(self) -> ZephyrBuild | None:
        """More facts about the build directory, if it is one of Zephyr."""
        return zephyr_build(self.build)

    @cached_property
    def compile_commands(self) -> dict[Path, Path | None]:
        """Source to object; from compile_commands.json, else from ninja or the makefiles."""
        file = self.build / "compile_commands.json"
        try:
            return dict(_compiled(read_json(file) if file.is_file() else self._steps))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return dict(_compiled(self._steps))  # it is written by hand or half written

    @cached_property
    def _steps(self) -> list[dict[str, str]]:
        try:
            return build_steps(self.build)
        except InfraError:
            return []

    def target_of(self, file: str) -> str | None:
        """The target that makes an archive or a program, by its path or its name."""
        made = (s for s in self._steps if s["output"] and s["output"].endswith(file))
        return next((name for step in made if (name := target_in(step["command"]))), None)

    def users_of(self, library: Path) -> tuple[str, ...]:
        """The targets that link this library."""
        named = re.compile(rf"(?<![\w.-]){re.escape(library.name)}(?![\w.-])")
        links = (s["command"] for s in self._steps if " -o " in s["command"])
        users = (target_in(command) for command in links if named.search(command))
        return tuple(dict.fromkeys(filter(None, users)))

    @cached_property
    def built(self) -> FileSearch:
        return self._search([self.build], _OBJECTS)

    @cached_property
    def _prebuilt(self) -> list[Path]:
        """Archives that came with the sources; what other build directories have does not count."""
        archives = self._search([self.source] if self.source else [], {".a"}).files
        cache = "CMakeCache.txt"
        return [p for p in archives if not any((f / cache).is_file() for f in p.parents)]

    @cached_property
    def sources(self) -> FileSearch:
        """The compiled sources, and the files next to them and below the source directory."""
        roots = [] if self.source is None else [self.source]
        listed = list(self.compile_commands)
        inside = {*roots, self.build.resolve()}
        folders = dict.fromkeys(path.parent for path in listed)
        roots += [f for f in folders if not inside.intersection((f, *f.parents))]
        roots += self.zephyr.roots if self.zephyr is not None else ()
        search = self._search(roots or [self.build], _SOURCES)
        return FileSearch(tuple(dict.fromkeys([*listed, *search.files])), search.complete)

    @property
    def cut(self) -> str:
        """A sentence if a search ended at its limit; "" if it saw every file."""
        if self.built.complete and self.sources.complete:
            return ""
        return (
            f"The search ended after {self.most_files:,} files or {self.most_bytes >> 20:,} MB, so "
            "a definition may be in a file that was not read."
        )

    def _search(self, roots: Sequence[Path], suffixes: set[str]) -> FileSearch:
        """Limited by files and bytes, not by time: the answer must not depend on the load."""
        files: list[Path] = []
        room = self.most_bytes
        for root in roots:
            for directory, folders, names in os.walk(root):
                folders[:] = sorted(f for f in folders if not _SKIPPED.fullmatch(f))
                for name in sorted(names):
                    path = Path(directory, name)
                    if os.path.splitext(name)[1] not in suffixes:
                        continue
                    if not path.is_file():  # reading a FIFO would block
                        continue
                    room -= path.stat().st_size
                    if room < 0 or len(files) >= self.most_files:
                        return FileSearch(tuple(files), False)
                    files.append(path)
        return FileSearch(tuple(files), True)

    def definers(self, name: str, on_line: Iterable[Path]) -> list[ObjectDefinition]:
        """Archives and objects that define the name and are not on the link line."""
        used = {path.resolve() for path in on_line}
        definitions: list[ObjectDefinition] = []
        for path in (*self.built.files, *self._prebuilt):
            if path.resolve() not in used and not self._is_left_over(path):
                definitions += defining(path, name)
        inside = {d.path for d in definitions if d.path.suffix == ".a"}
        archived = {member_of(d.member) for d in definitions if d.path in inside}
        return [d for d in definitions if d.path in inside or d.path.name not in archived]

    def _is_left_over(self, path: Path) -> bool:
        """Whether an object is in a target's folder although no command writes it any more, because
        its source was removed from the build."""
        targets = any(p.suffix == ".dir" and p.parent.name == "CMakeFiles" for p in path.parents)
        return targets and bool(self._objects) and path.resolve() not in self._objects

    @cached_property
    def _objects(self) -> frozenset[Path]:
        return frozenset(o.resolve() for o in self.compile_commands.values() if o is not None)

    def version_script(self, library: str) -> str:
        """The version script that the link of a shared library has; "" if none is seen."""
        links = (s["command"] for s in self._steps if (s["output"] or "").endswith(library))
        scripts = (m["file"] for text in links for m in _VERSION_SCRIPT.finditer(text))
        return next(scripts, "")

    def in_headers(self, name: str) -> list[SourceDefinition]:
        """Headers of the project that seem to define a function or variable of this name."""
        roots = dict.fromkeys(
            [self.source or self.build, *(p.parent for p in self.compile_commands)]
        )
        found = (_definition(path, name) for path in self._search(list(roots), _HEADERS).files)
        return [each for each in found if each is not None]

    def in_sources(self, name: str) -> list[SourceDefinition]:
        """Source files that seem to define a function or variable of this name."""
        made = self.compile_commands
        found = (_definition(path, name) for path in self.sources.files)
        places = [(each, each.path.resolve()) for each in found if each is not None]
        return [replace(d, compiled=p in made, object=made.get(p)) for d, p in places]


_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(?P<word>if\w*|else|elif\w*|endif)\b[ \t]*(?P<rest>[^\n/]*)")


def conditions_around(definition: SourceDefinition) -> list[tuple[str, int]]:
    """The `#if` and `#else` lines around a definition, with their numbers, the innermost first."""
    blocks: list[tuple[str, int]] = []
    lines = text_of(definition.path).splitlines()
    for number, line in enumerate(lines[: definition.line], 1):
        if (directive := _DIRECTIVE.match(line)) is None:
            continue
        word, rest = directive["word"], directive["rest"].strip()
        if word.startswith("e"):  # the block before it ends
            blocks = blocks[:-1]
        if word != "endif":
            blocks.append((f"#{word} {rest}".strip(), number))
    return blocks[::-1]


def target_in(text: str) -> str | None:
    """The first target whose folder of objects (CMake makes one per target) the text names."""
    target = _TARGET.search(text)
    return target["name"] if target else None


def _compiled(entries: Any) -> Iterator[tuple[Path, Path | None]]:
    for entry in entries:
        directory = Path(entry["directory"])
        source = (directory / entry["file"]).resolve()
        if source.suffix in _SOURCES:
            words = entry.get("command", " ".join(entry.get("arguments", ()))).split()
            output = words[words.index("-o") + 1] if "-o" in words[:-1] else None
            yield source, directory / output if output else None


def defining(path: Path, name: str) -> list[ObjectDefinition]:
    """The objects of a file that define the name with external linkage."""
    try:
        if path.suffix == ".a" and (index := ar.index(path)) and name not in index:
            return []
        if name.encode() not in read_regular(path):
            return []
        units = units_of(path, path.name)
    except (OSError, MalformedFile):
        return []
    return [
        ObjectDefinition(path, unit.name, symbol)
        for unit in units
        for symbol in unit.globals
        if symbol.name == name and symbol.defined
    ]


def toolchain_archives(
    search: Sequence[Path], used: Iterable[Path], name: str, library: str = ""
) -> list[Path]:
    """The archives in the linker's search path that define the name. ``library``: a pattern for
    their file names; without one those that only other specs choose are left out."""
    seen = {path.resolve() for path in used}
    folders = dict.fromkeys(path.resolve() for path in search if path.is_dir())
    archives = (path for folder in folders for path in sorted(folder.glob("lib*.a")))
    return [
        path
        for path in archives
        if (re.fullmatch(library, path.name) if library else not _OF_OTHER_SPECS.match(path.name))
        and path.resolve() not in seen
        and defining(path, name)
    ]


def _definition(path: Path, name: str) -> SourceDefinition | None:
    """The definition of ``name`` in a source file."""
    try:
        raw = read_regular(path)
    except OSError:
        return None
    if name.encode() not in raw:
        return None
    text = raw.decode("utf-8", "replace")
    if path.suffix in (".s", ".S"):
        label = re.search(rf"^\s*{re.escape(name)}:", text, re.MULTILINE)
        weak = re.search(rf"\.weak\s+{re.escape(name)}\b", text)
        line = text.count("\n", 0, label.start()) + 1 if label else 0
        return SourceDefinition(path, line, weak is not None) if label else None
    text = _NO_CODE.sub(_blank, text)
    static = None
    for match in re.finditer(rf"(?<![\w.])(?<!->){re.escape(name)}(?!\w)", text):
        line = text.count("\n", 0, match.start()) + 1
        if (head := _defined_at(text, match)) is not None:
            is_weak = _WEAK.search(head) is not None
            return SourceDefinition(path, line, is_weak, inline="inline" in head)
        begin = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        if static is None and _STATIC.match(begin) and _PARAMETERS.match(text, match.end()):
            static = SourceDefinition(path, line, static=True)
    return static


# Comments, directives and strings; a // in a string begins no comment.
_NO_CODE = re.compile(
    r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*|^[ \t]*\#(?:[^\\\n/]|\\.|/(?!\*))*',
    re.DOTALL | re.MULTILINE,
)


def _blank(match: re.Match[str]) -> str:
    """An empty string for a string; for anything else only the line ends of the match."""
    return '""' if match[0][0] == '"' else "\n" * match[0].count("\n")


_BEFORE = 4000  # characters of a declaration before its name that are looked at
_PARAMETERS = re.compile(r"\s*\([^;{}]*\)\s*(?:\b\w+\b\s*(?:\([^;{})]*\)\s*)?)*\{")
_STATIC = re.compile(r"static\s[\w\s*]*\Z")
_VALUE = re.compile(r"\s*(?:\[[^\]]*\]\s*)*[=;]")
_TYPE = re.compile(r"^[A-Za-z_][\w\s*:<>,]*\Z", re.MULTILINE)
_NO_DEFINITION = re.compile(r"\b(?:return|if|while|extern|typedef|static)\b|=\s*$")


def _defined_at(text: str, name: re.Match[str]) -> str | None:
    """The head of the definition if the name is that of a function or variable defined there, else
    None. The patterns are anchored, because the files are long and not always C."""
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
