"""Sections of an ELF that lie over each other when the program runs.

GNU ld looks for this, but not if two sections begin at one address: it takes them for overlays then
(binutils, ld/ldlang.c, lang_check_section_addresses). So two memory regions over one memory make a
program that links without a word, and whose start-up code clears or copies data over its own code.

Sections that are stored elsewhere, all of those concerned, are overlays and copied when needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from harness.core.errors import LinkError
from harness.formats.elf import ElfFile, Section

_RELOCATABLE, _THREAD_LOCAL = 1, 0x400  # ET_REL; SHF_TLS, whose .tbss takes no memory of its own


@dataclass(frozen=True)
class Overlap:
    """``over`` lies over ``size`` bytes of ``under``, from ``start``."""

    over: Section
    under: Section
    start: int
    size: int

    def __str__(self) -> str:
        written = "cleared" if self.over.kind == "reserved" else "written"
        return (
            f"{_place(self.over)} lies over {_place(self.under)}: when the program starts, "
            f"{self.size} bytes from 0x{self.start:08x} are {written} over it"
        )


class SectionsOverlap(LinkError):
    """``overlaps``: in order of address."""

    kind = "sections_overlap"

    def __init__(self, program: str, overlaps: tuple[Overlap, ...]) -> None:
        self.overlaps = tuple(map(str, overlaps))
        more = f"; and {len(overlaps) - 1} more" if len(overlaps) > 1 else ""
        super().__init__(
            f"{program}: {overlaps[0]}{more}",
            hint="two memory regions of the linker script are one memory: give each its own (in "
            "Zephyr, zephyr,sram and zephyr,flash of the devicetree, or CONFIG_XIP=n)",
        )


def overlaps(
    elf: ElfFile, memory: Callable[[int], int] = lambda address: address
) -> Iterator[Overlap]:
    """The overlaps of an executable, by address. ``memory``: the address of the memory cell behind
    an address, for a machine that shows one at several."""
    if elf.type == _RELOCATABLE:
        return
    sections = [s for s in elf.sections if s.allocated and not s.flags & _THREAD_LOCAL]
    placed = sorted((memory(s.address), s.kind == "reserved", s) for s in sections)
    last: tuple[int, Section] | None = None  # the one that reaches farthest, and its end
    for start, _, section in placed:
        end = start + section.size
        if last is not None and start < last[0]:
            under = last[1]
            if not (_stored_elsewhere(elf, section) and _stored_elsewhere(elf, under)):
                # what is in place is destroyed by what is copied or cleared
                over = section
                if not _written(elf, over) and _written(elf, under):
                    over, under = under, over
                yield Overlap(over, under, start, min(last[0], end) - start)
        if last is None or end > last[0]:
            last = (end, section)


def _written(elf: ElfFile, section: Section) -> bool:
    """Whether start-up code writes it: it has no bytes in the file, or has them elsewhere."""
    return section.kind == "reserved" or _stored_elsewhere(elf, section)


def _stored_elsewhere(elf: ElfFile, section: Section) -> bool:
    if section.kind == "reserved":
        return False
    return any(
        segment.load != segment.run
        for segment in elf.segments
        if segment.run <= section.address < segment.run + segment.size
        and segment.offset <= section.offset < segment.offset + segment.file_size
    )


def _place(section: Section) -> str:
    end = section.address + section.size - 1
    return f"{section.name} (0x{section.address:08x}-0x{end:08x})"
