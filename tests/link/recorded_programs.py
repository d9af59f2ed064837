"""Programs of recorded Ethos-U cases, with their inputs and the results that the TOSA reference
model gave."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.npu.blob import read_blob
from tests.link.delegate_program import Copies, Step, delegate_program
from tests.link.doorbell_run import GuestRun, run_guest

CASES = Path(__file__).parents[1] / "npu" / "data" / "cases.npz"


@dataclass(frozen=True)
class Delegates:
    """Which cases; ``kept`` elements of each row of the first one's output (None: all)."""

    cases: tuple[str, ...]
    product: str
    macs: int
    kept: int | None = None
    fast: bool = False  # its stream works in fast scratch (memory mode Dedicated_Sram)

    def program(self) -> bytes:
        blobs = [self._array(case, "blob").tobytes() for case in self.cases]
        return delegate_program(
            [Step(blob, self.kept if n == 0 else None) for n, blob in enumerate(blobs)]
        )

    def inputs(self) -> list[bytes]:
        return [each for case in self.cases for each in self._all(case, "in")]

    def expected(self) -> tuple[bytes, ...]:
        found = [self._all(case, "out") for case in self.cases]
        if self.kept is not None:
            tensor = read_blob(self._array(self.cases[0], "blob").tobytes()).outputs[0]
            rows = np.frombuffer(found[0][0], f"i{tensor.element_size}")
            found[0][0] = rows.reshape(-1, tensor.shape[-1])[:, : self.kept].tobytes()
        return tuple(out for outputs in found for out in outputs)

    def run(self, elf: Path, work: Path) -> GuestRun:
        """Twice in one process."""
        sets = [self.inputs()] * 2
        return run_guest(elf, self.program(), sets, work, self.product, self.macs)

    def _all(self, case: str, kind: str) -> list[bytes]:
        with np.load(CASES) as arrays:
            count = sum(key.startswith(f"{case}/0/{kind}") for key in arrays.files)
        return [self._array(case, f"{kind}{n}").tobytes() for n in range(count)]

    def _array(self, case: str, name: str) -> npt.NDArray[Any]:
        with np.load(CASES) as arrays:
            found: npt.NDArray[Any] = arrays[f"{case}/0/{name}"]
            return found


PROGRAMS = {
    "u55": Delegates(("convolution-0-ethos-u55-128",), "u55", 128),
    "u65": Delegates(("pooling-2-ethos-u65-512",), "u65", 512, fast=True),
    "u65_padded": Delegates(("pointwise-1-ethos-u65-512",), "u65", 512, kept=2, fast=True),
    "u85": Delegates(("movement-0-ethos-u85-256",), "u85", 256),
    "int16": Delegates(("wide_table-0-ethos-u55-128",), "u55", 128),
    "two_inputs": Delegates(("matrix-0-ethos-u55-128",), "u55", 128),
    "int32_input": Delegates(("indexing-1-ethos-u85-1024",), "u85", 1024),
    "several_delegates": Delegates(
        (
            "linear-1-ethos-u55-128",
            "depthwise-0-ethos-u55-128",
            "arithmetic-0-ethos-u55-128",
            "linear-1-ethos-u55-128",
        ),
        "u55",
        128,
    ),
    "padded_output": Delegates(("padded_average-0-ethos-u55-128",), "u55", 128, kept=3),
    "padded_output_u85": Delegates(("padded_average-0-ethos-u85-256",), "u85", 256, kept=1),
    "padded_int16": Delegates(("wide_table-0-ethos-u85-256",), "u85", 256, kept=5),
}


def counted(console: str) -> list[Copies]:
    """What the counting build printed, in order."""
    found = re.findall(r"ethosu_io_copies: (\d+) calls, (\d+) bytes", console)
    return [Copies(int(calls), int(size)) for calls, size in found]
