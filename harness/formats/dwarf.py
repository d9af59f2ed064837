"""Maps addresses to source lines and translation units, by an ELF's DWARF.

The only user of pyelftools, whose import takes longer than reading a small ELF: import this module
where a line is needed, not at the top.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from elftools.common.exceptions import DWARFError, ELFError
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile

from harness.system.files import regular

# What pyelftools raises on damaged DWARF, found by fuzzing (tests/size/test_size_fuzz.py).
_DAMAGE = (
    ELFError,
    DWARFError,
    ConstructError,
    ValueError,
    LookupError,
    TypeError,
    OSError,
    AttributeError,
    AssertionError,
    ArithmeticError,
    RuntimeError,
)
_MOST_TIMES = 100  # as large unpacked; DWARF is 2 to 10 times as large


@dataclass(frozen=True)
class Units:
    """``spans``: start, end and source file of each unit, sorted."""

    spans: tuple[tuple[int, int, str], ...] = ()

    def file(self, address: int) -> str:
        index = bisect_right(self.spans, address, key=lambda span: span[0]) - 1
        return self.spans[index][2] if index >= 0 and address < self.spans[index][1] else ""


def _opened(file: BinaryIO) -> Any:
    """Raise ELFError for compressed sections that would take much memory."""
    elf = ELFFile(file)
    for section in elf.iter_sections():
        packed = section.header.sh_size
        if section.name.startswith(".zdebug"):  # of before 2015; their size is not in a header
            raise ELFError(f"{section.name}: compressed in GNU's old way")
        if section.compressed and section.data_size > _MOST_TIMES * packed:
            raise ELFError(f"{section.name}: {section.data_size} bytes in {packed}")
    return elf


def read_units(path: Path) -> tuple[Units, str | None]:
    """Return the units of ``.debug_aranges``, or none and why it is missing or unreadable."""
    try:
        with regular(path) as (file, _):
            elf = _opened(file)
            if not elf.has_dwarf_info():
                return Units(), "no linker map and no DWARF: sources are those of symbols"
            dwarf = elf.get_dwarf_info(relocate_dwarf_sections=False)
            ranges = dwarf.get_aranges()
            entries = sorted(
                (e.begin_addr, e.begin_addr + e.length, e.info_offset)
                for e in (ranges.entries if ranges else ())
                if e.length
            )
            names = {at: _full_name(dwarf.get_CU_at(at)) for at in {e[2] for e in entries}}
    except _DAMAGE as error:
        return Units(), f"the DWARF cannot be read: {type(error).__name__}: {error}"
    return Units(tuple((*span, names[at].rpartition("/")[2]) for *span, at in entries)), None


def source_line(path: Path, address: int) -> str | None:
    """Return "file.cpp:12" from the line program of an address's unit; None if unreadable."""
    try:
        with regular(path) as (file, _):
            elf = _opened(file)
            return _source_line(elf.get_dwarf_info(), address) if elf.has_dwarf_info() else None
    except _DAMAGE:
        return None


def _source_line(dwarf: Any, address: int) -> str | None:
    ranges = dwarf.get_aranges()
    offset = ranges.cu_offset_at_addr(address) if ranges is not None else None
    if offset is None:
        return None
    program = dwarf.line_program_for_CU(dwarf.get_CU_at(offset))
    best = None
    for entry in program.get_entries() if program is not None else ():
        state = entry.state
        if state is None:
            continue
        if best is not None and best.address <= address < state.address and not best.end_sequence:
            base = 0 if program.header.version >= 5 else 1  # DWARF 5, section 6.2.4
            name = program.header.file_entry[best.file - base].name
            return f"{name.decode('utf-8', 'replace')}:{best.line}"
        best = state
    return None


@dataclass(frozen=True)
class Struct:
    """``size`` and ``offsets`` of the members, in bytes."""

    size: int
    offsets: dict[str, int]


def structs(path: Path, ends: tuple[str, ...], names: Collection[str]) -> dict[str, Struct]:
    """Return the structures ``names`` in the translation units that end with one of ``ends``."""
    found: dict[str, Struct] = {}
    try:
        with regular(path) as (file, _):
            elf = _opened(file)
            units = elf.get_dwarf_info().iter_CUs() if elf.has_dwarf_info() else ()
            named = (u for u in units if _full_name(u).endswith(ends))
            for die in (die for unit in named for die in unit.iter_DIEs()):
                name = _text(die, "DW_AT_name")
                if die.tag == "DW_TAG_structure_type" and name in names and die.has_children:
                    found[name] = Struct(die.attributes["DW_AT_byte_size"].value, _offsets(die))
    except _DAMAGE:
        return {}
    return found


def _full_name(unit: Any) -> str:
    return _text(unit.get_top_DIE(), "DW_AT_name")


def _offsets(structure: Any) -> dict[str, int]:
    return {
        _text(member, "DW_AT_name"): member.attributes["DW_AT_data_member_location"].value
        for member in structure.iter_children()
        if "DW_AT_data_member_location" in member.attributes
    }


def _text(die: Any, attribute: str) -> str:
    value = die.attributes.get(attribute)
    return "" if value is None else str(value.value.decode(errors="replace"))
