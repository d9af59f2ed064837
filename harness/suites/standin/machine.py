"""QEMU's ``mps3-an547``: its memory, which programs it can run, and its command line.

The memory map is that of QEMU 7.2 (``info mtree``, the core's view).

An ELF's segments and its core decide whether it can run here; the tags are those of "Addenda
to, and Errata in, the ABI for the Arm Architecture" (Arm's abi-aa).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.core.errors import MalformedFile
from harness.formats.elf import EM_ARM, MAGIC, STT_FUNC, ElfFile
from harness.formats.elf_overlap import overlaps
from harness.sim.companion import MEMORY
from harness.sim.gdbstub.host_calls import HostCalls, host_calls_of
from harness.suites.standin import StandinError
from harness.suites.standin.command_line import LoadedData
from harness.system.files import read_regular

QEMU = "qemu-system-arm"
NANOSECONDS_PER_INSTRUCTION = 32  # -icount shift=5
MEMORY_LIMIT = 9 << 29  # bytes: 2 GiB of RAM, the buffer of translated code, QEMU itself
_K, _M = 1 << 10, 1 << 20
_SECURE = 0x1000_0000  # bit 28 of an address selects the Secure alias
_V6M_TO_V8M = (11, 12, 13, 16, 17, 21)  # Tag_CPU_arch: v6-M, v6S-M, v7E-M, v8-M base/main, v8.1-M
_V7 = 10  # v7-M has the profile "M"
# PACG Rd, Rn, Rm: FB6n Fd0m; AUTG Ra, Rn, Rm: FB5n aF0m; BXAUT Ra, Rn, Rm: FB5n aF1m.
_PAC_INSTRUCTION = re.compile(
    rb"(?s)(?=[\x60-\x6f]\xfb[\0-\x0f][\xf0-\xff]|[\x50-\x5f]\xfb[\0-\x1f].)"
)
_CPU_NAME, _CPU_ARCH, _CPU_PROFILE, _PAC = 5, 6, 7, 50  # build attributes


DDR, DDR_BYTES = 0x6000_0000, 2048 * _M
_ALIASED = (  # also at its Secure address
    (0x0000_0000, 512 * _K),  # ITCM
    (0x0100_0000, 2 * _M),  # BRAM
    (0x2000_0000, 512 * _K),  # DTCM
    (0x2100_0000, 4 * _M),  # SRAM
    (0x2800_0000, 8 * _M),  # QSPI
)
_REGIONS = (*_ALIASED, *((origin + _SECURE, size) for origin, size in _ALIASED), (DDR, DDR_BYTES))


def _memory(address: int) -> int:
    """The address without the alias that its region has."""
    plain = address & ~_SECURE
    return plain if any(start <= plain < start + room for start, room in _ALIASED) else address


def in_memory(address: int, size: int) -> bool:
    """Whether one region contains all ``size`` bytes."""
    return any(start <= address and address + size <= start + room for start, room in _REGIONS)


@dataclass(frozen=True)
class Application:
    path: Path
    elf: ElfFile
    calls: HostCalls  # what it needs besides QEMU

    def objections(self, vectors: int) -> Iterator[str]:
        """Why it cannot run here. ``vectors``: where the model has its vector table."""
        tags = self.elf.attributes
        arch, profile = tags.get(_CPU_ARCH), chr(int(tags.get(_CPU_PROFILE, 0))).strip("\0")
        if arch is not None and not (
            (arch in _V6M_TO_V8M and profile in ("", "M")) or (arch, profile) == (_V7, "M")
        ):
            cpu = tags.get(_CPU_NAME) or "another architecture"
            yield f"it is for {cpu}, and the core here is a Cortex-M55"
        if int(tags.get(_PAC, 0)) > 1 and (place := _pointer_authentication(self.elf)):
            yield (
                f"it has a pointer-authentication instruction in {place}, which a Cortex-M55 does "
                "not have"
            )
        yield from overlaps(self.elf, _memory)
        segments = [segment for segment in self.elf.segments if segment.size]
        for segment in segments:
            for address in sorted({segment.load, segment.run}):
                if not in_memory(address, segment.size):
                    yield (
                        f"its segment 0x{address:08x}-0x{address + segment.size - 1:08x} is not in "
                        "memory that this machine has"
                    )
        if not starts_in_itcm(vectors) and self._starts_at(vectors):
            yield (
                f"the model starts at the vector table at 0x{vectors:08x}, and this machine always "
                "at 0x00000000 (ITCM)"
            )
        elif not any(s.load & ~_SECURE == 0 and s.file_size >= 8 for s in segments):
            yield (
                "it has no vector table at 0x00000000 or 0x10000000 (ITCM), where this machine "
                "starts"
            )

    def _starts_at(self, address: int) -> bool:
        """Whether a vector table is at ``address``: its second word is the reset handler, an odd
        address in code (Armv8-M Architecture Reference Manual, "The vector table")."""
        for segment in self.elf.segments:
            offset = address - segment.load
            if 0 <= offset <= segment.file_size - 8:
                word = segment.offset + offset + 4
                reset = int.from_bytes(self.elf.data[word : word + 4], "little")
                return reset & 1 == 1 and any(
                    s.code and s.run <= reset < s.run + s.size for s in self.elf.segments
                )
        return False


def _pointer_authentication(elf: ElfFile) -> str:
    """The place of the first PACG, AUTG or BXAUT, or "". PAC, AUT, PACBTI and BTI are hints: NOPs
    to a core without them. (Armv8-M Architecture Reference Manual, C2.4; the three lie where SMMLA
    and SMMLS with a program counter would, which nothing else is.)"""
    functions = sorted((elf.address(s), s.name) for s in elf.symbols if s.type == STT_FUNC)
    for segment in elf.segments:
        code = elf.data[segment.offset : segment.offset + segment.file_size]
        for found in _PAC_INSTRUCTION.finditer(code) if segment.code else ():
            address = segment.run + found.start()
            before = bisect_right(functions, (address, "\xff")) - 1
            start, name = functions[before] if before >= 0 else (address, "")
            if address % 2 == 0 and _begins_instruction(code, start - segment.run, found.start()):
                return f"{name or 'its code'} (0x{address:08x})"
    return ""


def _begins_instruction(code: bytes, offset: int, wanted: int) -> bool:
    """Whether an instruction begins at ``wanted``, from the function's begin on: a first half-word
    of 0b11101, 0b11110 or 0b11111 has a second one."""
    while 0 <= offset < wanted:
        offset += 4 if code[offset + 1] >= 0xE8 else 2
    return offset == wanted


def read_application(path: Path) -> Application:
    """Raises StandinError when it is not a complete little-endian 32-bit Arm executable, and
    UsageError as ``host_calls_of`` does."""
    try:
        image = read_regular(path)
        if image[:4] != MAGIC:
            raise StandinError(f"application {path} is not an ELF file")
        elf = ElfFile(image)
        if (elf.bits, elf.byte_order, elf.machine_number) != (32, "little", EM_ARM):
            raise StandinError(f"application {path} is not a 32-bit little-endian Arm ELF file")
        return Application(path, elf, host_calls_of(elf, path))
    except OSError as error:
        raise StandinError(f"cannot open application {path}: {error.strerror}") from error
    except MalformedFile as error:
        raise StandinError(f"application {path} is damaged: {error.message}") from error


def starts_in_itcm(vectors: int) -> bool:
    """Whether the model starts where this machine always does."""
    return vectors & ~_SECURE == 0


def check_data(data: LoadedData) -> None:
    try:
        size = data.file.stat().st_size
    except OSError as error:
        raise StandinError(f"--data: cannot open {data.file}: {error.strerror}") from error
    if not in_memory(data.address, size):
        raise StandinError(
            f"--data: {data.file} ({size} bytes) at 0x{data.address:08x} is not in memory that "
            "this machine has"
        )


def argv(
    executable: str,
    application: Path,
    data: Sequence[LoadedData],
    command_line: str | None,
    *,
    shares_memory: bool,
) -> tuple[str, ...]:
    """QEMU's command line without the UARTs. ``command_line``: None without semihosting.
    ``shares_memory``: its DDR is a companion's (``harness/sim/companion``)."""
    backend = f",memory-backend={MEMORY}" if shares_memory else ""
    words = [executable, "-M", f"mps3-an547{backend}", "-nographic", "-icount", "shift=5"]
    words += ["-monitor", "none"]
    if command_line is not None:
        words += ["-semihosting-config", f"enable=on,target=native,arg={_value(command_line)}"]
    for loaded in data:
        file = _value(str(loaded.file.absolute()))
        words += ["-device", f"loader,file={file},addr=0x{loaded.address:x},force-raw=on"]
    return (*words, "-kernel", str(application.absolute()))


def _value(text: str) -> str:
    """In QEMU's option lists a comma of a value is written twice."""
    return text.replace(",", ",,")
