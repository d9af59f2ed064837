"""Reads and writes ``ar`` archives (System V/GNU form, thin ones too, BSD names)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.core.errors import MalformedFile
from harness.system.files import read_regular, regular

MAGIC, THIN = b"!<arch>\n", b"!<thin>\n"
_HEADER, _END = 60, b"`\n"


@dataclass(frozen=True)
class Member:
    name: str
    data: bytes
    offset: int  # of its header; two members may have one name


def is_archive(data: bytes) -> bool:
    return data[:8] in (MAGIC, THIN)


def members(path: Path) -> tuple[Member, ...]:
    """Return the members in order, without the index and the table of names.

    ``()`` if not an archive.

    Raises MalformedFile for one that is truncated or contradicts itself, OSError when it cannot be
    read."""
    data = read_regular(path)
    if not is_archive(data):
        return ()
    thin, position, long_names, found = data[:8] == THIN, 8, b"", []
    while position < len(data):
        name, size = _read_header(path, data, position)
        body, special = position + _HEADER, name in ("/", "//", "/SYM64/")
        inside = size if special or not thin else 0
        if body + inside > len(data):
            raise MalformedFile(f"{path}: member {name!r} leaves the archive", position)
        content = data[body : body + inside]
        if name == "//":
            long_names = content
        elif not special and not name.startswith("__.SYMDEF"):
            found.append(_member(path, name, content, long_names, position, thin))
        position = body + inside
        position += position % 2
    return tuple(m for m in found if m.name != "__.SYMDEF")


def _read_header(path: Path, data: bytes, position: int) -> tuple[str, int]:
    """Name and size of the member whose header is at ``position``."""
    header = data[position : position + _HEADER]
    digits = header[48:58].strip()
    if len(header) < _HEADER or header[58:] != _END or not digits.isdigit():
        raise MalformedFile(f"{path}: no member starts where one must start", position)
    return header[:16].decode("utf-8", "replace").rstrip(), int(digits)


def _member(
    path: Path, name: str, content: bytes, long_names: bytes, offset: int, thin: bool
) -> Member:
    if name.startswith("#1/") and name[3:].isdecimal():  # BSD: the name precedes the content
        length = int(name[3:])
        own = content[:length].rstrip(b"\0").decode("utf-8", "replace")
        return Member(own, content[length:], offset)
    if name.startswith("/") and name[1:].split(":")[0].isdecimal():
        start = int(name[1:].split(":")[0])
        end = long_names.find(b"\n", start)
        if end < 0:
            raise MalformedFile(
                f"{path}: the name of a member is not in the table of names", offset
            )
        name = long_names[start:end].decode("utf-8", "replace")
    name = name.removesuffix("/")
    if thin:
        outside = path.parent / name.replace("\0", "")
        content = read_regular(outside) if outside.is_file() else b""
        name = Path(name).name
    return Member(name, content, offset)


def index(path: Path) -> tuple[str, ...]:
    """Return the symbols of the archive's index, without reading a member; ``()`` when it has none.

    Raises MalformedFile and OSError as ``members`` does."""
    with regular(path) as (file, length):
        if not is_archive(file.read(8)):
            return ()
        header = file.read(_HEADER)
        if header[:2] != b"/ ":
            return ()
        _, size = _read_header(path, header, 0)
        raw = file.read(min(size, length))
    count = int.from_bytes(raw[:4], "big")
    if len(raw) < size or 4 + 4 * count > size:
        raise MalformedFile(f"{path}: the index is truncated", 8 + _HEADER)
    names = raw[4 + 4 * count :].split(b"\0")[:count]
    return tuple(name.decode("utf-8", "replace") for name in names)


def write_archive(path: Path, parts: Sequence[tuple[str, bytes, Sequence[str]]]) -> None:
    """Write members, given as (name, content, symbols for the index), as ``ar rcsD`` does."""
    table, names = b"", []
    for name, _, _ in parts:
        names.append(len(table))
        table += name.encode() + b"/\n"
    symbols = [(symbol, at) for at, part in enumerate(parts) for symbol in part[2]]
    text = b"".join(symbol.encode() + b"\0" for symbol, _ in symbols)
    size = 4 + 4 * len(symbols) + len(text)
    position = 8 + _HEADER + size + size % 2 + _HEADER + len(table) + len(table) % 2
    offsets = []
    for _, content, _ in parts:
        offsets.append(position)
        position += _HEADER + len(content) + len(content) % 2
    packed = struct.pack(f">{len(symbols) + 1}I", len(symbols), *(offsets[at] for _, at in symbols))
    chunks = [MAGIC, _header("/", size), packed, text, b"\n" * (size % 2)]
    chunks += [_header("//", len(table)), table, b"\n" * (len(table) % 2)]
    for (_, content, _), at in zip(parts, names, strict=True):
        chunks += [_header(f"/{at}", len(content)), content, b"\n" * (len(content) % 2)]
    path.write_bytes(b"".join(chunks))


def _header(name: str, size: int) -> bytes:
    return f"{name:<16}{0:<12}{0:<6}{0:<6}{644:<8}{size:<10}`\n".encode()
