"""Whose fault is it? The compiler's, the program file's or the runner's.

Three computations are there: the TOSA graph that Vela was given, on the reference model, which is
what the user's model means (the export has held it against the quantised model, operator by
operator); Vela's stream in process, on the model of the NPU; and the runner's outputs. What the
stream itself computes wrongly is Vela's doing, or that of the model of the NPU: a defect that
Vela is known for settles it, and so does an FVP that gives the same bytes. A stream that computes
rightly leaves the runner.

By direct drive the inputs are a region of their own, in which each has a place that Vela chose, in
any order. A runner that puts them one after another gives the NPU another's bytes: what it makes of
them can be computed, and settles it where the runner's outputs are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from harness.config.npu import defects
from harness.core.errors import HarnessError
from harness.core.verdict import Word
from harness.export.localise import SmallestPart, smallest_part
from harness.export.process import ExportProcess
from harness.export.program import Program, TensorSpec
from harness.judge.first_difference import (
    ELSEWHERE,
    Disagreement,
    first_disagreement,
    name_operator,
)
from harness.npu.blob import INPUTS, IoTensor
from harness.npu.model import Network

Produced = Callable[[int, int], "bytes | None"]  # input set, output -> what the runner wrote
_TRIES = 60
_ROUNDED = 16  # a buffer of Arm's driver begins at a multiple of it


class Culprit(Word):
    COMPILER = "compiler"
    COMPILER_OR_NPU_MODEL = "compiler or NPU model"
    PROGRAM_FILE = "program file"
    RUNNER = "runner"


@dataclass(frozen=True)
class Blame:
    """``operators``: the smallest part of the delegate's graph that still is wrong, of ``whole``.

    ``defect``: the name of a known one. ``same_bytes``: the runner's outputs are the very ones
    that the stream gives in process; None when that cannot be told.
    """

    culprit: Culprit
    compiler: str
    pte: str
    operators: tuple[str, ...] = ()
    whole: int = 0
    defect: str = ""
    same_bytes: bool | None = None
    unreduced: str = ""  # why there is no smallest part
    at: str = ""  # what of a delegate the runner has wrong, where that was found

    @property
    def is_settling(self) -> bool:
        """Whether a fault is explained by it: that a runner failed shows who it was."""
        return self.culprit is not Culprit.RUNNER

    @property
    def facts(self) -> dict[str, Any]:
        return {
            "culprit": self.culprit,
            "compiler": self.compiler,
            "defect": self.defect or None,
            "operators": list(self.operators),
            "same_bytes": self.same_bytes,
            **({"at": self.at} if self.at else {}),
        }

    def __str__(self) -> str:
        if self.culprit is Culprit.RUNNER:
            return (
                f"the runner, not the compiler ({self.compiler}) and not your model: the streams "
                "of this program are right on the model of the NPU"
            )
        if self.culprit is Culprit.PROGRAM_FILE:
            return (
                f"the program file {self.pte}: its stream is not the exported one, which is right"
            )
        who = f"the compiler ({self.compiler})"
        if self.culprit is Culprit.COMPILER_OR_NPU_MODEL:
            who += ", or the harness's model of the NPU"
        return f"{who}, not your model: {self._why()}{self._compared()}{self._smallest()}"

    def _why(self) -> str:
        known = defects().defects.get(self.defect)
        if known is not None:
            helps = f"; what helps: {known.instead}" if known.instead else ""
            return f"known defect `{self.defect}`: {known.what}{helps}"
        return "its stream does not compute what TOSA means, and no known defect fits"

    def _compared(self) -> str:
        if self.same_bytes is None:
            return ""
        which = "the same bytes as" if self.same_bytes else "yet other bytes than"
        return f"; the runner gives {which} this stream in process"

    def _smallest(self) -> str:
        if not self.operators:
            return f"; not made smaller: {self.unreduced}" if self.unreduced else ""
        left = ", ".join(self.operators)
        return f"; smallest program ({left}; of {self.whole} operators): hil npu reduce {self.pte}"


def explain(
    program: Program, pte: Path, produced: Produced, *, independent: bool = False
) -> tuple[str, Blame] | None:
    """Where NPU and TOSA first differ, and whose fault that is; None without delegates.

    ``independent``: the NPU that ran was not the harness's own model of one.
    """
    if not program.delegates:
        return None
    compiler = f"Vela {program.versions.get('ethos-u-vela', '?')}"
    wrong = first_disagreement(program, pte=pte)
    if wrong is None:
        misplaced = _misplaced(program, produced)
        blame = Blame(Culprit.RUNNER, compiler, str(pte), at="inputs" if misplaced else "")
        return str(misplaced or ELSEWHERE), blame
    with ExportProcess() as process:
        blame = _of_stream(program, wrong, Blame(Culprit.COMPILER, compiler, str(pte)), process)
        wrong = name_operator(program, wrong, process, pte)
    if blame.culprit is Culprit.COMPILER:
        blame = replace(blame, same_bytes=_same_bytes(program, wrong, produced))
        settled = blame.defect or (independent and blame.same_bytes)
        if not settled:
            blame = replace(blame, culprit=Culprit.COMPILER_OR_NPU_MODEL)
    return str(wrong), blame


def _of_stream(
    program: Program, wrong: Disagreement, blame: Blame, process: ExportProcess
) -> Blame:
    if first_disagreement(program, [wrong.set]) is None:
        return replace(blame, culprit=Culprit.PROGRAM_FILE)
    smallest: SmallestPart | None
    try:
        smallest = smallest_part(process, program, wrong.delegate, wrong.set, tries=_TRIES)
    except HarnessError as error:
        return replace(blame, unreduced=f"{type(error).__name__}: {error.message}")
    if smallest is None:
        return replace(blame, unreduced="compiled anew the graph is right")
    return replace(
        blame, operators=smallest.operators, whole=smallest.whole, defect=smallest.defect
    )


def _misplaced(program: Program, produced: Produced) -> Misplaced | None:
    """Inputs in wrong places, when that explains every input set."""
    for number, delegate in enumerate(program.delegates):
        misplaced = one_after_another(number, (program.directory / delegate.blob).read_bytes())
        every = range(len(delegate.sets))
        if misplaced is None:
            continue
        if all(_given(program, misplaced.network, number, n, produced) for n in every):
            return misplaced
    return None


def _same_bytes(program: Program, wrong: Disagreement, produced: Produced) -> bool | None:
    if wrong.trouble:
        return None
    blob = (program.directory / program.delegates[wrong.delegate].blob).read_bytes()
    return _given(program, Network(blob), wrong.delegate, wrong.set, produced)


def _given(
    program: Program, network: Network, number: int, input_set: int, produced: Produced
) -> bool | None:
    """Whether the runner's output is what ``network`` gives in the place of a delegate. Told for
    an output of the program that is an output of the delegate, by its values in the oracle's
    run."""
    delegate = program.delegates[number]
    sets, own = delegate.sets[input_set], program.sets[input_set]
    inputs = [(program.directory / name).read_bytes() for name in sets.inputs]
    outputs, _ = network.run(inputs, strict=False)
    for n, spec in enumerate(program.outputs):
        actual, expected = produced(input_set, n), program.directory / own.expected[n]
        if actual is None:
            continue
        for m, inner in enumerate(delegate.outputs):
            true = (program.directory / sets.expected[m]).read_bytes()
            same = _relation(spec, expected.read_bytes(), inner, true)
            if same is not None:
                return bool(same(actual) == inner.decode(outputs[m]).reshape(-1).tolist())
    return None


def _relation(
    spec: TensorSpec, expected: bytes, inner: TensorSpec, true: bytes
) -> Callable[[bytes], list[int]] | None:
    """How the program's output gives the delegate's: as it is, or divided by its scale."""
    import numpy as np

    steps = inner.decode(true).reshape(-1).astype(np.int64)

    def whole(raw: bytes) -> Any:
        values = spec.decode(raw).reshape(-1)
        return np.rint(values.astype(np.float64) / (spec.scale or 1.0)).astype(np.int64)

    values = whole(expected)
    if values.size != steps.size or not values.size:
        return None
    zero = steps[0] - values[0]
    if (steps - values != zero).any():
        return None
    return lambda raw: [int(v) for v in whole(raw) + zero]


@dataclass(frozen=True)
class Misplaced:
    """``delegate`` with its inputs one after another: where they are then, and should be."""

    delegate: int
    network: Network
    actual: tuple[int, ...]
    right: tuple[int, ...]

    def __str__(self) -> str:
        def offsets(places: Sequence[int]) -> str:
            return ", ".join(map(str, places))

        return (
            f"the inputs of delegate {self.delegate}: the runner's outputs are those that it gives "
            f"with its inputs one after another (at {offsets(self.actual)}), and their places in "
            f"the program are {offsets(self.right)}"
        )


def one_after_another(delegate: int, blob: bytes) -> Misplaced | None:
    """None where that is right."""
    network = Network(blob)
    inputs = network.blob.inputs
    if any(tensor.region != INPUTS for tensor in inputs):
        return None
    right, actual = tuple(tensor.offset for tensor in inputs), _packed(inputs)
    if actual == right:
        return None
    moved = (replace(t, offset=at) for t, at in zip(inputs, actual, strict=True))
    network.blob = replace(network.blob, inputs=tuple(moved))
    return Misplaced(delegate, network, actual, right)


def _packed(tensors: Sequence[IoTensor]) -> tuple[int, ...]:
    sizes = [-(-tensor.size // _ROUNDED) * _ROUNDED for tensor in tensors]
    return tuple(accumulate(sizes[:-1], initial=0))
