"""Reading and writing ``ar`` archives (System V/GNU form, thin ones too, BSD names)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MAGIC, THIN = b"!<arch>\n", b"!<thin>\n"
_HEADER = 60


@dataclass(frozen=True)
class Member:
    name: str
    data: bytes
    offset: int  # of its header; two members may have one name


def is_archive(data: bytes) -> bool:
    return data[:8] in (MAGIC, THIN)


def members(path: Path) -> tuple[Member, ...]:
    """The members in order, without the index and the table of names. ``()`` if not an archive."""
    data = path.read_bytes()
    if not is_archive(data):
        return ()
    thin, position, long_names, found = data[:8] == THIN, 8, b"", []
    while position + _HEADER <= len(data):
        name = data[position : position + 16].decode("utf-8", "replace").rstrip()
        digits = data[position + 48 : position + 58].strip()
        size = int(digits) if digits.isdigit() else 0
        body, special = position + _HEADER, name in ("/", "//", "/SYM64/")
        content = data[body : body + size] if special or not thin else b""
        if name == "//":
            long_names = content
        elif not special and not name.startswith("__.SYMDEF"):
            found.append(_member(path, name, content, long_names, position, thin))
        position = body + (size if special or not thin else 0)
        position += position % 2
    return tuple(m for m in found if m.name != "__.SYMDEF")


def _member(
    path: Path, name: str, content: bytes, long_names: bytes, offset: int, thin: bool
) -> Member:
    if name.startswith("#1/"):  # BSD: the name precedes the content
        length = int(name[3:])
        return Member(content[:length].rstrip(b"\0").decode(), content[length:], offset)
    if name.startswith("/") and name[1:].split(":")[0].isdigit():
        start = int(name[1:].split(":")[0])
        end = long_names.find(b"\n", start)
        name = long_names[start:end].decode("utf-8", "replace")
    name = name.removesuffix("/")
    if thin:
        outside = path.parent / name
        content = outside.read_bytes() if outside.is_file() else b""
        name = Path(name).name
    return Member(name, content, offset)


def index(path: Path) -> tuple[str, ...]:
    """The symbols of the archive's index, without reading a member; ``()`` when it has none."""
    with path.open("rb") as file:
        if not is_archive(file.read(8)):
            return ()
        header = file.read(_HEADER)
        if header[:2] != b"/ ":
            return ()
        raw = file.read(int(header[48:58]))
    count = struct.unpack_from(">I", raw)[0]
    names = raw[4 + 4 * count :].split(b"\0")[:count]
    return tuple(name.decode("utf-8", "replace") for name in names)


def write_archive(path: Path, parts: Sequence[tuple[str, bytes, Sequence[str]]]) -> None:
    """Write members given as (name, content, symbols for the index), as ``ar rcsD`` does."""
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
