"""Reads and checks the payload of ExecuTorch's ``EthosUBackend``.

``harness/formats/ethosu`` reads the two containers, Vela's blocks and the driver actions around
the commands. This module gives them their meaning for a run, and the errors of this package.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from harness.core.errors import MalformedFile
from harness.formats import ethosu
from harness.formats.ethosu import NpuConfig, Requirements
from harness.npu.errors import BlobError, BlobLimit, Unsupported

# BasePointerIndex of regor; inputs and outputs may have regions of their own
WEIGHTS, SCRATCH, FAST_SCRATCH, INPUTS, OUTPUTS = range(5)
REGION_NAMES = {
    WEIGHTS: "weights",
    SCRATCH: "scratch",
    FAST_SCRATCH: "fast scratch",
    INPUTS: "inputs",
    OUTPUTS: "outputs",
}
REGIONS = 8  # the most that a stream may use

_TENSOR = struct.Struct("<9i")
_REQUIRED = ("cmd_data", "weight_data", "scratch_size", "inputs", "outputs")
_MAX_REGION = 1 << 28  # bytes; the most to allocate for an untrusted file, in sum


@dataclass(frozen=True)
class IoTensor:
    """Where one input or output lies; ``shape`` always has six dimensions."""

    shape: tuple[int, ...]
    element_size: int
    offset: int
    region: int

    @property
    def size(self) -> int:
        return self.element_size * prod(self.shape)


@dataclass(frozen=True)
class Blob:
    commands: bytes
    weights: bytes
    scratch_size: int
    inputs: tuple[IoTensor, ...]
    outputs: tuple[IoTensor, ...]

    def own_region(self, number: int) -> int:
        """Return the size of a separate region for inputs or outputs; 0 if there is none."""
        tensors = (*self.inputs, *self.outputs)
        return max((t.offset + t.size for t in tensors if t.region == number), default=0)


@dataclass(frozen=True)
class Actions:
    """The commands, and the NPU that they were compiled for."""

    config: NpuConfig
    words: tuple[int, ...]
    requires: Requirements | None = None  # only in COP2, the container for the Linux driver


def read_blob(data: bytes, named_data: Mapping[str, bytes] | None = None) -> Blob:
    """``named_data``: the data, by key, to which blocks with the external flag refer."""
    blocks = _blocks(data, named_data or {})
    missing = [name for name in _REQUIRED if name not in blocks]
    if missing:
        raise BlobError(f"no block '{missing[0]}'", len(data))
    scratch, at = blocks["scratch_size"]
    if len(scratch) != 4:
        raise BlobError(f"block 'scratch_size' has {len(scratch)} bytes, not 4", at)
    scratch_size = struct.unpack("<I", scratch)[0]
    if scratch_size > _MAX_REGION:
        raise BlobLimit("the scratch", scratch_size, _MAX_REGION, "bytes", at)
    found = Blob(
        commands=blocks["cmd_data"][0],
        weights=blocks["weight_data"][0],
        scratch_size=scratch_size,
        inputs=_tensors("inputs", *blocks["inputs"]),
        outputs=_tensors("outputs", *blocks["outputs"]),
    )
    total = scratch_size + sum(found.own_region(r) for r in (INPUTS, OUTPUTS))
    if total > _MAX_REGION:
        raise BlobLimit("the blob", total, _MAX_REGION, "bytes for its regions", at)
    return found


def read_actions(commands: bytes) -> Actions:
    """Return the first command stream, Vela's only one. Raises BlobError, Unsupported."""
    try:
        stream = next(ethosu.command_streams(commands), None)
    except MalformedFile as error:
        raise BlobError(error.what, error.offset) from None
    if stream is None:
        raise BlobError("the driver actions have no command stream", len(commands))
    if stream.npu is None:
        raise BlobError("a command stream without a configuration before it", stream.start)
    try:
        config = ethosu.read_config(stream.npu[0])
    except ethosu.UnknownNpu as error:
        raise Unsupported(f"CONFIG.{error.field}", error.value, stream.npu_at, error.why) from None
    words = struct.unpack_from(f"<{stream.size // 4}I", commands, stream.start)
    return Actions(config, words, stream.requires)


def find_blobs(data: bytes) -> list[bytes]:
    """Every Vela stream inside a larger file such as a ``.pte``; of a bare stream, the stream."""
    try:
        return [data[start:end] for start, end in ethosu.find_streams(data)]
    except MalformedFile as error:
        raise BlobError(error.what, error.offset) from None


def _blocks(data: bytes, named_data: Mapping[str, bytes]) -> dict[str, tuple[bytes, int]]:
    blocks: dict[str, tuple[bytes, int]] = {}
    try:
        for block in ethosu.walk(data):
            if block.name not in (ethosu.FIRST, ethosu.LAST, *_REQUIRED):
                raise BlobError(f"unknown block '{block.name}'", block.start)
            if block.name in blocks:
                raise BlobError(f"block '{block.name}' appears twice", block.start)
            content = data[block.data : block.data + block.length]
            if block.external:
                key = content.decode("ascii", "replace")
                if key not in named_data:
                    what = f"refers to named data '{key}', which is not given"
                    raise BlobError(f"block '{block.name}' {what}", block.start)
                content = named_data[key]
            blocks[block.name] = content, block.data
    except MalformedFile as error:
        raise BlobError(error.what, error.offset) from None
    return blocks


def _tensors(name: str, content: bytes, at: int) -> tuple[IoTensor, ...]:
    if len(content) < 4:
        raise BlobError(f"block '{name}' is too short for its count", at)
    count = struct.unpack_from("<i", content)[0]
    if count < 0 or 4 + count * _TENSOR.size != len(content):
        raise BlobError(f"block '{name}' counts {count} tensors in {len(content)} bytes", at)
    tensors = []
    for index in range(count):
        where = 4 + index * _TENSOR.size
        *shape, element_size, offset, region = _TENSOR.unpack_from(content, where)
        tensor = IoTensor(tuple(shape), element_size, offset, region)
        if min(shape) < 1 or offset < 0 or element_size not in (1, 2, 4, 8):
            raise BlobError(
                f"{name}[{index}] has an impossible shape or place: {tensor}", at + where
            )
        if offset + tensor.size > _MAX_REGION:
            end = offset + tensor.size
            raise BlobLimit(f"{name}[{index}]", end, _MAX_REGION, "bytes", at + where)
        tensors.append(tensor)
    return tuple(tensors)
