"""The memory regions that the sections of an ELF are placed in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.config.model import Region
from harness.core.errors import InfraError
from harness.formats.damage import DamagedFile
from harness.formats.elf import SHT_NOBITS, ElfFile, Section, read_elf
from harness.formats.linker_map import MapRegion
from harness.size.anatomy import Part, Tally

NO_REGION = "outside every region"
LOAD_IMAGE = "load image"  # the kind of a stored copy of what runs elsewhere


Memory = Region | MapRegion  # a region of a target, or of a linker script


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
    except (OSError, DamagedFile) as error:
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
    """The address of the section's stored copy; None if it has no other copy."""
    if section.type == SHT_NOBITS:
        return None
    for segment in elf.segments:
        if 0 <= section.address - segment.run < segment.file_size:
            load = section.address - segment.run + segment.load
            return None if load == section.address else load
    return None
