"""Sections of an ELF that lie over each other when the program runs.

GNU ld looks for this, but not if two sections begin at one address: it takes them for overlays then
(binutils, ld/ldlang.c, lang_check_section_addresses). So two memory regions over one memory make a
program that links without a word, and whose start-up code clears or copies data over its own code.
Sections that are all stored elsewhere are overlays, and copied when needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from harness.core.errors import LinkError
from harness.formats.elf import ElfFile, Section

_RELOCATABLE, _THREAD_LOCAL = 1, 0x400  # ET_REL; SHF_TLS, whose .tbss takes no memory of its own


class SectionsOverlap(LinkError):
    """``overlaps``: from ``overlaps``, at least one."""

    kind = "sections_overlap"

    def __init__(self, program: str, overlaps: Sequence[str]) -> None:
        self.overlaps = tuple(overlaps)
        more = f"; and {len(overlaps) - 1} more" if len(overlaps) > 1 else ""
        super().__init__(
            f"{program}: {overlaps[0]}{more}",
            hint="two memory regions of the linker script are one memory: give each its own (in "
            "Zephyr, zephyr,sram and zephyr,flash of the devicetree, or CONFIG_XIP=n)",
        )


def overlaps(elf: ElfFile, memory: Callable[[int], int] = lambda address: address) -> Iterator[str]:
    """Yield a sentence for each overlap in an executable, by address.

    ``memory``: the address of the memory cell at an address, for a machine that shows one at
    several."""
    if elf.type == _RELOCATABLE:
        return
    sections = [s for s in elf.sections if s.allocated and not s.flags & _THREAD_LOCAL]
    reached, under = 0, None  # the end of what reaches farthest
    for start, _, over in sorted((memory(s.address), s.kind == "reserved", s) for s in sections):
        end = start + over.size
        if under and start < reached and not (_copied(elf, over) and _copied(elf, under)):
            # what start-up code writes destroys what is in place
            lost, written = sorted((under, over), key=lambda section: _written(elf, section))
            how = "cleared" if written.kind == "reserved" else "written"
            yield (
                f"{_place(written)} lies over {_place(lost)}: when the program starts, "
                f"{min(reached, end) - start} bytes from 0x{start:08x} are {how} over it"
            )
        if end > reached:
            reached, under = end, over


def _written(elf: ElfFile, section: Section) -> bool:
    """Whether start-up code writes it."""
    return section.kind == "reserved" or _copied(elf, section)


def _copied(elf: ElfFile, section: Section) -> bool:
    """Whether its bytes are stored elsewhere."""
    return section.kind != "reserved" and any(
        s.load != s.run and s.offset <= section.offset < s.offset + s.file_size
        for s in elf.segments
        if s.run <= section.address < s.run + s.size
    )


def _place(section: Section) -> str:
    end = section.address + section.size - 1
    return f"{section.name} (0x{section.address:08x}-0x{end:08x})"
