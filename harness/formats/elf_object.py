"""A fast reader of relocatable objects: symbols, sections, relocations, ABI marks.

pyelftools builds an object per symbol; a link has hundreds of thousands. Here a symbol table is
one ``struct`` unpacking. Layouts: System V ABI, chapters 4 and 5; "ELF for the Arm Architecture".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from harness.errors import InfraError

MACHINES = {
    0: "no machine", 3: "x86 (32 bit)", 8: "MIPS", 20: "PowerPC", 40: "Arm (32 bit)",
    62: "x86-64", 94: "Xtensa", 183: "AArch64", 195: "ARC", 243: "RISC-V",
}  # fmt: skip
SHN_UNDEF, SHN_ABS, SHN_COMMON, SHN_XINDEX = 0, 0xFFF1, 0xFFF2, 0xFFFF
STB_LOCAL, STB_GLOBAL, STB_WEAK = 0, 1, 2
STT_OBJECT, STT_FUNC, STT_SECTION, STT_IFUNC = 1, 2, 3, 10
_SHT_SYMTAB, _SHT_RELA, _SHT_NOBITS, _SHT_REL, _SHT_XINDEX = 2, 4, 8, 9, 18
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR = 1, 2, 4
_VISIBILITY = {0: "default", 1: "internal", 2: "hidden", 3: "protected"}


class Symbol(NamedTuple):
    name: str
    bind: int
    type: int
    visibility: str
    shndx: int
    value: int
    size: int

    @property
    def defined(self) -> bool:
        return self.shndx != SHN_UNDEF

    @property
    def common(self) -> bool:
        return self.shndx == SHN_COMMON

    @property
    def binding(self) -> str:
        if self.bind == STB_LOCAL:
            return "static"
        if self.visibility in ("hidden", "internal"):
            return self.visibility
        return "weak" if self.bind == STB_WEAK else "common" if self.common else "strong"


class Section(NamedTuple):
    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int


class Relocation(NamedTuple):
    section: int  # index of the section it is applied to
    offset: int
    symbol: int
    type: int


class NotAnObject(InfraError):
    kind = "not_an_object"


@dataclass(frozen=True)
class ElfObject:
    """One relocatable object; ``name`` is as on the link line, "libx.a(y.o)" for a member."""

    name: str
    data: bytes

    @cached_property
    def _format(self) -> tuple[str, bool]:
        if len(self.data) < 52 or self.data[:4] != b"\x7fELF":
            raise NotAnObject(f"{self.name} is not an ELF file", file=self.name)
        return ("<" if self.data[5] == 1 else ">"), self.data[4] == 2

    @cached_property
    def _header(self) -> tuple[int, ...]:
        order, wide = self._format
        return struct.unpack_from(order + ("HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH"),
                                  self.data, 16)  # fmt: skip

    @property
    def machine(self) -> str:
        return MACHINES.get(self._header[1], f"ELF machine {self._header[1]}")

    @property
    def elf_class(self) -> int:
        return 64 if self._format[1] else 32

    @property
    def flags(self) -> int:
        return self._header[6]

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        order, wide = self._format
        layout = struct.Struct(order + ("IIQQQQIIQQ" if wide else "IIIIIIIIII"))
        start, count, names_at = self._header[5], self._header[11], self._header[12]
        if not start or start + count * layout.size > len(self.data):
            return ()
        if count == 0:  # more sections than the header can say: the first section says it
            count = layout.unpack_from(self.data, start)[5]
            names_at = layout.unpack_from(self.data, start)[6]
        raw = [layout.unpack_from(self.data, start + i * layout.size) for i in range(count)]
        names = self._bytes(raw[names_at][4], raw[names_at][5]) if names_at < count else b""
        return tuple(
            Section(_text(names, r[0]), r[1], r[2], r[3], r[4], r[5], r[6], r[7]) for r in raw
        )

    def _bytes(self, offset: int, size: int) -> bytes:
        return self.data[offset : offset + size]

    def content(self, section: Section) -> bytes:
        return b"" if section.type == _SHT_NOBITS else self._bytes(section.offset, section.size)

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        """The whole symbol table, the null symbol included."""
        table = next((s for s in self.sections if s.type == _SHT_SYMTAB), None)
        if table is None or table.link >= len(self.sections):
            return ()
        order, wide = self._format
        names = self.content(self.sections[table.link])
        layout = struct.Struct(order + ("IBBHQQ" if wide else "IIIBBH"))
        raw = self.content(table)
        raw = raw[: len(raw) - len(raw) % layout.size]
        found = []
        for fields in layout.iter_unpack(raw):
            if wide:
                name, info, other, shndx, value, size = fields
            else:
                name, value, size, info, other, shndx = fields
            end = names.find(b"\0", name)
            found.append(
                Symbol(names[name:end].decode("utf-8", "replace"), info >> 4, info & 15,
                       _VISIBILITY[other & 3], shndx, value, size)
            )  # fmt: skip
        return tuple(found)

    @cached_property
    def globals(self) -> tuple[Symbol, ...]:
        return tuple(s for s in self.symbols if s.bind != STB_LOCAL and s.name)

    def relocations(self) -> Iterator[Relocation]:
        order, wide = self._format
        for section in self.sections:
            if section.type not in (_SHT_REL, _SHT_RELA):
                continue
            addend = section.type == _SHT_RELA
            layout = struct.Struct(
                order + ("QQ" if wide else "II") + ("q" if wide else "i") * addend
            )
            raw = self.content(section)
            raw = raw[: len(raw) - len(raw) % layout.size]
            for fields in layout.iter_unpack(raw):
                info = fields[1]
                symbol, kind = (info >> 32, info & 0xFFFFFFFF) if wide else (info >> 8, info & 255)
                yield Relocation(section.info, fields[0], symbol, kind)

    def function_at(self, section: int, offset: int) -> str | None:
        """The function whose code has this offset, or None."""
        for symbol in self.symbols:
            if symbol.shndx == section and symbol.type in (STT_FUNC, STT_IFUNC):
                start = symbol.value & ~1 if self._header[1] == 40 else symbol.value
                if start <= offset < start + max(symbol.size, 1):
                    return symbol.name
        return None


def _text(names: bytes, offset: int) -> str:
    end = names.find(b"\0", offset)
    return names[offset:end].decode("utf-8", "replace")


def read_object(path: Path, name: str | None = None) -> ElfObject:
    """Raises NotAnObject when the file is not an ELF file."""
    found = ElfObject(name or str(path), path.read_bytes())
    _ = found._format
    return found
