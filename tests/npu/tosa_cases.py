"""Every family of random TOSA operators, and one case by family and number.

``python -m tests.npu.tosa_cases FAMILY NUMBER`` runs one case again and says what it was.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import tosa_reference_model

from harness.npu.model import Network
from tests.npu import tosa_control, tosa_layers, tosa_maths, tosa_moves
from tests.npu.tosa_graph import Array, Graph, compile_tosa

SEED = 7
COMMON = {**tosa_layers.COMMON, **tosa_maths.COMMON, **tosa_moves.COMMON}
U85_ONLY = {
    **tosa_layers.U85_ONLY,
    **tosa_maths.U85_ONLY,
    **tosa_moves.U85_ONLY,
    **tosa_control.U85_ONLY,
}
FAMILIES: dict[str, Callable[[np.random.Generator, Graph, str], None]] = {**COMMON, **U85_ONLY}
U85 = tuple(f"ethos-u85-{macs}" for macs in (256, 1024, 128, 2048, 512))
OTHERS = (
    "ethos-u55-128",
    "ethos-u65-512",
    "ethos-u55-32",
    "ethos-u55-256",
    "ethos-u65-256",
    "ethos-u55-64",
)
COP2, APART = "--cop-format=COP2", "--separate-io-regions"


@dataclass(frozen=True)
class TosaCase:
    family: str
    number: int
    target: str
    tosa: bytes
    inputs: tuple[Array, ...]

    @property
    def options(self) -> tuple[str, ...]:
        """Every fifth case is in the other container, every tenth with regions for its tensors.

        Not scatter: Vela 5.1.0 then copies up to 15 bytes beyond the end of the output.
        """
        if self.number % 5 != 4:
            return ()
        return (COP2, APART) if self.number % 2 and self.family != "scatter" else (COP2,)

    def compile(self) -> bytes:
        return compile_tosa(self.tosa, self.target, self.options)

    def __str__(self) -> str:
        shapes = ", ".join(f"{v.dtype}{v.shape}" for v in self.inputs)
        return f"{self.family} {self.number} (seed {SEED}) on {self.target}, inputs {shapes}"


def make(family: str, number: int) -> TosaCase:
    """Targets take turns: the U85 has every second case, and all of its own operators."""
    generator = np.random.default_rng([SEED, number, *family.encode()])
    target = U85[number // 2 % len(U85)]
    if family in COMMON and number % 2:
        target = OTHERS[number // 2 % len(OTHERS)]
    graph = Graph()
    {**FAMILIES, **tosa_layers.FAULTS}[family](generator, graph, target)
    return TosaCase(family, number, target, graph.serialise(), tuple(graph.sample(generator)))


def reference(case: TosaCase) -> list[bytes]:
    return [value.tobytes() for value in results(case)]


def results(case: TosaCase) -> list[Array]:
    with _silent():
        outputs, status = tosa_reference_model.run(
            case.tosa,
            list(case.inputs),
            verbosity="NONE",
            initialize_variable_tensor_from_numpy=True,
        )
    if status != tosa_reference_model.GraphStatus.TOSA_VALID:
        raise AssertionError(f"the TOSA reference model calls it {status}: {case}")
    return [np.asarray(value) for value in outputs]


def agrees(case: TosaCase) -> bool:
    outputs, _ = Network(case.compile()).run([value.tobytes() for value in case.inputs])
    return outputs == reference(case)


@contextmanager
def _silent() -> Iterator[None]:
    """The reference model warns about its own version on standard output, at every graph."""
    sys.stdout.flush()
    kept, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nothing)


def main(arguments: Sequence[str]) -> int:
    case = make(arguments[0], int(arguments[1]))
    same = agrees(case)
    print(case, "equal" if same else "DIFFERENT", sep=": ")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
