"""The anatomy of an ELF: every allocated byte by region, kind, section, object file and symbol.

Paths are (region, kind, section, object file, scopes..., name). What a section says to be loaded
elsewhere than it runs (initialised data) takes memory twice; its stored copy has the kind "load
image". The total is that of all allocated sections plus these copies.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UsageError
from harness.footprint import anatomy as names
from harness.footprint.anatomy import Anatomy, Tally
from harness.footprint.elf import LOAD_IMAGE, Placed, Region, placed
from harness.formats.dwarf_units import Units, read_units
from harness.formats.elf_file import ElfFile, Section, Symbol, read_elf
from harness.formats.section_map import FILL, LinkMap, Piece, read_map
from harness.formats.symbol_names import demangle, scopes
from harness.system.files import write_whole
from harness.system.paths import cache_dir

_VERSION = "2"  # of what is computed here; part of the cache's key
PADDING = "padding"
_LARGEST_PADDING = 64  # bytes between input sections that alignment explains
_KNOWN_SECTIONS = {
    ".ARM.exidx": "unwind index", ".ARM.extab": "unwind tables", ".note.gnu.build-id": "build id",
    ".vectors": "vector table", ".init_array": "constructors", ".fini_array": "destructors",
    ".eh_frame": "unwind tables", ".got": "global offset table", ".interp": "interpreter",
    ".dynamic": "dynamic linking", ".dynsym": "dynamic symbols", ".dynstr": "dynamic symbols",
    ".rela.dyn": "relocations", ".rela.plt": "relocations", ".plt": "procedure linkage",
    ".gnu.hash": "dynamic symbols", ".gnu.version": "dynamic symbols",
    ".gnu.version_r": "dynamic symbols", ".eh_frame_hdr": "unwind index",
    ".note.ABI-tag": "notes", ".note.gnu.property": "notes", ".plt.got": "procedure linkage",
    ".preinit_array": "constructors", ".gcc_except_table": "unwind tables",
    ".stack": "stack", ".heap": "heap",
}  # fmt: skip


def anatomy(
    path: Path, view: memoryview, regions: Sequence[Region], linker_map: Path | None
) -> Anatomy:
    """Computed once per content and kept. Without ``regions`` the map's own are taken."""
    cached = cache_dir("size") / f"{_key(view, regions, linker_map)}.json"
    try:
        return names.from_fields(json.loads(cached.read_text()))
    except (OSError, ValueError, KeyError):
        result = _compute(path, view, regions, linker_map)
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
        write_whole(cached, json.dumps(result.to_fields()))
    except OSError:
        pass  # the result does not depend on its being kept
    return result


def _key(view: memoryview, regions: Sequence[Region], linker_map: Path | None) -> str:
    digest = hashlib.sha256(f"{_VERSION} {list(regions)}".encode())
    digest.update(view)
    if linker_map is not None and linker_map.is_file():
        digest.update(linker_map.read_bytes())
    return digest.hexdigest()[:32]


def _compute(
    path: Path, view: memoryview, regions: Sequence[Region], linker_map: Path | None
) -> Anatomy:
    elf = read_elf(view)
    link_map = None if linker_map is None else read_map(linker_map)
    notes = []
    units = Units((), ())
    if link_map is None:
        units, note = read_units(path)
        notes += [note] if note else []
    else:
        _check_same_link(elf, link_map, linker_map)
        regions = regions or [Region(n, *place) for n, place in link_map.memory.items()]
    pieces = link_map.dropped if link_map else ()
    plain, note = demangle([s.name for s in elf.symbols] + [_subject(p.section) for p in pieces])
    notes += [note] if note else []
    sections = _Sections(elf, link_map, units, plain)
    tally = Tally()
    for place in placed(elf, regions):
        sections.account(place, tally)
    parts = tally.parts()
    dropped = Tally()
    for piece in pieces:
        subject = _subject(piece.section)
        dropped.add((*_file_path(piece.file), *scopes(plain.get(subject, subject))), piece.size)
    total = sum(p.bytes for p in parts)
    return Anatomy("elf", total, parts, (), dropped.parts(), tuple(notes))


def _check_same_link(elf: ElfFile, link_map: LinkMap, path: Path | None) -> None:
    for section in elf.sections:
        said = link_map.outputs.get(section.name)
        if section.allocated and said is not None and said != (section.address, section.size):
            raise UsageError(
                f"{path} is the map of another link: it has {section.name} at 0x{said[0]:x} with "
                f"{said[1]} bytes, the ELF at 0x{section.address:x} with {section.size}",
                section=section.name,
            )


def _subject(section: str) -> str:
    """``.text._ZN3fooEv`` to ``_ZN3fooEv``; a section without such a name stays as it is."""
    for prefix in (".text.unlikely.", ".text.startup.", ".text.hot.", ".text.", ".rodata.",
                   ".data.rel.ro.", ".data.", ".bss.", ".init_array."):  # fmt: skip
        rest = section.removeprefix(prefix)
        if rest != section and rest and not rest.startswith(("str", "cst")):
            return rest
    return section


@dataclass(frozen=True)
class _Stretch:
    start: int
    end: int
    name: tuple[str, ...]
    file: str


class _Sections:
    def __init__(
        self, elf: ElfFile, link_map: LinkMap | None, units: Units, plain: dict[str, str]
    ) -> None:
        self._map, self._units, self._plain = link_map, units, plain
        self._symbols = sorted(elf.symbols, key=lambda s: (s.address, s.is_label, -s.size))

    def account(self, place: Placed, tally: Tally) -> None:
        section = place.section
        where = (place.region, section.kind, section.name)
        for stretch in self._stretches(section):
            size = stretch.end - stretch.start
            tally.add((*where, *_file_path(stretch.file), *stretch.name), size)
        if place.load_region is not None:
            tally.add((place.load_region, LOAD_IMAGE, section.name), section.size)

    def _stretches(self, section: Section) -> Iterator[_Stretch]:
        """All of a section, in order and without overlap."""
        end = section.address + section.size
        at = section.address
        for piece in self._pieces(section):
            low, high = max(piece.address, at), min(piece.end, end)
            if low > at:
                yield _between(at, low)
            if high > low:
                yield from self._inside(piece, low, high)
            at = max(at, high)
        if at < end:
            yield _between(at, end)

    def _pieces(self, section: Section) -> list[Piece]:
        if self._map is not None:
            return self._map.within(section.address, section.address + section.size)
        return [Piece(section.name, section.address, section.size, "")]

    def _inside(self, piece: Piece, low: int, high: int) -> Iterator[_Stretch]:
        """One input section: its symbols, and what is between them."""
        if piece.section == FILL:
            stack = high - low > _LARGEST_PADDING
            yield _Stretch(low, high, ("reserved by the linker script",) if stack else ("fill",),
                           "(linker script)" if stack else PADDING)  # fmt: skip
            return
        at = low
        for symbol, end in self._symbols_within(low, high):
            if symbol.address > at:
                yield self._nameless(piece, at, symbol.address, after_symbol=at > low)
            if end > max(at, symbol.address):
                start = max(at, symbol.address)
                name = scopes(self._plain.get(symbol.name, symbol.name))
                yield _Stretch(start, end, name, self._file(piece, symbol))
                at = end
        if at < high:
            yield self._nameless(piece, at, high, after_symbol=at > low)

    def _symbols_within(self, low: int, high: int) -> Iterator[tuple[Symbol, int]]:
        """Symbols by address with their ends. A label reaches to the next symbol."""
        first = bisect_left(self._symbols, low, key=lambda s: s.address)
        chosen: list[Symbol] = []
        for symbol in self._symbols[first:]:
            if symbol.address >= high:
                break
            if not chosen or chosen[-1].address != symbol.address:
                chosen.append(symbol)
        for index, symbol in enumerate(chosen):
            following = chosen[index + 1].address if index + 1 < len(chosen) else high
            yield symbol, following if symbol.is_label else min(symbol.address + symbol.size, high)

    def _file(self, piece: Piece, symbol: Symbol) -> str:
        return piece.file or self._units.file(symbol.address) or symbol.file

    def _nameless(self, piece: Piece, low: int, high: int, *, after_symbol: bool) -> _Stretch:
        subject = _subject(piece.section)
        known = next((k for k in _KNOWN_SECTIONS if f"{piece.section}.".startswith(f"{k}.")), None)
        if known is not None or piece.section.startswith(".pool"):
            name: tuple[str, ...] = (_KNOWN_SECTIONS[known] if known else piece.section,)
        elif high - low < 16 and after_symbol:
            name = (PADDING, "alignment")
        elif ".str" in piece.section:
            name = ("string literals",)
        elif ".cst" in piece.section:
            name = ("merged constants",)
        elif subject != piece.section:
            name = scopes(self._plain.get(subject, subject))
        else:
            name = (names.NO_SYMBOL,)
        return _Stretch(low, high, name, piece.file)


def _file_path(file: str) -> tuple[str, ...]:
    """``libx.a(y.o)`` to its archive and member, ``y.o`` to itself."""
    archive, parenthesis, member = file.partition("(")
    if archive and parenthesis:
        return archive, member.removesuffix(")")
    return (file or "(unknown file)",)


def _between(low: int, high: int) -> _Stretch:
    if high - low <= _LARGEST_PADDING:
        return _Stretch(low, high, ("between input sections",), PADDING)
    return _Stretch(low, high, (names.UNKNOWN,), "")
