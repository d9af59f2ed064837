"""The memory an ELF takes, by region of the target's memory map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

from harness.errors import InfraError


@dataclass(frozen=True)
class Region:
    """A memory of the board: ``[origin, origin + size)``, in bytes."""

    name: str
    origin: int
    size: int


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

    Sections are read from the section headers (ELF specification, chapter "Sections"): those
    with SHF_ALLOC occupy memory, SHT_NOBITS ones without being in the file.
    Raises InfraError when the file is not a readable ELF.
    """
    code = {r.name: 0 for r in regions}
    data, reserved = dict(code), dict(code)
    text = outside = 0
    try:
        with elf.open("rb") as file:
            for section in ELFFile(file).iter_sections():
                if not section["sh_flags"] & SH_FLAGS.SHF_ALLOC or not section["sh_size"]:
                    continue
                executable = bool(section["sh_flags"] & SH_FLAGS.SHF_EXECINSTR)
                size = int(section["sh_size"])
                text += size if executable else 0
                address = int(section["sh_addr"])
                region = next((r for r in regions if r.origin <= address < r.origin + r.size), None)
                if region is None:
                    outside += size
                elif section["sh_type"] == "SHT_NOBITS":
                    reserved[region.name] += size
                elif executable:
                    code[region.name] += size
                else:
                    data[region.name] += size
    except (OSError, ELFError) as error:
        raise InfraError(f"cannot read {elf} as an ELF: {error}", path=str(elf)) from error
    uses = tuple(
        RegionUse(r.name, r.size, code[r.name], data[r.name], reserved[r.name]) for r in regions
    )
    return ElfFootprint(uses, text, outside)
