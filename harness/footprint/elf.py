"""The memory an ELF takes, by region of the target's memory map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import InfraError
from harness.formats.damage import DamagedFile
from harness.formats.elf import SHF_EXECINSTR, read_elf
from harness.target.model import Region


@dataclass(frozen=True)
class RegionUse:
    """Bytes the linker put into one region, by what has to be there when.

    ``code`` is executable, ``data`` is loaded but not executable, ``reserved`` takes space but
    is not in the file (.bss, stack, pools). Sections count where they *run* (their address).
    """

    region: str
    size: int
    code: int
    data: int
    reserved: int

    @property
    def used(self) -> int:
        return self.code + self.data + self.reserved


@dataclass(frozen=True)
class ElfFootprint:
    regions: tuple[RegionUse, ...]
    text: int  # bytes of executable sections, as `size` counts text without .rodata
    outside: int  # allocated bytes in no region of the target

    def metrics(self) -> dict[str, int]:
        """Flat figures for records and references."""
        figures = {f"elf_{use.region}": use.used for use in self.regions if use.used}
        return {**figures, "elf_text": self.text}


def measure(elf: Path, regions: Sequence[Region]) -> ElfFootprint:
    """Sum the allocated sections of ``elf`` by region.

    Raises InfraError when the file is not a readable ELF.
    """
    try:
        sections = [s for s in read_elf(elf).sections if s.allocated]
    except (OSError, DamagedFile) as error:
        raise InfraError(f"cannot read {elf} as an ELF: {error}", path=str(elf)) from error
    used = {r.name: {"code": 0, "data": 0, "reserved": 0} for r in regions}
    outside = 0
    for section in sections:
        region = next((r for r in regions if r.origin <= section.address < r.end), None)
        if region is None:
            outside += section.size
        else:
            used[region.name][section.kind] += section.size
    text = sum(s.size for s in sections if s.flags & SHF_EXECINSTR)
    uses = tuple(RegionUse(r.name, r.size, **used[r.name]) for r in regions)
    return ElfFootprint(uses, text, outside)
