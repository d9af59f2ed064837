"""The recorded cases, as they are and mutated, by the kernel that is named: a step of ./hil test
runs this with one that has ASan and UBSan in it. What they find ends the process."""

from __future__ import annotations

import ctypes
import sys

import numpy as np

from harness.npu import kernel_library
from harness.npu.errors import EthosUError
from harness.npu.model import Network
from tests.npu.recorded import recorded_cases
from tests.npu.test_npu_fuzz import mutated
from tests.thorough import amount

SEED = 41
MUTATIONS = amount(300, 10_000)


def main(path: str) -> int:
    library = kernel_library.declared(ctypes.CDLL(path))
    kernel_library.load = lambda: library  # type: ignore[assignment]
    for case in recorded_cases():
        outputs, _ = Network(case.blob).run(case.inputs)
        if tuple(outputs) != case.expected:
            print(f"{case.name}: not as recorded")
            return 1
    generator = np.random.default_rng(SEED)
    for number in range(MUTATIONS):
        case = recorded_cases()[number % len(recorded_cases())]
        print(f"\rmutation {number}, seed {SEED}", end="", flush=True)
        try:
            network = Network(mutated(case.blob, generator), work_limit=1 << 26)
            network.run(case.inputs)
        except EthosUError:
            continue
    print(f"\n{len(recorded_cases())} recorded cases as recorded, {MUTATIONS} mutations")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
