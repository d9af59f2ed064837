"""Reads an Ethos-U delegate: Vela's blocks, and in them the NPU it is for and its commands.

ExecuTorch's container is that of ``vela_compile`` in ``backends/arm/arm_vela.py`` (1.5.1): blocks
of a 16-byte name, u32 length, a byte "external reference", 11 reserved bytes, and data padded to a
multiple of 16; the first is ``vela_bin_stream``, the last ``vela_end_stream``, both without data.
``targets/runner/ethosu/vela_stream.cpp`` reads them on the target.

``COP1`` and ``COP2`` are the two containers of driver actions (``ethosu/vela/driver_actions.py``
and regor's ``custom_operator_ethosu.hpp``, both Vela 5.1.0). ``COP1`` is a sequence of actions,
each preceded by a word: action [7:0], length [31:16] and its high bits [15:8]. ``COP2`` is a header
(version, u64 length) and one entry (type, length) of metadata and commands; the commands begin at a
multiple of 16. The words that name the NPU are its CONFIG and ID registers (regor's
``ethos_u65_interface.hpp`` and ``ethos_u85_interface.hpp``).
``targets/runner/ethosu/payload.cpp`` reads COP1 on the target.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from harness.core.errors import MalformedFile

HEADER_BYTES = 32
FIRST, LAST = "vela_bin_stream", "vela_end_stream"
_HEADER = struct.Struct("<16sIB11s")
_ALIGNMENT = 16
COP1, COP2 = b"COP1", b"COP2"
OPTIMIZER_CONFIG, COMMAND_STREAM, NOP = 1, 2, 5
_ENTRY_COMMANDS, _VEUM = 1, b"VEUM"
_COP2_HEADER, _COP2_ENTRY = 16, 8
_COP2_VERSION, _VEUM_VERSION = (1, 0), (1, 0)
_DESCRIPTION, _SHORTEST_DESCRIPTION = 12, 20  # "VEUM", version, length; then ``length`` bytes
_SHORTEST_METADATA = _DESCRIPTION + _SHORTEST_DESCRIPTION
STREAM_ALIGNMENT, MOST_STREAM = 16, 16 << 20  # limits of the Linux driver, which takes COP2

# The CONFIG word that Vela 5.1.0 compiles for (measured for each of ExecuTorch's targets), by
# product and MACs per cycle. The only list of all NPUs.
CONFIG_WORDS = {
    ("u55", 32): 0x00001005,
    ("u55", 64): 0x00001006,
    ("u55", 128): 0x00001807,
    ("u55", 256): 0x00003008,
    ("u65", 256): 0x10003008,
    ("u65", 512): 0x10006009,
    ("u85", 128): 0x20000117,
    ("u85", 256): 0x20000118,
    ("u85", 512): 0x20001119,
    ("u85", 1024): 0x2000251A,
    ("u85", 2048): 0x2000261B,
}
ID_WORDS = {"u55": 0x10066001, "u65": 0x10066001, "u85": 0x20007000}  # architecture 1.0.6, 2.0.0
PRODUCTS = ("u55", "u65", "u85")  # by CONFIG.product
MACS = {name: tuple(m for p, m in CONFIG_WORDS if p == name) for name in PRODUCTS}


class UnknownAction(MalformedFile):
    """A driver action without a public description."""

    def __init__(self, action: int, offset: int) -> None:
        super().__init__(f"unknown driver action {action}", offset)
        self.action = action


class UnknownNpu(Exception):
    """A CONFIG word of an NPU that does not exist. ``field`` has the impossible ``value``."""

    def __init__(self, field: str, value: int, why: str = "") -> None:
        super().__init__(f"CONFIG.{field} = {value}{f': {why}' if why else ''}")
        self.field = field
        self.value = value
        self.why = why


@dataclass(frozen=True)
class NpuConfig:
    """An NPU, as a CONFIG word describes it."""

    product: str
    macs: int
    shram_bytes: int  # 0 for a U85, which has none

    @property
    def name(self) -> str:
        return f"ethos-{self.product}-{self.macs}"

    @property
    def cores(self) -> int:
        return 2 if self.product == "u65" and self.macs == 512 else 1


@dataclass(frozen=True)
class Requirements:
    """Further contents of COP2.

    ``features``: those the driver must have. ``cache_bytes``: SRAM of the NPU that the stream has
    for itself (region 2)."""

    features: int
    cache_bytes: int


@dataclass(frozen=True)
class CommandStream:
    """The place of the commands in a payload, in bytes, and the NPU that it names, if any.

    ``requires``: only in COP2."""

    start: int
    size: int
    npu: tuple[int, int] | None  # the words CONFIG and ID
    npu_at: int  # offset of these words
    requires: Requirements | None = None


def config_fields(word: int) -> dict[str, int]:
    """Return the fields of a CONFIG word, by the driver's names."""
    fields = {
        "product": word >> 28 & 15,
        "macs_per_cc": word & 15,  # its logarithm to base 2
        "cmd_stream_version": word >> 4 & 15,
        "custom_dma": word >> 27 & 1,
    }
    if product(word) == "u85":
        return {**fields, "num_axi_sram": word >> 8 & 3, "num_axi_ext": word >> 10 & 1}
    return {**fields, "shram_size": word >> 8 & 0xFF}  # KiB


def architecture(identity: int) -> tuple[int, int, int]:
    """Major, minor and patch version in an ID word."""
    return identity >> 28 & 15, identity >> 20 & 0xFF, identity >> 16 & 15


def product(config: int) -> str | None:
    """Return the product in a CONFIG word; None for an unknown number."""
    number = config >> 28 & 15
    return PRODUCTS[number] if number < len(PRODUCTS) else None


def read_config(word: int) -> NpuConfig:
    """Read a CONFIG word. Raises UnknownNpu if no product has a variant with these MACs."""
    fields, name = config_fields(word), product(word)
    if name is None:
        raise UnknownNpu("product", fields["product"])
    macs = 1 << fields["macs_per_cc"]
    if macs not in MACS[name]:
        raise UnknownNpu("macs_per_cc", macs, f"no {name} has that many MACs")
    return NpuConfig(name, macs, 1024 * fields.get("shram_size", 0))


def command_streams(payload: bytes | memoryview) -> Iterator[CommandStream]:
    """Every command stream of a payload; Vela writes one.

    Raises MalformedFile for another container, and for a damaged one.
    """
    magic = bytes(payload[:4])
    if magic == COP1:
        yield from _cop1(payload)
    elif magic == COP2:
        yield _cop2(payload)
    else:
        raise MalformedFile(f"the command data starts with {magic!r}, not COP1 or COP2", 0)


def _cop1(payload: bytes | memoryview) -> Iterator[CommandStream]:
    npu: tuple[int, int] | None = None
    at, npu_at = 4, 0
    while at < len(payload):
        word = _word(payload, at, at)
        action, count = word & 0xFF, word >> 16 | (word >> 8 & 0xFF) << 16
        body = at + 4
        if action == OPTIMIZER_CONFIG:
            npu, npu_at = (_word(payload, body, at), _word(payload, body + 4, at)), body
            body += 8
        elif action == COMMAND_STREAM:
            left = (len(payload) - body) // 4
            if count > left:
                raise MalformedFile(f"the command stream says {count} words, {left} remain", at)
            yield CommandStream(body, 4 * count, npu, npu_at)
            body += 4 * count
        elif action != NOP:
            raise UnknownAction(action, at)
        at = body


def _word(payload: bytes | memoryview, at: int, action_at: int) -> int:
    if at + 4 > len(payload):
        raise MalformedFile("the driver actions end inside a word", action_at)
    value: int = struct.unpack_from("<I", payload, at)[0]
    return value


def _cop2(payload: bytes | memoryview) -> CommandStream:
    """Metadata precedes an entry's commands: length, ``VEUM``, version, n, config, id, ..."""
    entry, data = _COP2_HEADER, _COP2_HEADER + _COP2_ENTRY
    if len(payload) < data + 4 + _SHORTEST_METADATA:
        raise MalformedFile("the COP2 header is cut short", len(payload))
    *version, total, kind, length, metadata = struct.unpack_from("<HHQIII", payload, 4)
    if tuple(version) != _COP2_VERSION:
        raise MalformedFile(f"COP2 of version {version[0]}.{version[1]}", 4)
    if total != len(payload) - entry:
        raise MalformedFile(f"COP2 says {total} bytes of actions, there are {len(payload) - 16}", 8)
    if kind != _ENTRY_COMMANDS:
        raise MalformedFile(f"unknown COP2 entry type {kind}", entry)
    if length != len(payload) - data or not _SHORTEST_METADATA <= metadata <= length - 4:
        raise MalformedFile(f"COP2 entry of {length} bytes with {metadata} of metadata", entry + 4)
    described = data + 4
    name, *version, count = struct.unpack_from("<4sHHI", payload, described)
    if name != _VEUM or tuple(version) != _VEUM_VERSION:
        raise MalformedFile("the COP2 metadata is not VEUM 1.0", described)
    if not _SHORTEST_DESCRIPTION <= count <= metadata - _DESCRIPTION:
        raise MalformedFile(f"VEUM of {count} bytes in {metadata} of metadata", described + 8)
    npu_at = described + _DESCRIPTION
    config, identity, features, cache = struct.unpack_from("<IIIQ", payload, npu_at)
    start = described + metadata
    size = len(payload) - start
    if size % 4:
        raise MalformedFile("the command stream is not a whole number of words", start)
    if start % STREAM_ALIGNMENT:
        raise MalformedFile(f"the command stream is not aligned to {STREAM_ALIGNMENT} bytes", start)
    if size > MOST_STREAM:
        raise MalformedFile(f"the command stream of {size} bytes is longer than 16 MiB", start)
    return CommandStream(start, size, (config, identity), npu_at, Requirements(features, cache))


@dataclass(frozen=True)
class VelaBlock:
    """An ``external`` block holds a key into the program's named data instead of the data."""

    name: str
    start: int  # of the header; bytes from the start of the stream
    length: int
    external: bool
    padding: int  # bytes after the data; at a stream's end it may be too short for the alignment

    @property
    def data(self) -> int:
        return self.start + HEADER_BYTES

    @property
    def end(self) -> int:
        return self.data + self.length + self.padding


def walk(stream: bytes | memoryview) -> Iterator[VelaBlock]:
    """Yield the blocks up to and including ``vela_end_stream``; more bytes may follow.

    Raises MalformedFile for a block that does not fit, and without the first or the last block."""
    at, name = 0, ""
    while name != LAST:
        if at + HEADER_BYTES > len(stream):
            raise MalformedFile(f"the stream ends inside a block header, before '{LAST}'", at)
        raw, length, external, _ = _HEADER.unpack_from(stream, at)
        name = raw.rstrip(b"\0").decode("ascii", "replace")
        if at == 0 and name != FIRST:
            raise MalformedFile(f"the first block is '{name}', not '{FIRST}'", at)
        left = len(stream) - at - HEADER_BYTES
        if length > left:
            raise MalformedFile(f"block '{name}' says {length} bytes, {left} remain", at)
        if external > 1:
            raise MalformedFile(f"block '{name}' has external flag {external}, not 0 or 1", at)
        padding = min(-length % _ALIGNMENT, left - length)
        block = VelaBlock(name, at, length, bool(external), padding)
        yield block
        at = block.end


def find_streams(data: bytes) -> Iterator[tuple[int, int]]:
    """Start and end of every stream inside a larger file, such as a ``.pte``.

    Raises MalformedFile for a damaged stream; its offset counts from the start of ``data``.
    """
    first, view = FIRST.encode().ljust(16, b"\0"), memoryview(data)
    start = data.find(first)
    while start >= 0:
        try:
            *_, last = walk(view[start:])
        except MalformedFile as error:
            raise MalformedFile(error.what, start + error.offset) from None
        yield start, start + last.end
        start = data.find(first, start + last.end)
