"""Addresses to translation units out of DWARF, for an ELF that came without a linker map."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import DWARFError, ELFError
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile

# What pyelftools raises on damaged DWARF, found by fuzzing (tests/size/test_size_fuzz.py).
_DAMAGE = (ELFError, DWARFError, ConstructError, ValueError, LookupError, TypeError, OSError,
           AttributeError, AssertionError, ArithmeticError, RuntimeError)  # fmt: skip


@dataclass(frozen=True)
class Units:
    """``starts`` sorted; ``spans[i]`` is the end and source file of the unit at ``starts[i]``."""

    starts: tuple[int, ...]
    spans: tuple[tuple[int, str], ...]

    def file(self, address: int) -> str:
        at = bisect_right(self.starts, address) - 1
        return self.spans[at][1] if at >= 0 and address < self.spans[at][0] else ""


def read_units(path: Path) -> tuple[Units, str | None]:
    """From ``.debug_aranges``; nothing, and why, when there is none that can be read."""
    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            if not elf.has_dwarf_info():
                return Units((), ()), "no linker map and no DWARF: sources are those of symbols"
            dwarf = elf.get_dwarf_info(relocate_dwarf_sections=False)
            ranges = dwarf.get_aranges()
            entries = sorted(
                (e.begin_addr, e.begin_addr + e.length, e.info_offset)
                for e in (ranges.entries if ranges else ())
                if e.length
            )
            names: dict[int, str] = {}
            for offset in {e[2] for e in entries}:
                top = dwarf.get_CU_at(offset).get_top_DIE()
                name = top.attributes["DW_AT_name"].value.decode(errors="replace")
                names[offset] = name.rpartition("/")[2]
    except _DAMAGE as error:
        return Units((), ()), f"the DWARF cannot be read: {type(error).__name__}: {error}"
    spans = tuple((end, names[offset]) for _, end, offset in entries)
    return Units(tuple(e[0] for e in entries), spans), None
