"""Table look-up after the clamp (arithmetic of TOSA's TABLE, as the reference model does it)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Bytes = NDArray[np.uint8]


def look_up_8bit(indices: Array, table: Bytes, dtype: np.dtype[Any]) -> Array:
    """256 entries of ``dtype``; the first belongs to -128."""
    result: Array = table.view(dtype)[indices.astype(np.int16) + 128]
    return result


def look_up_16bit(values: Array, table: Bytes, dtype: np.dtype[Any]) -> Array:
    """512 entries of base (low 16 bits) and slope (high 16), with 7 bits of interpolation.

    A 32-bit result keeps those 7 bits, as TOSA's does; a 16-bit one rounds them off.
    """
    entries = table.view(np.int16).reshape(512, 2).astype(np.int32)
    wide = values.astype(np.int32)
    chosen = entries[(wide >> 7) + 256]
    result = (chosen[..., 0] << 7) + chosen[..., 1] * (wide & 127)
    if dtype.itemsize == 2:
        result = (result + 64) >> 7
    stored: Array = result.astype(dtype)
    return stored
