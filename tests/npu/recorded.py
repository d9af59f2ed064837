"""Reads what ``recording.py`` wrote."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tests.npu.recording import FILE

Array = np.ndarray


@dataclass(frozen=True)
class Recorded:
    name: str
    blob: bytes
    inputs: tuple[bytes, ...]
    expected: tuple[bytes, ...]


@lru_cache(maxsize=1)
def recorded_cases() -> tuple[Recorded, ...]:
    with np.load(FILE) as arrays:
        names = sorted({key.rsplit("/", 1)[0] for key in arrays.files})
        return tuple(_case(name, arrays) for name in names)


def _case(name: str, arrays: dict[str, Array]) -> Recorded:
    def all_of(kind: str) -> tuple[bytes, ...]:
        found = []
        while f"{name}/{kind}{len(found)}" in arrays:
            found.append(arrays[f"{name}/{kind}{len(found)}"].tobytes())
        return tuple(found)

    return Recorded(name, arrays[f"{name}/blob"].tobytes(), all_of("in"), all_of("out"))
