"""Damage for files: truncations, flipped bits, planted offsets, swapped and foreign stretches."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator


def mutations(data: bytes, count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """(what was done, the damaged bytes), the same for the same seed."""
    chance = random.Random(seed)
    for _ in range(count):
        kind = chance.choice(("truncate", "flip", "offset", "cycle", "swap", "foreign"))
        yield kind, _damaged(data, kind, chance)


def _damaged(data: bytes, kind: str, chance: random.Random) -> bytes:
    # Structure is denser at the start of every format here, so half of all damage goes there.
    reach = len(data) if chance.random() < 0.5 else min(len(data), 4096)
    at = chance.randrange(reach)
    if kind == "truncate":
        return data[:at]
    changed = bytearray(data)
    if kind == "flip":
        for _ in range(chance.choice((1, 1, 2, 8))):
            changed[chance.randrange(reach)] ^= 1 << chance.randrange(8)
    elif kind == "offset":
        value = chance.choice((0, 1, 4, 0x7FFFFFFF, 0xFFFFFFFF, len(data), chance.getrandbits(32)))
        changed[at : at + 4] = struct.pack("<I", value)
    elif kind == "cycle":
        at -= at % 4
        changed[at : at + 4] = struct.pack("<i", chance.randrange(-at - 1, 64))
    elif kind == "swap":
        size = chance.randrange(1, 64)
        other = chance.randrange(len(data))
        changed[at : at + size], changed[other : other + size] = (
            changed[other : other + size],
            changed[at : at + size],
        )
    else:
        size = chance.randrange(1, 256)
        changed[at : at + size] = chance.randbytes(size)
    return bytes(changed)
