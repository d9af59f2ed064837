"""ELF files: header, sections, segments, symbols, relocations, notes and build attributes.

The one reader of ELF structure: 32 and 64 bit, both byte orders, objects and executables. Every
offset and length is checked before it is used; a file that violates the format is a MalformedFile.
A table is read by one ``struct`` unpacking: a link has hundreds of thousands of symbols.

Layouts: System V ABI, chapters 4 and 5; "ELF for the Arm Architecture"; "Addenda to, and Errata
in, the ABI for the Arm Architecture", section 3.3 (build attributes).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from harness.core.errors import MalformedFile
from harness.core.tables import read_table
from harness.system.files import read_regular

MAGIC = b"\x7fELF"
EM_ARM, EM_AARCH64 = 40, 183
SHT_NULL, SHT_PROGBITS, SHT_SYMTAB, SHT_RELA = 0, 1, 2, 4
SHT_DYNAMIC, SHT_NOTE, SHT_NOBITS, SHT_REL = 6, 7, 8, 9
SHT_ARM_ATTRIBUTES = 0x70000003
SHF_ALLOC, SHF_EXECINSTR = 2, 4
PT_LOAD, PF_X = 1, 1
SHN_UNDEF, SHN_LORESERVE, SHN_COMMON, SHN_XINDEX = 0, 0xFF00, 0xFFF2, 0xFFFF
STB_LOCAL, STB_GLOBAL, STB_WEAK = 0, 1, 2
STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_FILE, STT_IFUNC = 0, 1, 2, 4, 10
ByteOrder = Literal["little", "big"]
_VISIBILITY = {0: "default", 1: "internal", 2: "hidden", 3: "protected"}
_THUMB_BIT = 1
_NT_GNU_BUILD_ID = 3
_DT_NEEDED = 1
_LONGEST_NAME = 1 << 16  # of a symbol, in bytes
_WHOLE_FILE, _COMPATIBILITY = 1, 32  # build attributes: Tag_File, Tag_compatibility
_TEXT_TAGS = (4, 5, 65, 67)  # their value is a string, an exception to the rule of odd and even


class Section(NamedTuple):
    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int

    @property
    def allocated(self) -> bool:
        """Whether it takes memory at run time."""
        return bool(self.flags & SHF_ALLOC) and self.size > 0

    @property
    def kind(self) -> str:
        """ "code", "data", or "reserved": takes memory without bytes in the file."""
        if self.type == SHT_NOBITS:
            return "reserved"
        return "code" if self.flags & SHF_EXECINSTR else "data"


class Segment(NamedTuple):
    """A part of the file that is loaded as a whole."""

    run: int  # virtual address, where the program finds it
    load: int  # physical address, where it is stored
    file_size: int
    size: int
    offset: int  # of its bytes in the file
    flags: int

    @property
    def code(self) -> bool:
        return bool(self.flags & PF_X)


class Symbol(NamedTuple):
    name: str
    bind: int
    type: int
    visibility: str
    shndx: int
    value: int  # with the Thumb bit where there is one
    size: int

    @property
    def defined(self) -> bool:
        return self.shndx != SHN_UNDEF

    @property
    def common(self) -> bool:
        return self.shndx == SHN_COMMON

    @property
    def in_section(self) -> bool:
        return SHN_UNDEF < self.shndx < SHN_LORESERVE

    @property
    def binding(self) -> str:
        if self.bind == STB_LOCAL:
            return "static"
        if self.visibility in ("hidden", "internal"):
            return self.visibility
        return "weak" if self.bind == STB_WEAK else "common" if self.common else "strong"


class Relocation(NamedTuple):
    section: int  # index of the section it is applied to
    offset: int
    symbol: int
    type: int


@dataclass(frozen=True)
class ElfFile:
    """An ELF file.

    ``name`` is for messages: the path, or for an archive's member its name on the link line,
    "libx.a(y.o)". Raises MalformedFile without a sound header; the tables raise it when they are
    read."""

    data: bytes
    name: str = ""

    def __post_init__(self) -> None:
        size = len(self.data)
        if size < 52 or self.data[:4] != MAGIC:
            raise self._damage(f"{size} bytes do not start with an ELF header", 0)
        if self.data[4] not in (1, 2) or self.data[5] not in (1, 2):
            raise self._damage("the ELF header names no known class and byte order", 4)
        _ = self._header

    def _damage(self, what: str, offset: int) -> MalformedFile:
        return MalformedFile(f"{self.name}: {what}" if self.name else what, offset)

    @cached_property
    def bits(self) -> int:
        return 64 if self.data[4] == 2 else 32

    @cached_property
    def byte_order(self) -> ByteOrder:
        return "little" if self.data[5] == 1 else "big"

    def _layout(self, narrow: str, wide: str) -> struct.Struct:
        order = "<" if self.byte_order == "little" else ">"
        return struct.Struct(order + (wide if self.bits == 64 else narrow))

    @cached_property
    def _header(self) -> tuple[int, ...]:
        layout = self._layout("HHIIIIIHHHHHH", "HHIQQQIHHHHHH")
        self._checked(16, layout.size, "the ELF header")
        return layout.unpack_from(self.data, 16)

    @property
    def type(self) -> int:
        """e_type: 1 relocatable, 2 executable, 3 shared."""
        return self._header[0]

    @property
    def machine_number(self) -> int:
        return self._header[1]

    @property
    def machine(self) -> str:
        number = self.machine_number
        return str(read_table(__file__).get(number, f"ELF machine {number}"))

    def _checked(self, offset: int, size: int, what: str) -> bytes:
        if offset + size > len(self.data):
            excess = offset + size - len(self.data)
            raise self._damage(f"{what} ends {excess} bytes past the end of the file", offset)
        return self.data[offset : offset + size]

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """All sections with the null section; ``()`` when the file has no section headers."""
        layout = self._layout("10I", "IIQQQQIIQQ")
        start, step, count, names_at = self._header[5], *self._header[10:13]
        if not start:
            return ()
        if step < layout.size:
            raise self._damage(f"section headers of {step} bytes", start)
        what = "the table of section headers"
        first = layout.unpack_from(self._checked(start, step, what))
        count = count or first[5]  # the first section has the values that do not fit the header
        names_at = first[6] if names_at == SHN_XINDEX else names_at
        table = self._checked(start, step * count, what)
        rows = [layout.unpack_from(table, index * step) for index in range(count)]
        if names_at >= count:
            raise self._damage(f"the names are in section {names_at} of {count}", start)
        names = self._checked(rows[names_at][4], rows[names_at][5], "the section names")
        found = []
        for index, (name, kind, flags, at, offset, size, link, info, align, _) in enumerate(rows):
            if kind not in (SHT_NULL, SHT_NOBITS):
                self._checked(offset, size, f"section {index}")
            text = self._text(names, name, rows[names_at][4])
            found.append(Section(text, kind, flags, at, offset, size, link, info, align))
        return tuple(found)

    def _text(self, strings: bytes, at: int, start: int) -> str:
        """Return the string at ``at`` in a string table that starts at ``start`` in the file."""
        end = strings.find(b"\0", at, at + _LONGEST_NAME)
        if end < 0:
            if not strings and not at:
                return ""
            raise self._damage("a name does not end inside its table", start + at)
        return strings[at:end].decode("utf-8", "backslashreplace")

    def content(self, section: Section) -> bytes:
        """Return the bytes of a section that are in the file."""
        if section.type in (SHT_NULL, SHT_NOBITS):
            return b""
        return self.data[section.offset : section.offset + section.size]

    def section(self, name: str) -> Section | None:
        return next((s for s in self.sections if s.name == name), None)

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """Those of the type PT_LOAD."""
        layout = self._layout("8I", "IIQQQQQQ")
        start, step, count = self._header[4], *self._header[8:10]
        if count and step < layout.size:
            raise self._damage(f"program headers of {step} bytes", start)
        table = self._checked(start, step * count, "the table of program headers")
        found = []
        for index in range(count):
            row = layout.unpack_from(table, index * step)
            if row[0] == PT_LOAD:
                flags, offset, *sizes = row[1:7] if self.bits == 64 else (row[6], *row[1:6])
                found.append(Segment._make((*sizes, offset, flags)))
        return tuple(found)

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """The shared libraries that it is linked against, in order."""
        table = next((s for s in self.sections if s.type == SHT_DYNAMIC), None)
        if table is None or table.link >= len(self.sections):
            return ()
        names = self.sections[table.link]
        return tuple(
            self._text(self.content(names), value, names.offset)
            for tag, value in self._rows(table, self._layout("II", "QQ"))
            if tag == _DT_NEEDED
        )

    @cached_property
    def interpreter(self) -> str | None:
        """The dynamic linker that the program names."""
        section = self.section(".interp")
        return None if section is None else self._text(self.content(section), 0, section.offset)

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        """The whole symbol table with the null symbol; ``()`` for a stripped file."""
        table = next((s for s in self.sections if s.type == SHT_SYMTAB), None)
        if table is None:
            return ()
        if table.link >= len(self.sections) or self.sections[table.link].type == SHT_NOBITS:
            raise self._damage(f"the symbols' names are in section {table.link}", table.offset)
        start = self.sections[table.link].offset
        names = self.content(self.sections[table.link])
        found, wide, new = [], self.bits == 64, Symbol._make
        for row in self._rows(table, self._layout("IIIBBH", "IBBHQQ")):
            if wide:
                name, info, other, shndx, value, size = row
            else:
                name, value, size, info, other, shndx = row
            text = self._text(names, name, start)
            visibility = _VISIBILITY[other & 3]
            found.append(new((text, info >> 4, info & 15, visibility, shndx, value, size)))
        return tuple(found)

    def _rows(self, table: Section, layout: struct.Struct) -> Iterator[tuple[int, ...]]:
        if table.size % layout.size:
            raise self._damage(f"{table.name} ends inside an entry", table.offset + table.size)
        return layout.iter_unpack(self.content(table))

    @cached_property
    def globals(self) -> tuple[Symbol, ...]:
        return tuple(s for s in self.symbols if s.bind != STB_LOCAL and s.name)

    def address(self, symbol: Symbol) -> int:
        """Return the symbol's address without the Thumb bit."""
        is_code = symbol.type in (STT_FUNC, STT_IFUNC) and self.machine_number == EM_ARM
        return symbol.value & ~_THUMB_BIT if is_code else symbol.value

    def function_at(self, section: int, offset: int) -> str | None:
        """Return the function of an object file whose code contains this offset, or None."""
        for symbol in self.symbols:
            if symbol.shndx == section and symbol.type in (STT_FUNC, STT_IFUNC):
                start = self.address(symbol)
                if start <= offset < start + max(symbol.size, 1):
                    return symbol.name
        return None

    def relocations(self) -> Iterator[Relocation]:
        for section in self.sections:
            if section.type in (SHT_REL, SHT_RELA):
                addend = section.type == SHT_RELA
                layout = self._layout("IIi" if addend else "II", "QQq" if addend else "QQ")
                for offset, info, *_ in self._rows(section, layout):
                    symbol, kind = divmod(info, 1 << (32 if self.bits == 64 else 8))
                    yield Relocation(section.info, offset, symbol, kind)

    @cached_property
    def build_id(self) -> str | None:
        """The GNU build id in hex digits."""
        layout = self._layout("III", "III")
        for section in self.sections:
            content, at = self.content(section) if section.type == SHT_NOTE else b"", 0
            while at + layout.size <= len(content):
                name_size, size, kind = layout.unpack_from(content, at)
                name = at + layout.size
                start = name + _up(name_size, 4)
                if start + size > len(content):
                    raise self._damage(f"a note leaves {section.name}", section.offset + at)
                if kind == _NT_GNU_BUILD_ID and content[name : name + name_size] == b"GNU\0":
                    return content[start : start + size].hex()
                at = start + _up(size, 8 if section.alignment == 8 else 4)
        return None

    @cached_property
    def attributes(self) -> dict[int, int | str]:
        """Arm's build attributes of the whole file, by tag, without those of single sections."""
        found: dict[int, int | str] = {}
        for section in self.sections:
            if section.type == SHT_ARM_ATTRIBUTES:
                try:
                    found.update(_attributes(self.content(section), self.byte_order))
                except (IndexError, ValueError):
                    raise self._damage(f"{section.name} is truncated", section.offset) from None
        return found


def read_elf(path: Path) -> ElfFile:
    """Read an ELF file. Raises MalformedFile without a sound header, OSError if unreadable."""
    return ElfFile(read_regular(path), str(path))


def relocation_name(machine: int, kind: int) -> str:
    """ "R_ARM_THM_CALL"; the number for a machine that is not Arm's."""
    from elftools.elf.enums import ENUM_RELOC_TYPE_AARCH64, ENUM_RELOC_TYPE_ARM

    names = {EM_ARM: ENUM_RELOC_TYPE_ARM, EM_AARCH64: ENUM_RELOC_TYPE_AARCH64}.get(machine, {})
    return next((n for n, number in names.items() if number == kind), f"type {kind}")


def _up(size: int, alignment: int) -> int:
    return size + -size % alignment


def _attributes(section: bytes, order: ByteOrder) -> Iterator[tuple[int, int | str]]:
    """Layout: byte "A"; for each vendor length, name and scopes; a scope is tag, length, pairs."""
    at = 1 if section[:1] == b"A" else len(section)
    while at < len(section):
        end = _end(section, at, at, order)
        vendor, _, content = section[at + 4 : end].partition(b"\0")
        at, scope = end, 0
        while vendor == b"aeabi" and scope < len(content):
            end = _end(content, scope, scope + 1, order)
            if content[scope] == _WHOLE_FILE:
                yield from _pairs(content[scope + 5 : end])
            scope = end


def _end(data: bytes, start: int, field: int, order: ByteOrder) -> int:
    """Return the end of a block from ``start`` whose length is stored at ``field``."""
    end = start + int.from_bytes(data[field : field + 4], order)
    if not field + 4 <= end <= len(data):
        raise ValueError(end)
    return end


def _pairs(data: bytes) -> Iterator[tuple[int, int | str]]:
    at = 0
    while at < len(data):
        tag, at = _uleb(data, at)
        if tag == _COMPATIBILITY:  # a number and a string
            _, at = _uleb(data, at)
            at = data.index(b"\0", at) + 1
        elif tag in _TEXT_TAGS or (tag > _COMPATIBILITY and tag % 2):
            end = data.index(b"\0", at)
            yield tag, data[at:end].decode("ascii", "replace")
            at = end + 1
        else:
            value, at = _uleb(data, at)
            yield tag, value


def _uleb(data: bytes, at: int) -> tuple[int, int]:
    """Return a ULEB128 number (seven bits a byte, lowest first), and the offset after it."""
    value = 0
    for shift in range(0, 64, 7):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if not byte & 0x80:
            return value, at
    raise ValueError(at)
