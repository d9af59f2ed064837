"""Sections, segments and symbols of an ELF, every offset checked before it is used.

Layout: System V ABI, chapters "Object Files" and "Program Loading" (ELF32 and ELF64). DWARF is
left to pyelftools; the tables here are read by numpy because symbols come in ten thousands.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.formats.damage import WrongOffset

if TYPE_CHECKING:  # numpy takes longer to import than a warm run may take
    import numpy as np
    import numpy.typing as npt

SHT_SYMTAB, SHT_NOBITS = 2, 8
SHF_ALLOC, SHF_EXECINSTR = 2, 4
PT_LOAD = 1
_NOTYPE, _OBJECT, _FUNC, _FILE = 0, 1, 2, 4
_THUMB_BIT = 1
_EM_ARM = 40
_SHN_LORESERVE = 0xFF00


@dataclass(frozen=True)
class Section:
    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    entry_size: int

    @property
    def allocated(self) -> bool:
        return bool(self.flags & SHF_ALLOC) and self.size > 0

    @property
    def kind(self) -> str:
        """ "code", "data", or "reserved" for what takes memory but is not in the file."""
        if self.type == SHT_NOBITS:
            return "reserved"
        return "code" if self.flags & SHF_EXECINSTR else "data"


@dataclass(frozen=True)
class Segment:
    address: int  # where it runs
    load: int  # where it is stored
    file_size: int


@dataclass(frozen=True)
class Symbol:
    """``file`` is the source of a local symbol; ``is_label`` marks one without size or type."""

    name: str
    address: int
    size: int
    is_label: bool
    file: str


@dataclass(frozen=True)
class ElfFile:
    sections: tuple[Section, ...]
    segments: tuple[Segment, ...]
    symbols: tuple[Symbol, ...]


def read_elf(view: memoryview, *, symbols: bool = True) -> ElfFile:
    """Raises WrongOffset for what does not keep to the format."""
    return _Reader(view).read(symbols)


class _Reader:
    def __init__(self, view: memoryview) -> None:
        if len(view) < 52 or bytes(view[:4]) != b"\x7fELF":
            raise WrongOffset(f"{len(view)} bytes do not start with an ELF header", 0)
        if view[4] not in (1, 2) or view[5] not in (1, 2):
            raise WrongOffset("the ELF header names no known class and byte order", 4)
        self._view, self._wide = view, view[4] == 2
        self._order = "<" if view[5] == 1 else ">"
        self._machine = self._unpack("H", 18)[0]

    def read(self, symbols: bool) -> ElfFile:
        _, phoff, shoff = self._unpack("QQQ" if self._wide else "III", 24)
        counts = 54 if self._wide else 42
        ph_size, ph_count, sh_size, sh_count, names = self._unpack("HHHHH", counts)
        sections = self._sections(shoff, sh_size, sh_count, names)
        segments = self._segments(phoff, ph_size, ph_count)
        return ElfFile(sections, segments, self._symbols(sections) if symbols else ())

    def _unpack(self, codes: str, at: int) -> tuple[Any, ...]:
        try:
            return struct.unpack_from(self._order + codes, self._view, at)
        except struct.error:
            raise WrongOffset("the file ends here: it is truncated", len(self._view)) from None

    def _bytes(self, offset: int, size: int, what: str) -> memoryview:
        if offset + size > len(self._view):
            behind = offset + size - len(self._view)
            raise WrongOffset(f"{what} ends {behind} bytes behind the end of the file", offset)
        return self._view[offset : offset + size]

    def _sections(self, at: int, size: int, count: int, names: int) -> tuple[Section, ...]:
        smallest = 64 if self._wide else 40
        if not at or not count:
            raise WrongOffset("there are no section headers", 32)
        if size < smallest:
            raise WrongOffset(f"section headers of {size} bytes", 46)
        self._bytes(at, size * count, "the table of section headers")
        codes = "IIQQQQIIQQ" if self._wide else "IIIIIIIIII"
        rows = [self._unpack(codes, at + i * size) for i in range(count)]
        if names >= count:
            raise WrongOffset(f"section {names} has the names, but there are {count}", 50)
        strings = self._bytes(rows[names][4], rows[names][5], "the section names")
        found = []
        for index, (name, kind, flags, address, offset, length, link, _, _, entry) in enumerate(
            rows
        ):
            if kind not in (0, SHT_NOBITS):
                self._bytes(offset, length, f"section {index}")
            found.append(
                Section(_text(strings, name), kind, flags, address, offset, length, link, entry)
            )
        return tuple(found)

    def _segments(self, at: int, size: int, count: int) -> tuple[Segment, ...]:
        found = []
        if count and size < (56 if self._wide else 32):
            raise WrongOffset(f"program headers of {size} bytes", at)
        for index in range(count):
            if self._wide:
                kind, _, _, address, load, length = self._unpack("IIQQQQ", at + index * size)
            else:
                kind, _, address, load, length = self._unpack("IIIII", at + index * size)
            if kind == PT_LOAD:
                found.append(Segment(address, load, length))
        return tuple(found)

    def _symbols(self, sections: tuple[Section, ...]) -> tuple[Symbol, ...]:
        import numpy as np

        table = next((s for s in sections if s.type == SHT_SYMTAB), None)
        if table is None:
            return ()
        if table.link >= len(sections):
            raise WrongOffset(f"the symbols' names are in section {table.link}", table.offset)
        names = sections[table.link]
        if names.type == SHT_NOBITS:
            raise WrongOffset("the symbols' names are in a section without content", names.offset)
        strings = bytes(self._bytes(names.offset, names.size, "the symbols' names"))
        rows = np.frombuffer(
            self._bytes(table.offset, table.size, "the symbol table"), self._row_type(),
            table.size // self._row_type().itemsize,
        )  # fmt: skip
        return tuple(self._pick(rows, strings))

    def _row_type(self) -> np.dtype[Any]:
        import numpy as np

        if self._wide:
            names = ["name", "info", "other", "shndx", "value", "size"]
            codes = ["u4", "u1", "u1", "u2", "u8", "u8"]
        else:
            names = ["name", "value", "size", "info", "other", "shndx"]
            codes = ["u4", "u4", "u4", "u1", "u1", "u2"]
        return np.dtype([(n, self._order + c) for n, c in zip(names, codes, strict=True)])

    def _pick(self, rows: npt.NDArray[Any], strings: bytes) -> list[Symbol]:
        """Functions, objects and labels that are in a section; not Arm's mapping symbols."""
        found, file = [], ""
        for name, value, size, info, shndx in zip(
            *(rows[c].tolist() for c in ("name", "value", "size", "info", "shndx")), strict=True
        ):
            kind, is_local = info & 15, info >> 4 == 0
            if kind == _FILE:
                file = _text(strings, name)
            if kind not in (_NOTYPE, _OBJECT, _FUNC) or not 0 < shndx < _SHN_LORESERVE:
                continue
            text = _text(strings, name)
            if not text or text.startswith("$") or (kind == _NOTYPE and not size and is_local):
                continue
            if kind == _FUNC and self._machine == _EM_ARM:
                value &= ~_THUMB_BIT
            found.append(Symbol(text, value, size, size == 0, file if is_local else ""))
        return found


def _text(strings: bytes | memoryview, at: int) -> str:
    raw = bytes(strings[at : at + 4096])
    return raw.partition(b"\0")[0].decode(errors="backslashreplace")
