"""Where an NPU and the TOSA reference model disagree: delegate, operator, element.

Each delegate of a Program is run on the functional model with the inputs that it had in the
oracle's own run, so that a fault shows in the delegate that makes it and in no later one. Only
naming the operator needs Vela and torch, and only then are they imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.errors import HarnessError
from harness.ethosu.blob import find_blobs
from harness.ethosu.errors import EthosUError
from harness.ethosu.model import Network
from harness.export.program import Delegate, Program, TensorSpec
from harness.localise.stream import last_writer


@dataclass(frozen=True)
class Disagreement:
    """The first wrong element; without one, ``trouble`` says why the delegate does not run.

    ``operator`` and ``tensor`` are names of the TOSA graph. When compiling the graph anew shows
    no fault, ``operator`` is empty, ``tensor`` is an output of the delegate, and ``operation``
    is the one of the command stream that wrote the element.
    """

    delegate: int
    set: int
    tensor: str = ""
    element: tuple[int, ...] = ()
    expected: int = 0
    actual: int = 0
    operator: str = ""
    operation: str = ""
    trouble: str = ""

    def __str__(self) -> str:
        where = f"delegate {self.delegate}, input set {self.set}"
        if self.trouble:
            return f"{where}: {self.trouble}"
        what = f"{self.operator} ({self.tensor})" if self.operator else f"output {self.tensor}"
        written = f", written by {self.operation}" if self.operation else ""
        return (
            f"{where}: {what}, element {list(self.element)} is {self.actual} on the NPU and "
            f"{self.expected} in TOSA{written}"
        )


def localise(
    program: Program, sets: Sequence[int] | None = None, pte: Path | None = None
) -> Disagreement | None:
    """The first delegate that computes something else than the oracle, for the given input sets.

    ``pte`` is the file that really ran, when it may not be the exported one. None when all
    agree: then the difference comes from outside the NPU, that is, from an operator on the CPU
    or from how the runner passes tensors.
    """
    blobs = [(program.directory / d.blob).read_bytes() for d in program.delegates]
    if pte is not None:
        found = find_blobs(pte.read_bytes())
        if len(found) != len(blobs):
            trouble = f"the program that ran has {len(found)} delegates, not {len(blobs)}"
            return Disagreement(0, 0, trouble=trouble)
        blobs = [found[delegate.position] for delegate in program.delegates]
    for number, (delegate, blob) in enumerate(zip(program.delegates, blobs, strict=True)):
        for index in sets if sets is not None else range(len(delegate.sets)):
            wrong = _run(program, number, delegate, blob, index)
            if wrong is not None:
                return wrong
    return None


def _run(
    program: Program, number: int, delegate: Delegate, blob: bytes, index: int
) -> Disagreement | None:
    inputs = _read(program.directory, delegate.sets[index].inputs)
    try:
        outputs = Network(blob).run(inputs)[0]
    except EthosUError as error:
        return Disagreement(number, index, trouble=error.message)
    expected = _read(program.directory, delegate.sets[index].expected)
    for output, spec in enumerate(delegate.outputs):
        if outputs[output] != expected[output]:
            wrong = _first_element(spec, outputs[output], expected[output])
            wrong = replace(wrong, delegate=number, set=index)
            byte = next(
                i for i, (a, b) in enumerate(zip(outputs[output], expected[output], strict=True))
                if a != b
            )  # fmt: skip
            inside = _inside(program, wrong, delegate, inputs)
            return inside or replace(wrong, operation=last_writer(blob, inputs, output, byte))
    return None


def _first_element(spec: TensorSpec, ours: bytes, theirs: bytes) -> Disagreement:
    import numpy as np

    actual, expected = spec.decode(ours), spec.decode(theirs)
    place = tuple(int(i) for i in np.argwhere(actual != expected)[0])
    return Disagreement(0, 0, spec.name, place, int(expected[place]), int(actual[place]))


def _inside(
    program: Program, wrong: Disagreement, delegate: Delegate, inputs: list[bytes]
) -> Disagreement | None:
    """The operator, if Vela is installed and the fault stays when more values are looked at."""
    try:
        from harness.export.npu_options import NpuOptions
        from harness.export.truncate import first_wrong_value
    except ImportError:
        return None
    options = NpuOptions(program.compile_target, program.system_config, program.memory_mode)
    tosa = (program.directory / delegate.tosa).read_bytes()
    arrays = [spec.decode(raw) for spec, raw in zip(delegate.inputs, inputs, strict=True)]
    try:
        first = first_wrong_value(tosa, options, arrays, lambda b, i: Network(b).run(i)[0])
    except HarnessError:
        return None
    if first is None:
        return None
    return replace(
        wrong,
        tensor=first.tensor,
        element=first.element,
        expected=first.expected,
        actual=first.actual,
        operator=first.operator,
    )


def _read(directory: Path, names: Sequence[str]) -> list[bytes]:
    return [(directory / name).read_bytes() for name in names]
