"""Reads GNU ld's map file: regions, and where input sections went.

It has dropped sections, too. Grammar as printed by binutils 2.35 to 2.42 (``ld/ldlang.c``): output
sections start in column 0, input sections in column 1; a long name has a line of its own, before
its numbers."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness.core.errors import UsageError
from harness.system.files import read_regular

FILL = "*fill*"
_MOST_BYTES = 64 << 20  # parsed, it takes several times as much
_HEX = r"0x[0-9a-fA-F]+"
_NUMBERS = re.compile(rf"^\s+({_HEX})\s+({_HEX})(?:\s+(.*))?$")
_LINE = re.compile(rf"^ ?(\S+)(?:\s+({_HEX})\s+({_HEX})(?:\s+(.*))?)?$")
_MEMORY = re.compile(rf"^(\S+)\s+({_HEX})\s+({_HEX})(?:\s+(\S+))?")
_LOAD = re.compile(rf"load address ({_HEX})$")
_DISCARDED, _CONFIGURATION = "Discarded input sections", "Memory Configuration"
_SCRIPT = "Linker script and memory map"
# Their addresses start at 0 and mean nothing.
_NOT_LOADED = (".debug", ".comment", ".ARM.attributes")
_MOST_CONTRIBUTORS = 5


@dataclass(frozen=True)
class MapRegion:
    """A memory of the linker script: ``[origin, origin + size)``, in bytes.

    ``writable``: unless its attributes say that it is read-only."""

    name: str
    origin: int
    size: int
    writable: bool = True

    def can_take_from(self, full: MapRegion) -> bool:
        apart = self.origin >= full.origin + full.size or full.origin >= self.origin + self.size
        return apart and (self.writable or not full.writable)


@dataclass(frozen=True)
class InputSection:
    """Where an input section is. ``file`` is as printed, "/a/libx.a(y.o)"; a fill has none."""

    section: str
    address: int
    size: int
    file: str

    @property
    def end(self) -> int:
        return self.address + self.size

    @property
    def short_file(self) -> str:
        """``/a/b/libx.a(y.o)`` to ``libx.a(y.o)``."""
        archive, parenthesis, member = self.file.partition("(")
        return archive.rpartition("/")[2] + parenthesis + member.rpartition("/")[2]


@dataclass(frozen=True)
class OutputSection:
    """``load``: where its content is stored, if not at ``address``."""

    name: str
    address: int
    size: int
    load: int | None
    inputs: tuple[InputSection, ...]

    @property
    def addresses(self) -> list[int]:
        return [self.address] + ([] if self.load is None else [self.load])


@dataclass(frozen=True)
class LinkMap:
    regions: tuple[MapRegion, ...]
    sections: tuple[OutputSection, ...]
    dropped: tuple[InputSection, ...]

    @cached_property
    def pieces(self) -> tuple[InputSection, ...]:
        """The input sections that take memory, by address."""
        loaded = (s for s in self.sections if not s.name.startswith(_NOT_LOADED))
        return tuple(sorted((p for s in loaded for p in s.inputs), key=lambda p: p.address))

    def within(self, start: int, end: int) -> list[InputSection]:
        first = bisect_left(self.pieces, start, key=lambda p: p.address)
        return list(self.pieces[first : bisect_left(self.pieces, end, key=lambda p: p.address)])

    def region_of(self, address: int) -> MapRegion | None:
        """Return the region with the highest origin below, also for bytes beyond its end."""
        below = [r for r in self.regions if r.origin <= address]
        return max(below, key=lambda r: r.origin, default=None)

    def in_region(self, name: str) -> list[OutputSection]:
        """Sections that take room in the region, at run time or as the image of initialised data.

        Regions with one origin are one memory under two names."""
        origins = {r.origin for r in self.regions if r.name == name}
        return [
            section
            for section in self.occupying
            if origins & {r.origin for r in map(self.region_of, section.addresses) if r}
        ]

    @property
    def occupying(self) -> list[OutputSection]:
        """Output sections with content that is loaded; notes take too little to matter."""
        ignored = (*_NOT_LOADED, ".note")
        return [s for s in self.sections if s.size and not s.name.startswith(ignored)]

    def room_beside(self, name: str) -> list[tuple[MapRegion, int]]:
        """Return the other memories that can take the contents, with free bytes, most first."""
        full = next((r for r in self.regions if r.name == name), None)
        free = {
            region: region.size - sum(s.size for s in self.in_region(region.name))
            for region in self.regions
            if full is None or region.can_take_from(full)
        }
        return sorted(((r, n) for r, n in free.items() if n > 0), key=lambda row: -row[1])


def read_map(path: Path) -> LinkMap:
    """Read a map. Raises UsageError for a file that cannot be read or is not GNU ld's."""
    try:
        text = read_regular(path, _MOST_BYTES).decode(errors="replace").replace("\r\n", "\n")
    except OSError as error:
        raise UsageError(f"cannot read the linker map {path}: {error.strerror}") from error
    if not any(line.startswith(_SCRIPT) for line in text.splitlines()):
        raise UsageError(f"{path} is not a map of GNU ld: it has no {_SCRIPT!r}", path=str(path))
    return parse_map(text)


def parse_map(text: str) -> LinkMap:
    """Parse a map; that of a failed link may be truncated anywhere."""
    reader = _MapParser()
    for line in text.splitlines():
        reader.take(line)
    sections = (OutputSection(*place, tuple(inputs)) for place, inputs in reader.sections)
    return LinkMap(tuple(reader.regions), tuple(sections), tuple(reader.dropped))


class _MapParser:
    def __init__(self) -> None:
        self.regions: list[MapRegion] = []
        self.sections: list[tuple[tuple[str, int, int, int | None], list[InputSection]]] = []
        self.dropped: list[InputSection] = []
        self._chapter = ""
        self._pending: tuple[bool, str] | None = None  # (is an output section, name)

    def take(self, line: str) -> None:
        for chapter in (_DISCARDED, _CONFIGURATION, _SCRIPT):
            if line.startswith(chapter):
                self._chapter, self._pending = chapter, None
                return
        if self._chapter == _CONFIGURATION:
            if (row := _MEMORY.match(line)) and row[1] != "*default*":
                writable = row[4] is None or "w" in row[4].lower()
                self.regions.append(MapRegion(row[1], int(row[2], 16), int(row[3], 16), writable))
        elif self._chapter:
            self._section_line(line)

    def _section_line(self, line: str) -> None:
        pending, self._pending = self._pending, None
        if pending is not None and (numbers := _NUMBERS.match(line)):
            self._record(*pending, numbers[1], numbers[2], numbers[3] or "")
            return
        if not line or line.startswith(("  ", " *(", "LOAD ", "OUTPUT(")):
            return
        match = _LINE.match(line)
        if not match:
            return
        is_output = not line.startswith(" ")
        if match[2] is None:
            self._pending = (is_output, match[1])
        else:
            self._record(is_output, match[1], match[2], match[3], match[4] or "")

    def _record(self, is_output: bool, name: str, address: str, size: str, rest: str) -> None:
        start, length = int(address, 16), int(size, 16)
        if is_output:
            load = _LOAD.match(rest)
            self.sections.append(((name, start, length, int(load[1], 16) if load else None), []))
        elif length and self._chapter == _DISCARDED:
            self.dropped.append(InputSection(name, start, length, rest.strip()))
        elif length and self.sections:
            self.sections[-1][1].append(InputSection(name, start, length, rest.strip()))


@dataclass(frozen=True)
class Contributor:
    """A piece of a memory region that overflowed."""

    section: str
    file: str
    bytes: int
    output_section: str


@dataclass(frozen=True)
class Orphan:
    """An output section that no linker script names, and where the linker put it."""

    section: str
    bytes: int
    region: str | None
    load_region: str | None
    files: tuple[str, ...]


def contributors(link_map: LinkMap, region: str) -> tuple[Contributor, ...]:
    """Return the largest pieces in a region, the largest first."""
    pieces = [
        Contributor(p.section, p.file, p.size, section.name)
        for section in link_map.in_region(region)
        for p in section.inputs
        if p.file
    ]
    return tuple(sorted(pieces, key=lambda p: -p.bytes)[:_MOST_CONTRIBUTORS])


def orphans(link_map: LinkMap, scripts: Sequence[str]) -> Iterator[Orphan]:
    """Output sections that no linker script names."""
    text = "\n".join(re.sub(r"/\*.*?\*/", "", s, flags=re.DOTALL) for s in scripts)
    for section in link_map.occupying:
        if not re.search(rf"(?<![\w.]){re.escape(section.name)}(?![\w.])", text):
            regions = [link_map.region_of(address) for address in section.addresses]
            region, load, *_ = *(r.name if r else None for r in regions), None
            files = tuple(sorted({p.file for p in section.inputs if p.file}))
            yield Orphan(section.name, section.size, region, load, files)
