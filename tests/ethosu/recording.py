"""Records small cases with the TOSA reference model's answers: ``python recording.py``.

The file lets the fast tests (exactness, mutation, fuzzing) run without torch or Vela.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

FILE = Path(__file__).parent / "data" / "cases.npz"
TARGETS = ("ethos-u55-128", "ethos-u85-256", "ethos-u65-512", "ethos-u55-32", "ethos-u85-1024")
SEEDS = 4


def record(file: Path, seconds: float) -> None:
    import time

    import compiling
    import families

    arrays: dict[str, np.ndarray] = dict(np.load(file)) if file.exists() else {}
    everything = {**families.COMMON, **families.U85_ONLY}
    end = time.monotonic() + seconds
    for family, make in families.PINNED.items():
        for target in TARGETS[:2]:
            name, generator = f"{family}-0-{target}", np.random.default_rng(0)
            if f"{name}/0/blob" not in arrays:
                add_case(arrays, name, make(generator), target, generator, compiling)
    np.savez_compressed(file, **arrays)
    for seed in range(SEEDS):
        for number, (family, make) in enumerate(everything.items()):
            if time.monotonic() > end:
                break
            target = TARGETS[(seed + number) % len(TARGETS)] if seed else TARGETS[number % 2]
            if family in families.U85_ONLY:
                target = TARGETS[1] if seed % 2 == 0 else TARGETS[4]
            name = f"{family}-{seed}-{target}"
            if f"{name}/0/blob" in arrays:
                continue
            generator = np.random.default_rng([seed, number])
            try:
                add_case(arrays, name, make(generator), target, generator, compiling)
            except Exception as error:  # foreign code: any exception is possible
                print(name, "does not export:", type(error).__name__, str(error)[:80], flush=True)
        file.parent.mkdir(exist_ok=True)
        np.savez_compressed(file, **arrays)


def add_case(arrays, name, case, target, generator, compiling) -> None:  # type: ignore[no-untyped-def]
    delegates = compiling.compile_module(
        case.module,
        case.inputs,
        target,
        bits=case.bits,
        per_channel=case.per_channel,
        quantised=case.quantised,
    )
    for index, delegate in enumerate(delegates):
        inputs = compiling.random_inputs(delegate.tosa, generator)
        if name.startswith("indexing"):
            inputs = [v % case.inputs[0].shape[0] if v.dtype == np.int32 else v for v in inputs]
        key = f"{name}/{index}"
        arrays[f"{key}/blob"] = np.frombuffer(delegate.blob, np.uint8)
        for place, value in enumerate(inputs):
            arrays[f"{key}/in{place}"] = value
        for place, value in enumerate(compiling.reference(delegate.tosa, inputs)):
            arrays[f"{key}/out{place}"] = value


if __name__ == "__main__":
    record(FILE, float(sys.argv[1]) if len(sys.argv) > 1 else 1e9)
