"""Where the sections of an ELF are in memory, by region of the target's memory map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import InfraError
from harness.footprint.anatomy import Part, Tally
from harness.formats.damage import DamagedFile
from harness.formats.elf import SHT_NOBITS, ElfFile, Section, read_elf
from harness.formats.linker_map import MapRegion
from harness.target.model import Region

NO_REGION = "outside every region"
LOAD_IMAGE = "load image"  # the kind of a stored copy of what runs elsewhere


Memory = Region | MapRegion  # a stretch of it: of a target, or of a linker script


@dataclass(frozen=True)
class Placed:
    """An allocated section, the region it runs in, and that of its stored copy if it has one."""

    section: Section
    region: str
    load_region: str | None


def placed(elf: ElfFile, regions: Sequence[Memory]) -> Iterator[Placed]:
    """Every allocated section, in the file's order.

    Sections with SHF_ALLOC occupy memory, SHT_NOBITS ones without being in the file (System V
    ABI, "Sections"). What a segment stores elsewhere than it runs takes memory twice
    ("Program Loading": ``p_paddr`` and ``p_vaddr``).
    """
    for section in elf.sections:
        if section.allocated:
            load = _load_address(elf, section)
            elsewhere = None if load is None else _region(load, regions)
            yield Placed(section, _region(section.address, regions), elsewhere)


def section_parts(path: Path, regions: Sequence[Memory]) -> tuple[Part, ...]:
    """Bytes by region, kind and section: the upper end of an ELF's anatomy, at little cost.

    Raises InfraError when the file is not a readable ELF.
    """
    tally = Tally()
    try:
        found = list(placed(read_elf(path), regions))
    except (OSError, DamagedFile) as error:
        raise InfraError(f"cannot read {path} as an ELF: {error}", path=str(path)) from error
    for place in found:
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
    """Where a copy of the section is stored; None when that is where it runs, or nowhere."""
    if section.type == SHT_NOBITS:
        return None
    for segment in elf.segments:
        if 0 <= section.address - segment.run < segment.file_size:
            load = section.address - segment.run + segment.load
            return None if load == section.address else load
    return None
