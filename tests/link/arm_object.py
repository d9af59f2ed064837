"""Writes small Arm objects, so that a test needs no assembler."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from harness.formats.elf import SHN_COMMON, STB_GLOBAL, STB_WEAK, STT_FUNC, STT_OBJECT

_R_ARM_ABS32 = 2
_EABI5 = 0x05000000
_HEADER, _SECTION = 52, 40


@dataclass(frozen=True)
class NewSymbol:
    """``state``: "undef", "undefweak", "def", "defweak" or "common". A reference with ``used`` gets
    a word in .data."""

    name: str
    state: str
    function: bool = False
    used: bool = True
    size: int = 4


def write_object(symbols: Sequence[NewSymbol]) -> bytes:
    """A little-endian 32-bit Arm object; definitions are in .text (functions) or .data."""
    strings, table, text, data = b"\0", [bytes(16)], b"", b""
    relocations = []
    for number, symbol in enumerate(symbols, 1):
        bind = STB_WEAK if symbol.state in ("undefweak", "defweak") else STB_GLOBAL
        kind, shndx, value, size = 0, 0, 0, 0
        if symbol.state in ("undef", "undefweak"):
            if symbol.used:
                relocations.append(struct.pack("<II", len(data), number << 8 | _R_ARM_ABS32))
                data += bytes(4)
        elif symbol.state == "common":
            kind, shndx, value, size = STT_OBJECT, SHN_COMMON, 4, symbol.size
        elif symbol.function:
            kind, shndx, value, size = STT_FUNC, 1, len(text) | 1, symbol.size
            text += b"\x70\x47\x00\xbf"  # bx lr; nop
        else:
            kind, shndx, value, size = STT_OBJECT, 2, len(data), symbol.size
            data += bytes(symbol.size + -symbol.size % 4)
        table.append(struct.pack("<IIIBBH", len(strings), value, size, bind << 4 | kind, 0, shndx))
        strings += symbol.name.encode() + b"\0"
    return _file(text, data, b"".join(relocations), b"".join(table), strings)


def _file(text: bytes, data: bytes, relocations: bytes, table: bytes, strings: bytes) -> bytes:
    names = b"\0.text\0.data\0.rel.data\0.symtab\0.strtab\0.shstrtab\0"
    # name, type, flags, content, link, info, alignment, entry size
    sections = (
        (".text", 1, 6, text, 0, 0, 4, 0),
        (".data", 1, 3, data, 0, 0, 4, 0),
        (".rel.data", 9, 0x40, relocations, 4, 2, 4, 8),
        (".symtab", 2, 0, table, 5, 1, 4, 16),
        (".strtab", 3, 0, strings, 0, 0, 1, 0),
        (".shstrtab", 3, 0, names, 0, 0, 1, 0),
    )
    body, headers = b"", [bytes(_SECTION)]
    for name, kind, flags, content, link, info, align, entry in sections:
        body += bytes(-len(body) % align)
        at = names.find(b"\0" + name.encode() + b"\0") + 1
        headers.append(
            struct.pack(
                "<10I",
                at,
                kind,
                flags,
                0,
                _HEADER + len(body),
                len(content),
                link,
                info,
                align,
                entry,
            )
        )
        body += content
    body += bytes(-len(body) % 4)
    header = (
        b"\x7fELF\x01\x01\x01"
        + bytes(9)
        + struct.pack(
            "<HHIIIIIHHHHHH",
            1,
            40,
            1,
            0,
            0,
            _HEADER + len(body),
            _EABI5,
            _HEADER,
            0,
            0,
            _SECTION,
            len(headers),
            len(headers) - 1,
        )
    )
    return header + body + b"".join(headers)
