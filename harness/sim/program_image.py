"""Makes program images, and Intel HEX files, which every flashing tool accepts.

Boards run the images, which are flashed apart from the firmware (ports/program_image.h has the
layout)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from zlib import crc32

from harness.core.errors import UsageError

RUN_LENGTH = 16
_MAGIC = b"HILI"
_HEAD = struct.Struct("<4sII")  # magic, size, CRC-32 of what follows
_MIDDLE = struct.Struct(f"<{RUN_LENGTH}sII")  # run, offset of the command line, number of files
_FILE = struct.Struct("<24sII")  # name, offset, size
_ALIGNMENT = 32  # as the runner's other ports place files


def make_image(run: str, arguments: Sequence[str], files: Mapping[str, bytes], room: int) -> bytes:
    """``run``: the digits by which the board identifies the image. Raises UsageError."""
    line = " ".join(arguments).encode() + b"\0"
    start = _HEAD.size + _MIDDLE.size + _FILE.size * len(files)
    table, content = b"", line
    for name, data in files.items():
        content += bytes(-(start + len(content)) % _ALIGNMENT)
        table += _FILE.pack(name.encode(), start + len(content), len(data))
        content += data
    rest = _MIDDLE.pack(run.encode(), start, len(files)) + table + content
    image = _HEAD.pack(_MAGIC, _HEAD.size + len(rest), crc32(rest)) + rest
    if len(image) > room:
        raise UsageError(
            f"program and inputs take {len(image):,} bytes, and the board's flash has {room:,} for "
            "them: run fewer input sets, or give the region of the file pool more of the flash"
        )
    return image


def intel_hex(address: int, data: bytes) -> str:
    """Write records of 32 bytes, with extended linear addresses."""
    return "\n".join((*_records(address, data), ":00000001FF", ""))


def _records(address: int, data: bytes) -> Iterator[str]:
    upper = -1
    for offset in range(0, len(data), 32):
        position = address + offset
        # A record must not cross 64 KiB; images begin at a multiple of 32 bytes.
        if position >> 16 != upper:
            upper = position >> 16
            yield _record(0, 4, upper.to_bytes(2, "big"))
        yield _record(position & 0xFFFF, 0, data[offset : offset + 32])


def _record(offset: int, kind: int, data: bytes) -> str:
    body = bytes([len(data)]) + offset.to_bytes(2, "big") + bytes([kind]) + data
    return f":{body.hex().upper()}{-sum(body) & 0xFF:02X}"
