"""What an address of a program means: the function and the source line, from its ELF."""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path

from harness.formats.demangle import plain
from harness.formats.elf import EM_ARM, SHF_EXECINSTR, SHT_PROGBITS, STT_FUNC, read_elf


class Symbols:
    """Functions and source lines of one ELF. An address may carry the Thumb bit.

    Raises DamagedFile for what is no sound ELF, OSError for what cannot be read.
    """

    def __init__(self, path: Path) -> None:
        elf = read_elf(path)
        self._path = path
        self._mask = ~1 if elf.machine_number == EM_ARM else ~0
        self._functions = {
            elf.address(s): s for s in elf.symbols if s.type == STT_FUNC and s.defined
        }
        self._starts = sorted(self._functions)
        self._code = [
            (section.address, elf.content(section))
            for section in elf.sections
            if section.flags & SHF_EXECINSTR and section.type == SHT_PROGBITS
        ]

    def function(self, address: int) -> str | None:
        """ "name+0x12", or None when the address is in no function."""
        address &= self._mask
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        start = self._starts[index]
        symbol = self._functions[start]
        if address >= start + max(symbol.size, 2):
            return None
        name = plain(symbol.name)
        return f"{name}+{address - start:#x}" if address > start else name

    def source(self, address: int) -> str | None:
        """ "file.cpp:12", or None where the DWARF does not say."""
        from harness.formats.dwarf import source_line  # pyelftools is slow to import

        return source_line(self._path, address & self._mask)

    def follows_call(self, address: int) -> bool:
        """True when the instruction before ``address`` is a call (Thumb BL or BLX register)."""
        target = address & ~1
        for start, code in self._code:
            at = target - start
            if address & 1 and 4 <= at <= len(code):
                first = int.from_bytes(code[at - 4 : at - 2], "little")
                second = int.from_bytes(code[at - 2 : at], "little")
                long_call = first & 0xF800 == 0xF000 and second & 0xD000 == 0xD000
                return long_call or second & 0xFF87 == 0x4780
        return False

    def describe(self, address: int) -> dict[str, str]:
        """``symbol`` and ``source`` of an address, as far as they are known."""
        found = {"symbol": self.function(address), "source": self.source(address)}
        return {k: v for k, v in found.items() if v is not None}
