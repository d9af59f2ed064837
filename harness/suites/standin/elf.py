"""Reads what decides whether a 32-bit Arm ELF can run here: its segments and its core.

The tags are those of "Addenda to, and Errata in, the ABI for the Arm Architecture" (Arm's abi-aa).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from harness.formats import elf as formats
from harness.formats.damage import DamagedFile
from harness.sim.gdbstub.program import Program, program_of
from harness.suites.standin.failure import StandinError

_CPU_NAME, _CPU_ARCH, _CPU_PROFILE, _PAC = 5, 6, 7, 50


@dataclass(frozen=True)
class Elf:
    path: Path
    segments: tuple[formats.Segment, ...]
    cpu: str  # Tag_CPU_name, or ""
    architecture: int | None  # Tag_CPU_arch
    profile: str  # "M", "A", "R" or ""
    pointer_authentication: int  # Tag_PAC_extension: 2 needs the instructions, 1 only hints
    program: Program  # what it needs from the stand-in
    image: bytes = field(repr=False)

    def starts_at(self, address: int) -> bool:
        """Whether a vector table is at ``address``: its second word is the reset handler, an odd
        address in code (Armv8-M Architecture Reference Manual, "The vector table")."""
        for segment in self.segments:
            offset = address - segment.load
            if 0 <= offset <= segment.file_size - 8:
                word = segment.offset + offset + 4
                reset = int.from_bytes(self.image[word : word + 4], "little")
                return reset & 1 == 1 and any(
                    s.code and s.run <= reset < s.run + s.size for s in self.segments
                )
        return False


def read_elf(path: Path) -> Elf:
    """Raises StandinError when it is not a complete little-endian 32-bit Arm executable, and
    SymbolsMissing."""
    try:
        image = path.read_bytes()
        if image[:4] != formats.MAGIC:
            raise StandinError(f"application {path} is not an ELF file")
        elf = formats.ElfFile(image)
        if (elf.bits, elf.byte_order, elf.machine_number) != (32, "little", formats.EM_ARM):
            raise StandinError(f"application {path} is not a 32-bit little-endian Arm ELF file")
        segments = tuple(s for s in elf.segments if s.size)
        tags = elf.attributes
        program = program_of(elf, path)
    except OSError as error:
        raise StandinError(f"cannot open application {path}: {error.strerror}") from error
    except DamagedFile as error:
        raise StandinError(f"application {path} is damaged: {error.message}") from error
    profile = tags.get(_CPU_PROFILE, 0)
    pac = tags.get(_PAC, 0)
    architecture = tags.get(_CPU_ARCH)
    return Elf(
        path=path,
        segments=segments,
        cpu=str(tags.get(_CPU_NAME, "")),
        architecture=architecture if isinstance(architecture, int) else None,
        profile=chr(profile) if isinstance(profile, int) and profile else "",
        pointer_authentication=pac if isinstance(pac, int) else 0,
        program=program,
        image=image,
    )
