"""The anatomy of an ELF: every allocated byte by region, kind, section, object file and symbol.

Paths are (region, kind, section, object file, scopes..., name). A section that runs at another
address than it is stored (initialised data) takes memory twice; its stored copy has the kind
"load image". The total counts all allocated sections and these copies.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.config.target import Region
from harness.core.errors import InfraError, MalformedFile, UsageError
from harness.core.tables import read_table
from harness.formats.demangle import demangle, demangled, scopes
from harness.formats.elf import (
    SHT_NOBITS,
    STB_LOCAL,
    STT_FILE,
    STT_FUNC,
    STT_NOTYPE,
    STT_OBJECT,
    ElfFile,
    Section,
    read_elf,
)
from harness.formats.linker_map import FILL, InputSection, LinkMap, MapRegion, read_map
from harness.size import anatomy as names
from harness.size.anatomy import Anatomy, Part, Tally

NO_REGION = "outside every region"
LOAD_IMAGE = "load image"  # the kind of a section's stored copy
Memory = Region | MapRegion  # a region of a target, or of a linker script
PADDING = "padding"
_LARGEST_PADDING = 64  # bytes between input sections that alignment explains
_NAMED = re.compile(
    r"\.(?:text(?:\.(?:unlikely|startup|hot))?|rodata|data(?:\.rel\.ro)?|bss|init_array)"
    r"\.((?!str|cst).+)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Placed:
    """An allocated section, the region it runs in, and that of its stored copy if it has one."""

    section: Section
    region: str
    load_region: str | None


def placed(elf: ElfFile, regions: Sequence[Memory]) -> Iterator[Placed]:
    """Every allocated section, in the file's order.

    Sections with SHF_ALLOC occupy memory, SHT_NOBITS ones without being in the file (System V
    ABI, "Sections"). A segment that is stored elsewhere than it runs takes memory twice
    ("Program Loading": ``p_paddr`` and ``p_vaddr``).
    """
    for section in elf.sections:
        if section.allocated:
            load = _load_address(elf, section)
            elsewhere = None if load is None else _region(load, regions)
            yield Placed(section, _region(section.address, regions), elsewhere)


def section_parts(path: Path, regions: Sequence[Memory]) -> tuple[Part, ...]:
    """Bytes by region, kind and section: the first levels of an ELF's anatomy, from its headers.

    Raises InfraError when the file is not a readable ELF.
    """
    tally = Tally()
    try:
        sections = list(placed(read_elf(path), regions))
    except (OSError, MalformedFile) as error:
        raise InfraError(f"cannot read {path} as an ELF: {error}", path=str(path)) from error
    for place in sections:
        section = place.section
        tally.add((place.region, section.kind, section.name), section.size)
        if place.load_region is not None:
            tally.add((place.load_region, LOAD_IMAGE, section.name), section.size)
    return tally.parts()


def _region(address: int, regions: Sequence[Memory]) -> str:
    for region in regions:
        if region.origin <= address < region.origin + region.size:
            return region.name
    return NO_REGION if regions else "memory"


def _load_address(elf: ElfFile, section: Section) -> int | None:
    """Return the address of the section's stored copy; None if it has no other copy."""
    if section.type == SHT_NOBITS:
        return None
    for segment in elf.segments:
        if 0 <= section.address - segment.run < segment.file_size:
            load = section.address - segment.run + segment.load
            return None if load == section.address else load
    return None


def anatomy(
    path: Path, view: memoryview, regions: Sequence[Memory], linker_map: Path | None
) -> Anatomy:
    """Return the anatomy of the ELF ``view``, the content of ``path``.

    Without ``regions`` those of the linker map count.

    Raises MalformedFile, and UsageError for the map of another link."""
    elf = ElfFile(bytes(view))
    if not elf.sections:
        raise MalformedFile("there are no section headers", 32)
    symbols = list(_symbols(elf))
    link_map = None if linker_map is None else read_map(linker_map)
    note = None
    source: Callable[[int], str] | None = None
    if link_map is None:
        from harness.formats.dwarf import read_units  # pyelftools is slow to import

        units, note = read_units(path)
        source = units.file
    else:
        _check_same_link(elf, link_map, linker_map)
        regions = regions or link_map.regions
    pieces = link_map.dropped if link_map else ()
    plain = demangled([s.name for s in symbols] + [_subject(p.section) for p in pieces])
    sections = _Sections(symbols, link_map, source, plain)
    tally = Tally()
    for place in placed(elf, regions):
        sections.account(place, tally)
    parts = tally.parts()
    dropped = Tally()
    for piece in pieces:
        name = scopes(plain[_subject(piece.section)])
        dropped.add((*_file_path(piece.short_file), *name), piece.size)
    total = sum(p.bytes for p in parts)
    return Anatomy("elf", total, parts, (), dropped.parts(), (note,) if note else ())


def _check_same_link(elf: ElfFile, link_map: LinkMap, path: Path | None) -> None:
    outputs = {s.name: s for s in link_map.sections}
    for section in elf.sections:
        mapped = outputs.get(section.name)
        place = (section.address, section.size)
        if section.allocated and mapped is not None and (mapped.address, mapped.size) != place:
            raise UsageError(
                f"{path} is the map of another link: it has {section.name} at "
                f"0x{mapped.address:x} with {mapped.size} bytes, the ELF at "
                f"0x{section.address:x} with {section.size}",
            )


def _subject(section: str) -> str:
    """``.text._ZN3fooEv`` to ``_ZN3fooEv``; other section names stay as they are."""
    named = _NAMED.fullmatch(section)
    return named[1] if named else section


@dataclass(frozen=True)
class _Symbol:
    """``file`` is the source of a local symbol. One without a size is a label."""

    name: str
    address: int
    size: int
    file: str


def _symbols(elf: ElfFile) -> Iterator[_Symbol]:
    """Functions, objects and labels of sections, without Arm's mapping symbols."""
    file = ""
    for symbol in elf.symbols:
        is_local = symbol.bind == STB_LOCAL
        if symbol.type == STT_FILE:
            file = symbol.name
        named = symbol.name and not symbol.name.startswith("$")
        if symbol.type not in (STT_NOTYPE, STT_OBJECT, STT_FUNC) or not symbol.in_section:
            continue
        if named and (symbol.type != STT_NOTYPE or symbol.size or not is_local):
            source = file if is_local else ""
            yield _Symbol(symbol.name, elf.address(symbol), symbol.size, source)


@dataclass(frozen=True)
class _Stretch:
    start: int
    end: int
    name: tuple[str, ...]
    file: str


class _Sections:
    def __init__(
        self,
        symbols: Sequence[_Symbol],
        link_map: LinkMap | None,
        source: Callable[[int], str] | None,
        plain: dict[str, str],
    ) -> None:
        self._map, self._source, self._plain = link_map, source, plain
        self._symbols = sorted(symbols, key=lambda s: (s.address, -s.size))

    def account(self, place: Placed, tally: Tally) -> None:
        section = place.section
        where = (place.region, section.kind, section.name)
        for stretch in self._stretches(section):
            size = stretch.end - stretch.start
            tally.add((*where, *_file_path(stretch.file), *stretch.name), size)
        if place.load_region is not None:
            tally.add((place.load_region, LOAD_IMAGE, section.name), section.size)

    def _stretches(self, section: Section) -> Iterator[_Stretch]:
        """Yield the whole section, in order and without overlap."""
        end = section.address + section.size
        position = section.address
        for piece in self._pieces(section):
            low, high = max(piece.address, position), min(piece.end, end)
            if low > position:
                yield _between(position, low)
            if high > low:
                yield from self._inside(piece, low, high)
            position = max(position, high)
        if position < end:
            yield _between(position, end)

    def _pieces(self, section: Section) -> list[InputSection]:
        if self._map is not None:
            return self._map.within(section.address, section.address + section.size)
        return [InputSection(section.name, section.address, section.size, "")]

    def _inside(self, piece: InputSection, low: int, high: int) -> Iterator[_Stretch]:
        if piece.section == FILL:
            name, file = "fill", PADDING
            if high - low > _LARGEST_PADDING:
                name, file = "reserved by the linker script", "(linker script)"
            yield _Stretch(low, high, (name,), file)
            return
        position = low
        for symbol, end in self._symbols_within(low, high):
            if symbol.address > position:
                yield self._nameless(piece, position, symbol.address, after_symbol=position > low)
            if end > max(position, symbol.address):
                start = max(position, symbol.address)
                by_dwarf = self._source(symbol.address) if self._source else ""
                file = piece.short_file or by_dwarf or symbol.file
                yield _Stretch(start, end, scopes(self._plain[symbol.name]), file)
                position = end
        if position < high:
            yield self._nameless(piece, position, high, after_symbol=position > low)

    def _symbols_within(self, low: int, high: int) -> Iterator[tuple[_Symbol, int]]:
        """Symbols by address with their ends. A label reaches to the next symbol."""
        first = bisect_left(self._symbols, low, key=lambda s: s.address)
        chosen: list[_Symbol] = []
        for symbol in self._symbols[first:]:
            if symbol.address >= high:
                break
            if not chosen or chosen[-1].address != symbol.address:
                chosen.append(symbol)
        for index, symbol in enumerate(chosen):
            following = chosen[index + 1].address if index + 1 < len(chosen) else high
            yield symbol, min(symbol.address + symbol.size, high) if symbol.size else following

    def _nameless(
        self, piece: InputSection, low: int, high: int, *, after_symbol: bool
    ) -> _Stretch:
        subject = _subject(piece.section)
        table: dict[str, str] = read_table(__file__)
        known = (text for k, text in table.items() if f"{piece.section}.".startswith(f"{k}."))
        if text := next(known, piece.section if piece.section.startswith(".pool") else ""):
            name: tuple[str, ...] = (text,)
        elif high - low < 16 and after_symbol:
            name = (PADDING, "alignment")
        elif ".str" in piece.section:
            name = ("string literals",)
        elif ".cst" in piece.section:
            name = ("merged constants",)
        elif subject != piece.section:
            name = scopes(demangle(subject))
        else:
            name = (names.NO_SYMBOL,)
        return _Stretch(low, high, name, piece.short_file)


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
