"""The anatomy of a ``.ptd``: tensors by name, for programs that keep their data outside.

Layout (``extension/flat_tensor/serialize`` of ExecuTorch 1.5.1): FlatBuffer with file identifier
FT01 and, from byte 8, a header ``FH01`` (u32 length, u64 FlatBuffer offset, u64 FlatBuffer size,
u64 segment base, u64 segment size); behind it the data segments.
"""

from __future__ import annotations

import struct
from functools import partial

from harness.footprint import gaps, segments
from harness.footprint.anatomy import Anatomy, Tally
from harness.footprint.claims import Claims
from harness.formats.damage import DamagedFile
from harness.formats.flatbuffer import FlatBuffer
from harness.formats.schema import Schema

_GENERAL = ("tables",)
_MAGIC = b"FH01"
_HEADER_LENGTH = 40


def anatomy(view: memoryview, schema: Schema) -> Anatomy:
    """Raises DamagedFile for a file that does not keep to the format."""
    if len(view) < 8 + _HEADER_LENGTH or bytes(view[8:12]) != _MAGIC:
        raise DamagedFile("no FH01 header", min(8, len(view)))
    length, start, size, base = struct.unpack_from("<IQQQ", view, 12)
    if length < _HEADER_LENGTH or start + size > len(view) or base > len(view):
        raise DamagedFile("the FH01 header points outside the file", 12)
    limit = start + size
    if start != 0 or 8 + length > limit:
        raise DamagedFile(f"a FlatBuffer at {start} is not supported", 16)
    buffer = FlatBuffer(view, schema, limit)
    root, tally = buffer.root(), Tally()
    claims = Claims(buffer, _GENERAL)
    claims.bytes(0, 8, ("header", "root offset and identifier"))
    claims.bytes(8, 8 + length, ("header", "FH01 header"))
    owners: dict[int, segments.Owner] = {}

    def add(name: str, segment: segments.Segment) -> None:
        tally.add(("data", name), segment.end - segment.start)

    for item in root.items("named_data"):
        key = item.get("key") or ""
        owners.setdefault(item.get("segment_index"), partial(add, key))
        claims.table(item, (*_GENERAL, "named data", key))
    claims.field(root, "segments", (*_GENERAL, "index of segments"))
    claims.table(root, (*_GENERAL, "root"))
    for gap in claims.account(tally):
        foreign = buffer.has_unknown_fields
        gaps.classify(buffer.view, gap.start, gap.end, _GENERAL, tally, foreign=foreign)
    found = segments.segments_of(root, base, len(view))
    segments.account(view, found, owners, limit, tally)
    return Anatomy("ptd", len(view), tally.parts())
