"""Records small cases with the TOSA reference model's answers: ``python recording.py``.

The file lets the fast tests (exactness, mutation, fuzzing) run without torch or Vela. Cases
that it has already are kept as they are.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).parent / "data" / "cases.npz"
TARGETS = ("ethos-u55-128", "ethos-u85-256", "ethos-u65-512", "ethos-u55-32", "ethos-u85-1024")
SEEDS = 4
# Operators that no export of the families reaches, or too rarely, by their number in tosa_cases
DIRECT = {
    "choice": (0, 1, 2, 3, 4, 5),
    "loop": (0, 1, 2, 3),
    "division": (0, 1),
    "gather": (0, 1, 2),
    "scatter": (0, 1, 2),
    "comparison": (0, 1, 2),
    "shift": (0, 1, 2, 3),
    "table": (0, 2, 4, 6, 8),
    "average_pool": (1, 2),
    "sum_or_difference": (0, 1, 2, 3),
}
Arrays = dict[str, np.ndarray]


def record(file: Path, seconds: float) -> None:
    arrays: Arrays = {}
    if file.exists():
        with np.load(file) as kept:
            arrays = dict(kept)
    file.parent.mkdir(exist_ok=True)
    _record_direct(arrays)
    np.savez_compressed(file, **arrays)
    _record_exports(arrays, file, time.monotonic() + seconds)


def _record_direct(arrays: Arrays) -> None:
    from tests.npu import tosa_cases

    for family, numbers in DIRECT.items():
        for number in numbers:
            case = tosa_cases.make(family, number)
            key = f"tosa_{family}-{number}-{case.target}/0"
            if f"{key}/blob" not in arrays:
                expected = [np.frombuffer(v, np.uint8) for v in tosa_cases.reference(case)]
                _add(arrays, key, case.compile(), case.inputs, expected)


def _record_exports(arrays: Arrays, file: Path, end: float) -> None:
    from tests.npu import compiling, families

    for family, make in families.PINNED.items():
        for target in TARGETS[:2]:
            _export_once(arrays, f"{family}-0-{target}", make, target, [0], compiling)
    np.savez_compressed(file, **arrays)
    for seed in range(SEEDS):
        for number, (family, make) in enumerate({**families.COMMON, **families.U85_ONLY}.items()):
            if time.monotonic() > end:
                return
            target = TARGETS[(seed + number) % len(TARGETS)] if seed else TARGETS[number % 2]
            if family in families.U85_ONLY:
                target = TARGETS[1] if seed % 2 == 0 else TARGETS[4]
            name = f"{family}-{seed}-{target}"
            _export_once(arrays, name, make, target, [seed, number], compiling)
        np.savez_compressed(file, **arrays)


def _export_once(
    arrays: Arrays, name: str, make: Any, target: str, seed: list[int], compiling: Any
) -> None:
    if f"{name}/0/blob" in arrays:
        return
    generator = np.random.default_rng(seed)
    case = make(generator)
    delegates = compiling.compile_case(case, target)
    for index, delegate in enumerate(delegates):
        inputs = compiling.random_inputs(delegate.tosa, generator)
        if name.startswith("indexing"):
            inputs = [v % case.inputs[0].shape[0] if v.dtype == np.int32 else v for v in inputs]
        expected = compiling.reference(delegate.tosa, inputs)
        _add(arrays, f"{name}/{index}", delegate.blob, inputs, expected)


def _add(arrays: Arrays, key: str, blob: bytes, inputs: Any, expected: Any) -> None:
    arrays[f"{key}/blob"] = np.frombuffer(blob, np.uint8)
    for kind, values in (("in", inputs), ("out", expected)):
        for place, value in enumerate(values):
            arrays[f"{key}/{kind}{place}"] = value


if __name__ == "__main__":
    record(FILE, float(sys.argv[1]) if len(sys.argv) > 1 else 1e9)
