"""Nothing of the machine that made a bundle is in it: no path of its own, no user, no host.

Texts of ours lose the folders of every absolute path. What a target wrote, and the debug
information of an ELF, keep their length: a path there is overwritten, so that every offset and the
code itself stay as they were.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.bundle.errors import PathInside
from harness.formats.elf import SHF_ALLOC, SHT_NOBITS, SHT_NULL, ElfFile

_SHF_COMPRESSED = 0x800  # System V ABI, chapter 4, "Section Attribute Flags"
_STRINGS = (".debug_str", ".debug_line_str")  # DWARF 5, section 7.5.5: nothing but strings
_FILL = b"_"
_PATH = re.compile(r"(?<![\w./~-])/(?:[^\s/\"'`,:;=]+/)+([^\s/\"'`,:;=]*)")
# Between other data (the file tables of DWARF 4 and before), so it has to look like one.
_IN_DATA = re.compile(rb"(?<=\x00)/[\w.+-]{2,}/(?:[\w.+@~-]+/)*(?=[\w.+@~-]*\x00)")
_IN_STRINGS = re.compile(rb"(?:\A|(?<=\x00))/(?:[^\x00]*/)?")
_SHORT = 3  # a host's name that is no longer stands in everything
_EVERYBODYS = ("localhost", "/root", "/")


def without_folders(text: str) -> str:
    """Every absolute path in it by the last of its names alone."""
    return _PATH.sub(lambda found: found[1], text)


def plain_fields(value: Any) -> Any:
    """The same for every text in a JSON value."""
    if isinstance(value, str):
        return without_folders(value)
    if isinstance(value, Mapping):
        return {without_folders(str(name)): plain_fields(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_fields(item) for item in value]
    return value


def overwritten(data: bytes, roots: Iterable[str]) -> bytes:
    """Each of these folders by as many other bytes, longest first."""
    for root in sorted(set(roots), key=len, reverse=True):
        found = root.encode()
        data = data.replace(found, _FILL * len(found))
    return data


def scrubbed_elf(member: str, data: bytes, roots: Iterable[str]) -> bytes:
    """An ELF whose debug information names no folder of this machine; what is loaded of it stays
    as it is. Raises PathInside for debug information that cannot be looked into, DamagedFile."""
    new = bytearray(data)
    elf = ElfFile(data, member)
    for section in elf.sections:
        if section.flags & SHF_ALLOC or section.type in (SHT_NULL, SHT_NOBITS):
            continue
        if section.flags & _SHF_COMPRESSED:
            raise PathInside(member, f"compressed debug information ({section.name})")
        content = elf.content(section)
        pattern = _IN_STRINGS if section.name in _STRINGS else _IN_DATA
        content = pattern.sub(lambda found: _FILL * len(found[0]), content)
        new[section.offset : section.offset + section.size] = overwritten(content, roots)
    return bytes(new)


def check_nothing_inside(members: Mapping[str, bytes], roots: Iterable[str]) -> None:
    """Raises PathInside."""
    wanted = [re.compile(re.escape(root.encode())) for root in roots if root not in _EVERYBODYS]
    host = socket.gethostname()
    if len(host) > _SHORT and host not in _EVERYBODYS:
        wanted.append(re.compile(rb"(?<![\w-])" + re.escape(host.encode()) + rb"(?![\w-])"))
    for name, data in members.items():
        for pattern in wanted:
            if found := pattern.search(data):
                raise PathInside(name, found[0].decode("utf-8", "replace"))


def folders(paths: Iterable[Path | str | None]) -> tuple[str, ...]:
    """Those that are more than the file system's root, as they are written."""
    absolute = (str(Path(path)) for path in paths if path is not None)
    return tuple(sorted({path for path in absolute if path.startswith("/") and path != "/"}))
