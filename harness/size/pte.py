"""The anatomy of a ``.pte``: every byte of the file under a path.

Layout (``schema/extended_header.h`` and ``exir/_serialize/_program.py`` of ExecuTorch 1.5.1):
FlatBuffer with file identifier ET12 and, from byte 8, an extended header ``eh00`` (u32 length,
u64 FlatBuffer size, u64 segment base, u64 segment size); then the data segments.

The blob of an Ethos-U's delegate has parts: commands, weights, scales. One that is not a Vela
stream (``formats/ethosu.py``) is one opaque part. In the commands, only the registers with
addresses of constants are followed; nothing is executed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from harness.core.errors import MalformedFile
from harness.formats import ethosu
from harness.formats.flatbuffer import FlatBuffer, Table, Vector
from harness.formats.schema import Schema
from harness.npu.blob import INPUTS, OUTPUTS, WEIGHTS, read_actions, read_blob
from harness.npu.errors import EthosUError
from harness.npu.stream import Write, decode_at, register_set
from harness.size.anatomy import Anatomy, Numbering, Part, PartPath, Span, Tally, sweep
from harness.size.claims import SHARED_INDEX, Claims, Constant, Plans, claim_program, classify_gap

_GENERAL = ("program",)
_MAGIC = b"eh00"
_SHORTEST_HEADER = 24
_ROOT_AND_IDENTIFIER = 8
BACKEND = "EthosUBackend"
_BLOCKS = {"cmd_data": "command stream", "weight_data": "constants"}
_NPU_MEMORY = 1 << 8  # DMA0_DST_REGION: the destination is the NPU's own memory
_USES = ("weights", "scales", "lookup tables", "copied by DMA")  # the first that fits wins


@dataclass(frozen=True)
class Header:
    size: int  # bytes of the extended header, 0 when there is none
    flatbuffer_size: int  # bytes of the FlatBuffer, the header included
    base: int  # where segment offsets count from; 0 without segments


def anatomy(view: memoryview, schema: Schema, layers: Sequence[str] = ()) -> Anatomy:
    """Return the parts of a whole ``.pte``.

    ``layers``: of the model, by instruction, as its export recorded them. Raises MalformedFile for
    a file that violates the format."""
    header = read_header(view, schema)
    buffer = FlatBuffer(view, schema, header.flatbuffer_size)
    program = buffer.root()
    claims, tally = Claims(buffer, _GENERAL), Tally()
    claims.bytes(0, _ROOT_AND_IDENTIFIER, ("header", "root offset and identifier"))
    end = _ROOT_AND_IDENTIFIER + header.size
    claims.bytes(_ROOT_AND_IDENTIFIER, end, ("header", "extended header"))
    blobs = _Blobs(view, tally)
    constants = _inline(program, claims, "constant_buffer", "storage")
    delegates = _inline(program, claims, "backend_delegate_data", "data")
    plans = claim_program(program, claims, _GENERAL, layers)
    claims.account(tally)
    blobs.name_delegates(program, plans)
    blobs.account_inline(constants, delegates, plans)
    segments = segments_of(program, header.base, len(view))
    owners = blobs.segment_owners(program, plans)
    _account_segments(view, segments, owners, header.flatbuffer_size, tally)
    memory = (*plans.memory, *blobs.memory)
    constants_used = (c for c in plans.constants.values() if c.user)
    users: dict[PartPath, str] = {("constants", c.label): c.user for c in constants_used}
    return Anatomy("pte", len(view), tally.parts(), memory, users=users)


def read_header(view: memoryview, schema: Schema) -> Header:
    """Read the header. Raises MalformedFile for another kind of file, or a damaged header."""
    if len(view) < _ROOT_AND_IDENTIFIER + 4:
        raise MalformedFile(f"{len(view)} bytes are too few for a program", len(view))
    if bytes(view[4:8]) != schema.identifier.encode():
        raise MalformedFile(
            f"not an {schema.identifier} file: its identifier is {bytes(view[4:8])!r}", 4
        )
    if bytes(view[8:12]) != _MAGIC:
        return Header(0, len(view), 0)
    if len(view) < _ROOT_AND_IDENTIFIER + _SHORTEST_HEADER:
        raise MalformedFile("the extended header is cut off", len(view))
    size, flatbuffer_size, base = struct.unpack_from("<IQQ", view, 12)
    if not _SHORTEST_HEADER <= size <= min(flatbuffer_size, len(view)) - _ROOT_AND_IDENTIFIER:
        raise MalformedFile(f"an extended header of {size} bytes", 12)
    if flatbuffer_size > len(view):
        raise MalformedFile(
            f"the FlatBuffer of {flatbuffer_size} bytes ends past the end of the file", 16
        )
    if base and not flatbuffer_size <= base <= len(view):
        raise MalformedFile(f"the segments start at {base}, outside the rest of the file", 24)
    return Header(size, flatbuffer_size, base)


def _inline(program: Table, claims: Claims, name: str, data: str) -> dict[int, Vector]:
    """Return the vectors of ``data`` stored inside the FlatBuffer; ``_Blobs`` accounts for them."""
    index_path = (*_GENERAL, f"index of {name.replace('_', ' ')}")
    vectors = ((index, table.get(data)) for index, table in enumerate(program.items(name)))
    return {n: v for n, v in vectors if v is not None and claims.reserve(v, index_path)}


class _Blobs:
    """Accounts for data: constants, delegates and named data, inline or in segments."""

    def __init__(self, view: memoryview, tally: Tally) -> None:
        self._view, self._tally = view, tally
        self._inline_names: dict[int, str] = {}
        self._segment_names: dict[int, str] = {}
        self._external_names: dict[str, str] = {}
        self.memory: list[Part] = []

    def name_delegates(self, program: Table, plans: Plans) -> None:
        locations = program.buffer.schema.enums["DataLocation"]
        numbering = Numbering()
        for delegate in plans.delegates:
            data = delegate.get("processed")
            if data is not None:
                inline = locations.get(data.get("location")) == "INLINE"
                names = self._inline_names if inline else self._segment_names
                name = numbering.name(delegate.get("id") or "")
                names.setdefault(data.get("index"), name)

    def account_inline(
        self, constants: dict[int, Vector], delegates: dict[int, Vector], plans: Plans
    ) -> None:
        for index, vector in delegates.items():
            if name := self._inline_names.get(index):
                self._delegate(vector.raw(), name)
            else:
                self._tally.add(("unreferenced", f"delegate data {index}"), len(vector.raw()))
        for index, vector in constants.items():
            constant = plans.constants.get(index)
            unused = ("unreferenced", f"constant {index}")
            path = unused if constant is None else ("constants", constant.label)
            self._tally.add(path, len(vector.raw()))

    def _delegate(self, blob: memoryview, name: str) -> None:
        path = ("delegates", name)
        if not name.startswith(BACKEND):
            self._tally.add((*path, "opaque"), len(blob))
            return
        needs = split(blob, path, self._tally)
        for key, block in needs.keys.items():
            self._external_names[key] = f"{block} of {name}"
        for kind, size in {"scratch": needs.scratch, **needs.memory}.items():
            if size:
                self.memory.append(Part((f"NPU {kind} of {name}", "working memory"), size))

    def segment_owners(self, program: Table, plans: Plans) -> dict[int, Accounting]:
        """Return the function that accounts for each segment, by its number."""
        owners: dict[int, Accounting] = {}

        def add(table: Table, known: dict[int, Constant], kind: str) -> None:
            listed = enumerate(table.items("offsets"))
            offsets = {index: offset for index, offset in listed if index != SHARED_INDEX}
            if offsets:
                owners[table.get("segment_index")] = partial(self._tensors, offsets, known, kind)

        constant = program.get("constant_segment")
        if constant is not None:
            add(constant, plans.constants, "constants")
        for index, table in enumerate(program.items("mutable_data_segments")):
            add(table, plans.mutable.get(index, {}), "initial state")
        for index, name in self._segment_names.items():
            owners[index] = partial(self._delegate_segment, name)
        for item in program.items("named_data"):
            account = partial(self._named_segment, item.get("key") or "")
            owners.setdefault(item.get("segment_index"), account)
        return owners

    def _tensors(
        self,
        offsets: Mapping[int, int],
        known: Mapping[int, Constant],
        kind: str,
        segment: DataSegment,
    ) -> None:
        """Account for a segment of constant data: ``offsets`` by index, names in ``known``."""
        view, tally, size = self._view, self._tally, segment.end - segment.start
        at_offset: dict[int, list[int]] = {}
        for index, offset in offsets.items():
            if offset > size:
                raise MalformedFile(f"constant {index} starts past its segment", segment.start)
            at_offset.setdefault(offset, []).append(index)
        edges = [*sorted(at_offset), size]
        classify_gap(view, segment.start, segment.start + edges[0], ("before constants",), tally)
        for start, end in pairwise(edges):
            named = [known[index] for index in at_offset[start] if index in known]
            if named:
                largest = max(named, key=lambda n: n.size)
                used = any(n.used for n in named)
                used_size = min(largest.size, end - start)
                tally.add((kind, replace(largest, used=used).label), used_size)
                low = segment.start + start + used_size
                classify_gap(view, low, segment.start + end, ("between constants",), tally)
            else:
                numbers = ", ".join(map(str, at_offset[start]))
                tally.add(("unreferenced", f"constant {numbers}"), end - start)

    def _delegate_segment(self, name: str, segment: DataSegment) -> None:
        self._delegate(self._view[segment.start : segment.end], name)

    def _named_segment(self, key: str, segment: DataSegment) -> None:
        name = self._external_names.get(key, key)
        self._tally.add(("named data", name), segment.end - segment.start)


@dataclass(frozen=True)
class DataSegment:
    """``[start, end)`` in the file."""

    start: int
    end: int


Accounting = Callable[[DataSegment], None]


def segments_of(root: Table, base: int, file_size: int) -> list[DataSegment]:
    """Return a root table's segments. Raises MalformedFile for one outside the file."""
    segments: list[DataSegment] = []
    for table in root.items("segments"):
        start, size = base + table.get("offset"), table.get("size")
        if start + size > file_size:
            raise MalformedFile(
                f"segment {len(segments)} ends {start + size - file_size} bytes past the end "
                "of the file: the file is truncated",
                table.pos,
            )
        segments.append(DataSegment(start, start + size))
    return segments


def _account_segments(
    view: memoryview,
    segments: list[DataSegment],
    owners: Mapping[int, Accounting],
    start: int,
    tally: Tally,
) -> None:
    position = start
    for index, segment in sorted(enumerate(segments), key=lambda s: (s[1].start, s[1].end)):
        if segment.end == segment.start:
            continue
        if segment.start < position:
            raise MalformedFile(f"segment {index} overlaps what is before it", segment.start)
        classify_gap(view, position, segment.start, ("between segments",), tally)
        account = owners.get(index)
        if account is None:
            tally.add(("unreferenced", f"segment {index}"), segment.end - segment.start)
        else:
            account(segment)
        position = segment.end
    classify_gap(view, position, len(view), ("end of file",), tally)


@dataclass(frozen=True)
class DelegateNeeds:
    """The needs of a delegate in addition to its bytes. ``keys``: named-data key to block name."""

    scratch: int
    keys: dict[str, str]
    memory: dict[str, int]  # bytes by purpose; only a COP2 container has them


def split(blob: memoryview, path: PartPath, tally: Tally) -> DelegateNeeds:
    """Accounts for every byte of a blob under ``path``."""
    try:
        blocks = list(ethosu.walk(blob))
    except MalformedFile:
        tally.add((*path, "opaque"), len(blob))
        return DelegateNeeds(0, {}, {})
    scratch, keys = 0, {}
    command_blocks = (b for b in blocks if b.name == "cmd_data" and not b.external)
    uses = next((constant_uses(blob[b.data : b.data + b.length]) for b in command_blocks), None)
    for block in blocks:
        tally.add((*path, "block headers"), ethosu.HEADER_BYTES)
        name = _BLOCKS.get(block.name, block.name.replace("_", " "))
        data = blob[block.data : block.data + block.length]
        if block.external:
            keys[bytes(data).decode("ascii", errors="replace")] = name
            tally.add((*path, "external references", name), block.length)
        elif block.name == "weight_data" and uses is not None:
            spans = (Span(start, end, use, _USES[use]) for (start, end), use in uses.items())
            for length, span in sweep(spans, block.length):
                tally.add((*path, "other constants" if span is None else span.name), length)
        else:
            tally.add((*path, name), block.length)
        if block.name == "scratch_size" and block.length == 4 and not block.external:
            scratch = int(struct.unpack("<I", data)[0])
        tally.add((*path, "padding"), block.padding)
    end = blocks[-1].end
    tally.add((*path, "after the stream"), len(blob) - end)
    return DelegateNeeds(scratch, keys, _driver_memory(bytes(blob[:end]), dict.fromkeys(keys, b"")))


def _driver_memory(blob: bytes, named_data: Mapping[str, bytes]) -> dict[str, int]:
    """Return the memory that the Linux driver provides besides scratch, by region."""
    try:
        found = read_blob(blob, named_data)
        requires = read_actions(found.commands).requires
    except EthosUError:
        return {}
    if requires is None:
        return {}
    own = {"inputs": found.own_region(INPUTS), "outputs": found.own_region(OUTPUTS)}
    return {**own, "on-chip cache": requires.cache_bytes}


Uses = dict[tuple[int, int], int]  # ``[start, end)`` in the constants: an index into _USES


def constant_uses(commands: memoryview) -> Uses | None:
    """How a ``cmd_data`` block uses the constants; None where its commands cannot be read."""
    constants = _Constants()
    try:
        for stream in ethosu.command_streams(commands):
            product = ethosu.product(stream.npu[0]) if stream.npu else None
            words = struct.unpack_from(f"<{stream.size // 4}I", commands, stream.start)
            constants.follow(words, product or "")
    except (MalformedFile, EthosUError):
        return None
    return constants.uses


@dataclass(frozen=True)
class _Copy:
    """A DMA transfer out of the constants: ``size`` bytes from ``source`` to ``start``."""

    region: int
    start: int
    size: int
    source: int


class _Constants:
    """The uses of the region WEIGHTS, which holds the delegate's weight_data."""

    def __init__(self) -> None:
        self.uses: Uses = {}
        self._registers: dict[str, int] = {}
        self._copies: list[_Copy] = []

    def follow(self, words: Sequence[int], product: str) -> None:
        names, at = register_set(product), 0
        while at < len(words):
            item, at = decode_at(words, at, names)
            if isinstance(item, Write):
                self._registers[item.name] = item.value
            elif item.name == "DMA_START":
                self._copy()
            elif item.name in ("CONV", "DEPTHWISE"):
                for use, kind in enumerate(("WEIGHT", "SCALE")):
                    self._convolve(use, kind)

    def _get(self, register: str) -> int:
        return self._registers.get(register, 0)

    def _copy(self) -> None:
        if self._get("DMA0_SRC_REGION") & 0xFF != WEIGHTS:
            return
        source, size = self._get("DMA0_SRC"), self._get("DMA0_LEN")
        region, start = self._get("DMA0_DST_REGION"), self._get("DMA0_DST")
        self._use(2 if region & _NPU_MEMORY else 3, source, size)
        if not region & _NPU_MEMORY:
            copy = _Copy(region & 0xFF, start, size, source)
            self._copies = [
                c
                for c in self._copies
                if c.region != copy.region or c.start >= start + size or c.start + c.size <= start
            ]
            self._copies.append(copy)

    def _convolve(self, use: int, kind: str) -> None:
        """Each core of the NPU has weights of its own, and scales where it has."""
        region = self._get(f"{kind}_REGION")
        for core in ("", "1", "2", "3"):
            start, size = self._get(f"{kind}{core}_BASE"), self._get(f"{kind}{core}_LENGTH")
            if region == WEIGHTS:
                self._use(use, start, size)
                continue
            for copy in self._copies:
                if copy.region == region and copy.start <= start < copy.start + copy.size:
                    self._use(use, copy.source + start - copy.start, size)

    def _use(self, use: int, start: int, size: int) -> None:
        key = (start, start + size)
        if size:
            self.uses[key] = min(use, self.uses.get(key, use))
