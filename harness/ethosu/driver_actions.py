"""The container between blob and registers: driver actions ``COP1`` and ``COP2``.

Sources: ``ethosu/vela/driver_actions.py`` and regor's ``custom_operator_ethosu.hpp`` (both
Vela 5.1.0); the configuration word is the CONFIG register of the NPU.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from harness.ethosu.errors import BlobError, Unsupported

PRODUCTS = {0: "u55", 1: "u65", 2: "u85"}
_MACS = {"u55": (32, 64, 128, 256), "u65": (256, 512), "u85": (128, 256, 512, 1024, 2048)}
_COP1, _COP2, _METADATA = b"COP1", b"COP2", b"VEUM"
_CONFIG, _STREAM, _NOP = 1, 2, 5


@dataclass(frozen=True)
class Config:
    """The NPU that a stream was compiled for."""

    product: str
    macs: int
    shram_bytes: int

    @property
    def name(self) -> str:
        return f"ethos-{self.product}-{self.macs}"

    @property
    def cores(self) -> int:
        return 2 if self.product == "u65" and self.macs == 512 else 1


@dataclass(frozen=True)
class Actions:
    config: Config
    words: tuple[int, ...]
    features: int = 0


def read_actions(data: bytes) -> Actions:
    magic = data[:4]
    if magic == _COP1:
        return _read_cop1(data)
    if magic == _COP2:
        return _read_cop2(data)
    raise BlobError(f"the command data starts with {magic!r}, not COP1 or COP2", 0)


def _config(word: int, at: int) -> Config:
    product = PRODUCTS.get(word >> 28)
    if product is None:
        raise Unsupported("CONFIG.product", word >> 28, at)
    macs = 1 << (word & 15)
    if macs not in _MACS[product]:
        raise Unsupported("CONFIG.macs_per_cc", macs, at, f"no {product} has that many MACs")
    shram = ((word >> 8) & 0xFF) * 1024 if product != "u85" else 0
    return Config(product, macs, shram)


def _word(data: bytes, at: int) -> int:
    if at + 4 > len(data):
        raise BlobError("the driver actions end inside a word", at)
    value: int = struct.unpack_from("<I", data, at)[0]
    return value


def _take_stream(data: bytes, at: int, count: int) -> tuple[int, ...]:
    if at + 4 * count > len(data):
        raise BlobError(
            f"the command stream says {count} words, {(len(data) - at) // 4} remain", at
        )
    return struct.unpack_from(f"<{count}I", data, at)


def _read_cop1(data: bytes) -> Actions:
    config: Config | None = None
    at = 4
    while at < len(data):
        word = _word(data, at)
        action, count = word & 0xFF, word >> 16 | (word >> 8 & 0xFF) << 16
        at += 4
        if action == _CONFIG:
            config = _config(_word(data, at), at)
            _word(data, at + 4)  # the architecture version
            at += 8
        elif action == _STREAM:
            if config is None:
                raise BlobError("a command stream without a configuration before it", at - 4)
            return Actions(config, _take_stream(data, at, count))
        elif action != _NOP:
            raise BlobError(f"unknown driver action {action}", at - 4)
    raise BlobError("the driver actions have no command stream", at)


def _read_cop2(data: bytes) -> Actions:
    if len(data) < 16:
        raise BlobError("the COP2 header is cut short", 0)
    total = struct.unpack_from("<Q", data, 8)[0]
    if total != len(data) - 16:
        raise BlobError(f"COP2 says {total} bytes of actions, there are {len(data) - 16}", 8)
    if _word(data, 16) != 1:
        raise BlobError(f"unknown COP2 entry type {_word(data, 16)}", 16)
    length, metadata = _word(data, 20), _word(data, 24)
    if length != len(data) - 24 or metadata + 4 > length or metadata < 32:
        raise BlobError(f"COP2 entry of {length} bytes with {metadata} of metadata", 20)
    if data[28:32] != _METADATA or _word(data, 36) < 20:
        raise BlobError("the COP2 metadata is not VEUM", 28)
    config, features = _config(_word(data, 40), 40), _word(data, 48)
    start = 28 + metadata
    if (len(data) - start) % 4:
        raise BlobError("the command stream is not a whole number of words", start)
    return Actions(config, _take_stream(data, start, (len(data) - start) // 4), features)
