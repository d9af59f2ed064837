"""The payload of ExecuTorch's ``EthosUBackend``: blocks of name, length, flag and data.

Format: ``vela_compile`` and ``vela_bin_pack_io`` in ExecuTorch 1.5.1's
``backends/arm/arm_vela.py``. Every size is checked before it is used.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from harness.ethosu.errors import BlobError

_HEADER = struct.Struct("<16sIB11s")
_TENSOR = struct.Struct("<9i")
_ALIGN = 16
_FIRST, _LAST = "vela_bin_stream", "vela_end_stream"
_REQUIRED = ("cmd_data", "weight_data", "scratch_size", "inputs", "outputs")
_MAX_SCRATCH = 1 << 30  # the largest that we are ready to allocate for a stranger's file


@dataclass(frozen=True)
class IoTensor:
    """Where one input or output lies; ``shape`` always has six dimensions."""

    shape: tuple[int, ...]
    element_size: int
    offset: int
    region: int

    @property
    def size(self) -> int:
        count = self.element_size
        for dim in self.shape:
            count *= dim
        return count


@dataclass(frozen=True)
class Blob:
    commands: bytes
    weights: bytes
    scratch_size: int
    inputs: tuple[IoTensor, ...]
    outputs: tuple[IoTensor, ...]


def read_blob(data: bytes, named_data: Mapping[str, bytes] | None = None) -> Blob:
    """``named_data`` holds what blocks with the external flag refer to by key."""
    blocks = _blocks(data, named_data or {})
    missing = [name for name in _REQUIRED if name not in blocks]
    if missing:
        raise BlobError(f"no block '{missing[0]}'", len(data))
    scratch, at = blocks["scratch_size"]
    if len(scratch) != 4:
        raise BlobError(f"block 'scratch_size' has {len(scratch)} bytes, not 4", at)
    scratch_size = struct.unpack("<I", scratch)[0]
    if scratch_size > _MAX_SCRATCH:
        raise BlobError(f"a scratch of {scratch_size} bytes is not plausible", at)
    return Blob(
        commands=blocks["cmd_data"][0],
        weights=blocks["weight_data"][0],
        scratch_size=scratch_size,
        inputs=_tensors("inputs", *blocks["inputs"]),
        outputs=_tensors("outputs", *blocks["outputs"]),
    )


def find_blobs(data: bytes) -> list[bytes]:
    """Every Vela stream inside a larger file such as a ``.pte``; a bare stream gives itself."""
    found = []
    first, last = _FIRST.encode().ljust(16, b"\0"), _LAST.encode().ljust(16, b"\0")
    start = data.find(first)
    while start >= 0:
        end = data.find(last, start)
        if end < 0:
            raise BlobError(f"'{_FIRST}' without '{_LAST}'", start)
        found.append(data[start : end + _HEADER.size])
        start = data.find(first, end)
    return found


def _blocks(data: bytes, named_data: Mapping[str, bytes]) -> dict[str, tuple[bytes, int]]:
    blocks: dict[str, tuple[bytes, int]] = {}
    at, name = 0, ""
    while name != _LAST:
        if at + _HEADER.size > len(data):
            raise BlobError(f"the stream ends inside a block header, before '{_LAST}'", at)
        raw, length, external, _ = _HEADER.unpack_from(data, at)
        name = raw.split(b"\0")[0].decode("ascii", "replace")
        if at == 0 and name != _FIRST:
            raise BlobError(f"the first block is '{name}', not '{_FIRST}'", at)
        if name not in (_FIRST, _LAST, *_REQUIRED):
            raise BlobError(f"unknown block '{name}'", at)
        if name in blocks:
            raise BlobError(f"block '{name}' appears twice", at)
        start = at + _HEADER.size
        if start + length > len(data):
            raise BlobError(f"block '{name}' says {length} bytes, {len(data) - start} remain", at)
        content = data[start : start + length]
        blocks[name] = (_resolve(name, content, external, named_data, at), start)
        at = start + -(-length // _ALIGN) * _ALIGN
    return blocks


def _resolve(
    name: str, content: bytes, external: int, named_data: Mapping[str, bytes], at: int
) -> bytes:
    if external == 0:
        return content
    if external != 1:
        raise BlobError(f"block '{name}' has external flag {external}, not 0 or 1", at)
    key = content.decode("ascii", "replace")
    if key not in named_data:
        raise BlobError(f"block '{name}' refers to named data '{key}', which is not given", at)
    return named_data[key]


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
            raise BlobError(f"{name}[{index}] makes no sense: {tensor}", at + where)
        tensors.append(tensor)
    return tuple(tensors)
