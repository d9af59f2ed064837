"""Values that an exported graph computes of its input sets, small enough to keep with a program.

``values.json`` has a row for each result of an operator: type and shape, and a digest of its
elements. Floats also have sums of up to 64 parts, since another runner may give other last bits.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.system.files import read_json

FILE = "values.json"
_LAST_BITS = 8e-6  # of the mean size, for each element
_PARTS = 64
Row = tuple[Any, ...]


def row_of(value: npt.NDArray[Any]) -> Row:
    """``value`` in logical order."""
    kind = f"{value.dtype}{list(value.shape)}"
    digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]
    if value.dtype.kind != "f":
        return kind, digest
    flat = value.astype(np.float64).ravel()
    weighted = flat * (1 + np.cos(np.arange(value.size)) / 2)  # an exchange changes a sum as well
    parts = np.array_split(weighted, min(_PARTS, max(1, value.size // 16)))
    sums = np.abs(flat).sum(), *(part.sum() for part in parts)
    return kind, digest, *(float(f"{total:.12g}") for total in sums)


def write_values(directory: Path, rows: Iterable[Row]) -> str:
    """Return the file's name."""
    (directory / FILE).write_text(json.dumps(sorted(set(rows))))
    return FILE


class GraphValues:
    """Reads a ``values.json``. Raises OSError, and one of MALFORMED for any other file."""

    def __init__(self, file: Path) -> None:
        self._rows: dict[str, list[Row]] = {}
        for kind, *rest in read_json(file, finite=False):
            self._rows.setdefault(kind, []).append(tuple(rest))

    def have(self, value: npt.NDArray[Any], *, exactly: bool = False) -> bool:
        """Whether the graph has the value. Unless ``exactly``, last bits of floats may differ."""
        kind, digest, *sums = row_of(value)
        rows, near = self._rows.get(kind, []), bool(sums) and not exactly
        return any(digest == row[0] or (near and _close(sums, row[1:])) for row in rows)


def _close(sums: Sequence[float], known: Sequence[float]) -> bool:
    tolerance = _LAST_BITS * known[0] / max(1, len(known) - 1)
    return np.allclose(sums[1:], known[1:], rtol=0, atol=tolerance, equal_nan=True)
