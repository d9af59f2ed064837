"""What decides whether a 32-bit Arm ELF can run: where its segments lie and which core it is for.

Layouts: the ELF specification, and "ELF for the Arm Architecture" and "Addenda to, and Errata in,
the ABI for the Arm Architecture" for the build attributes (Arm's abi-aa).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.standin.failure import StandinError

_LOAD = 1
_ATTRIBUTES = 0x70000003  # SHT_ARM_ATTRIBUTES
_EM_ARM = 40
_SYMBOLS = 2  # SHT_SYMTAB
_FUNCTION = 2  # STT_FUNC
_DOORBELL = b"npu-request\0"
_DRIVER = b"\0ethosu_invoke"
_CPU_NAME, _CPU_ARCH, _CPU_PROFILE, _PAC = 5, 6, 7, 50
_STRINGS = (4, 5, 65, 67)  # tags below 70 whose value is a string against the parity rule


@dataclass(frozen=True)
class Segment:
    load: int  # physical address, where the bytes are put
    run: int  # virtual address, where the program finds them
    file_size: int
    size: int


@dataclass(frozen=True)
class Elf:
    path: Path
    segments: tuple[Segment, ...]
    cpu: str  # Tag_CPU_name, or ""
    architecture: int | None  # Tag_CPU_arch
    profile: str  # "M", "A", "R" or ""
    pointer_authentication: int  # Tag_PAC_extension: 2 needs the instructions, 1 only hints
    doorbell: bool = False  # reaches the NPU by targets/runner/ethosu/doorbell.h
    functions: Mapping[str, int] = field(default_factory=dict)  # addresses, when it has a driver


def read_elf(path: Path) -> Elf:
    """Raises StandinError when it is not a complete little-endian 32-bit Arm executable."""
    try:
        image = path.read_bytes()
    except OSError as error:
        raise StandinError(f"cannot open application {path}: {error.strerror}") from error
    if image[:4] != b"\x7fELF":
        raise StandinError(f"application {path} is not an ELF file")
    if len(image) < 52 or image[4:6] != b"\x01\x01" or image[18:20] != bytes((_EM_ARM, 0)):
        raise StandinError(f"application {path} is not a 32-bit little-endian Arm ELF file")
    try:
        segments = tuple(_segments(image))
        tags = dict(_tags(image))
        functions = dict(_functions(image)) if _DRIVER in image else {}
    except (struct.error, IndexError, ValueError) as error:
        raise StandinError(f"application {path} is damaged: {error}") from error
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
        doorbell=_DOORBELL in image,
        functions=functions,
    )


def _segments(image: bytes) -> Iterator[Segment]:
    (start,) = struct.unpack_from("<I", image, 28)
    step, count = struct.unpack_from("<HH", image, 42)
    for index in range(count):
        kind, _, run, load, in_file, size = struct.unpack_from("<6I", image, start + index * step)
        if kind == _LOAD and size:
            yield Segment(load, run, in_file, size)


def _functions(image: bytes) -> Iterator[tuple[str, int]]:
    """Functions by name, without the bit that says Thumb."""
    (start,) = struct.unpack_from("<I", image, 32)
    step, count = struct.unpack_from("<HH", image, 46)
    headers = [struct.unpack_from("<10I", image, start + n * step) for n in range(count)]
    for header in headers:
        if header[1] == _SYMBOLS and header[6] < count:
            strings = headers[header[6]][4]
            for at in range(header[4], header[4] + header[5], 16):
                name, value, _, info = struct.unpack_from("<IIIB", image, at)
                if info & 15 == _FUNCTION and value:
                    text = image[strings + name : image.index(b"\0", strings + name)]
                    yield text.decode("ascii", "replace"), value & ~1


def _tags(image: bytes) -> Iterator[tuple[int, int | str]]:
    """The attributes of the whole file; later sections and files with their own are rare."""
    (start,) = struct.unpack_from("<I", image, 32)
    step, count = struct.unpack_from("<HH", image, 46)
    for index in range(count):
        base = start + index * step
        _, kind, _, _, offset, size = struct.unpack_from("<6I", image, base)
        if kind == _ATTRIBUTES:
            yield from _attributes(image[offset : offset + size])


def _attributes(section: bytes) -> Iterator[tuple[int, int | str]]:
    """Format byte "A"; length, vendor, then (1, length, pairs) for the whole file."""
    if section[:1] != b"A":
        return
    (length,) = struct.unpack_from("<I", section, 1)
    body = section[5 : 1 + length]
    vendor, _, content = body.partition(b"\0")
    if vendor != b"aeabi" or content[:1] != b"\x01":
        return
    (length,) = struct.unpack_from("<I", content, 1)
    pairs, at = content[:length], 5
    while at < len(pairs):
        tag, at = _uleb(pairs, at)
        if tag == 32:  # Tag_compatibility: a number and a string
            _, at = _uleb(pairs, at)
            at = pairs.index(b"\0", at) + 1
        elif tag in _STRINGS or (tag > 32 and tag % 2):
            end = pairs.index(b"\0", at)
            yield tag, pairs[at:end].decode("ascii", "replace")
            at = end + 1
        else:
            value, at = _uleb(pairs, at)
            yield tag, value


def _uleb(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at
