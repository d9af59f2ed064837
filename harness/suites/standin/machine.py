"""QEMU's ``mps3-an547``: its memory, which programs it can run, and its command line.

The memory map is that of QEMU 7.2 (``info mtree``, the core's view).

Whether an ELF can run here is decided by its segments and its core; the tags are those of "Addenda
to, and Errata in, the ABI for the Arm Architecture" (Arm's abi-aa).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.core.errors import MalformedFile
from harness.formats import elf as formats
from harness.sim.gdbstub.program import Program, program_of
from harness.suites.standin import StandinError
from harness.suites.standin.command_line import LoadedData

QEMU = "qemu-system-arm"
NANOSECONDS_PER_INSTRUCTION = 32  # -icount shift=5
MEMORY_LIMIT = 9 << 29  # bytes: 2 GiB of RAM, the buffer of translated code, QEMU itself
_K, _M = 1 << 10, 1 << 20
_SECURE = 0x1000_0000  # bit 28 of an address selects the Secure alias
_V6M_TO_V8M = (11, 12, 13, 16, 17, 21)  # Tag_CPU_arch: v6-M, v6S-M, v7E-M, v8-M base/main, v8.1-M
_V7 = 10  # v7-M has the profile "M"


@dataclass(frozen=True)
class MachineRegion:
    name: str
    origin: int
    size: int


_ALIASED = (
    MachineRegion("ITCM", 0x0000_0000, 512 * _K),
    MachineRegion("BRAM", 0x0100_0000, 2 * _M),
    MachineRegion("DTCM", 0x2000_0000, 512 * _K),
    MachineRegion("SRAM", 0x2100_0000, 4 * _M),
    MachineRegion("QSPI", 0x2800_0000, 8 * _M),
)
DDR = MachineRegion("DDR", 0x6000_0000, 2048 * _M)
REGIONS = (
    *_ALIASED,
    *(MachineRegion(region.name, region.origin + _SECURE, region.size) for region in _ALIASED),
    DDR,
)


def region_of(address: int, size: int) -> MachineRegion | None:
    """The region that contains all ``size`` bytes; None when there is none."""
    for region in REGIONS:
        if region.origin <= address and address + size <= region.origin + region.size:
            return region
    return None


def objections(elf: Elf, vectors: int) -> Iterator[str]:
    """Why the program cannot run here. ``vectors``: where the model has its vector table."""
    arch, profile = elf.architecture, elf.profile
    if arch is not None and not (
        (arch in _V6M_TO_V8M and profile in ("", "M")) or (arch, profile) == (_V7, "M")
    ):
        yield f"it is for {elf.cpu or 'another architecture'}, and the core here is a Cortex-M55"
    if elf.pointer_authentication > 1:
        yield "it uses pointer-authentication instructions, which a Cortex-M55 does not have"
    for segment in elf.segments:
        for address in sorted({segment.load, segment.run}):
            if region_of(address, segment.size) is None:
                yield (
                    f"its segment 0x{address:08x}-0x{address + segment.size - 1:08x} is not in "
                    "memory that this machine has"
                )
    if not starts_in_itcm(vectors) and elf.starts_at(vectors):
        yield (
            f"the model starts at the vector table at 0x{vectors:08x}, and this machine always at "
            "0x00000000 (ITCM)"
        )
    elif not any(s.load & ~_SECURE == 0 and s.file_size >= 8 for s in elf.segments):
        yield "it has no vector table at 0x00000000 or 0x10000000 (ITCM), where this machine starts"


def starts_in_itcm(vectors: int) -> bool:
    """Whether the model starts where this machine always does."""
    return vectors & ~_SECURE == 0


def check_data(data: LoadedData) -> None:
    try:
        size = data.file.stat().st_size
    except OSError as error:
        raise StandinError(f"--data: cannot open {data.file}: {error.strerror}") from error
    if region_of(data.address, size) is None:
        raise StandinError(
            f"--data: {data.file} ({size} bytes) at 0x{data.address:08x} is not in memory that "
            "this machine has"
        )


def argv(
    executable: str,
    application: Path,
    data: Sequence[LoadedData],
    command_line: str | None,
    uarts: Sequence[int | None],
    monitor: int | None,
    properties: str = "",
) -> tuple[str, ...]:
    """``uarts``: for each UART a descriptor to write to, or None; ``monitor``: a socket;
    ``properties``: further properties of the machine, each with a comma in front.

    QEMU truncates a chardev's file unless it appends, and a pipe cannot be truncated.
    """
    words = [executable, "-M", f"mps3-an547{properties}", "-nographic", "-icount", "shift=5"]
    if monitor is None:
        words += ["-monitor", "none"]
    else:
        words += ["-chardev", f"socket,id=monitor,fd={monitor}"]
        words += ["-mon", "chardev=monitor,mode=control"]
    for number, descriptor in enumerate(uarts):
        if descriptor is None:
            words += ["-serial", "none"]
        else:
            words += ["-add-fd", f"fd={descriptor},set={number}"]
            words += ["-chardev", f"file,id=uart{number},path=/dev/fdset/{number},append=on"]
            words += ["-serial", f"chardev:uart{number}"]
    if command_line is not None:
        words += ["-semihosting-config", f"enable=on,target=native,arg={_value(command_line)}"]
    for loaded in data:
        file = _value(str(loaded.file.absolute()))
        loader = f"loader,file={file},addr=0x{loaded.address:x},force-raw=on"
        words += ["-device", loader]
    return (*words, "-kernel", str(application.absolute()))


def _value(text: str) -> str:
    """In QEMU's option lists a comma of a value is written twice."""
    return text.replace(",", ",,")


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
    except MalformedFile as error:
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
