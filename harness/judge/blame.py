"""After a MISMATCH: where NPU and TOSA first disagree, and whose fault that is.

Each delegate of a Program is run on the functional model with the inputs that it had in the
oracle's own run, so that a fault shows in the delegate that makes it and in no later one. Naming
the operator takes Vela and the TOSA reference model, in the export process.

Three computations are there: the TOSA graph that Vela was given, on the reference model, which is
what the user's model means (the export has held it against the quantised model, operator by
operator); Vela's stream in process, on the model of the NPU; and the runner's outputs. What the
stream itself computes wrongly is Vela's doing, or that of the model of the NPU: a defect that
Vela is known for settles it, and so does an FVP that gives the same bytes. A stream that computes
rightly leaves the runner.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness.config.npu import defects
from harness.core import judgement
from harness.core.errors import HarnessError
from harness.core.verdict import Word
from harness.export.localise import SmallestPart, first_wrong_value, smallest_part
from harness.export.process import ExportProcess
from harness.export.program import Delegate, Program, TensorSpec
from harness.npu.blob import find_blobs, read_actions, read_blob
from harness.npu.errors import EthosUError
from harness.npu.model import Network
from harness.npu.stream import RegisterState, register_set, walk
from harness.system.files import read_regular

# Delegate, input set -> its outputs in the runner; None: it did not come to them.
Produced = Callable[[int, int], "Sequence[bytes] | None"]
_TRIES = 60
# When no delegate disagrees.
ELSEWHERE = (
    "every delegate computes what TOSA does, so the difference comes from an operator on the CPU "
    "or from how tensors are passed"
)
_STOP = 0xFFFF0000  # NPU_OP_STOP with every bit of its mask


class Culprit(Word):
    COMPILER = "compiler"
    COMPILER_OR_NPU_MODEL = "compiler or NPU model"
    PROGRAM_FILE = "program file"
    RUNNER = "runner"


@dataclass(frozen=True)
class NpuBlame:
    """``operators``: the smallest part of the delegate's graph that is still wrong, of ``whole``.

    ``defect``: the name of a known defect. ``same_bytes``: the runner's delegate gives the same
    bytes as the stream in process; None if unknown. ``tensor``: the first wrong value.
    """

    culprit: Culprit
    compiler: str
    pte: str
    operators: tuple[str, ...] = ()
    whole: int = 0
    defect: str = ""
    same_bytes: bool | None = None
    unreduced: str = ""  # why there is no smallest part
    delegate: int | None = None
    tensor: str = ""

    @property
    def judged(self) -> judgement.Blame:
        return judgement.Blame(self.culprit, str(self), self.facts)

    @property
    def facts(self) -> dict[str, Any]:
        return {
            "culprit": self.culprit,
            "compiler": self.compiler,
            "defect": self.defect or None,
            "operators": list(self.operators),
            "delegate": self.delegate,
            "tensor": self.tensor,
            "same_bytes": self.same_bytes,
        }

    def __str__(self) -> str:
        if self.culprit is Culprit.RUNNER:
            return (
                f"the runner, not the compiler ({self.compiler}) and not your model: the streams "
                "of this program are right on the model of the NPU"
            )
        if self.culprit is Culprit.PROGRAM_FILE:
            why = "its stream is not the exported one, which is right"
            return f"the program file {self.pte}: {why}"
        who = f"the compiler ({self.compiler})"
        if self.culprit is Culprit.COMPILER_OR_NPU_MODEL:
            who += ", or the harness's model of the NPU"
        return f"{who}, not your model: {self._why()}{self._compared()}{self._smallest()}"

    def _why(self) -> str:
        known = defects().defects.get(self.defect)
        if known is not None:
            helps = f"; what helps: {known.instead}" if known.instead else ""
            newest = f"also in Vela {defects().seen_in[-1]}"
            versions = f"right with Vela {known.right_in}" if known.right_in else newest
            return f"known defect `{self.defect}`: {known.what} ({versions}){helps}"
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
) -> tuple[str, NpuBlame] | None:
    """Where NPU and TOSA first differ, and whose fault that is; None without delegates.

    ``independent``: the NPU that ran was not the harness's own model.
    """
    if not program.delegates:
        return None
    compiler = f"Vela {program.versions.get('ethos-u-vela', '?')}"
    wrong = first_disagreement(program, pte=pte)
    if wrong is None:
        return ELSEWHERE, NpuBlame(Culprit.RUNNER, compiler, str(pte))
    with ExportProcess() as process:
        blame = _of_stream(program, wrong, NpuBlame(Culprit.COMPILER, compiler, str(pte)), process)
        wrong = name_operator(program, wrong, process, pte)
    blame = replace(blame, delegate=wrong.delegate, tensor=wrong.tensor)
    if blame.culprit is Culprit.COMPILER:
        blob = _blobs(program, None)[wrong.delegate]
        if not wrong.trouble:
            same = _gives(program, Network(blob), wrong.delegate, wrong.set, produced)
            blame = replace(blame, same_bytes=same)
        settled = blame.defect or (independent and blame.same_bytes)
        if not settled:
            blame = replace(blame, culprit=Culprit.COMPILER_OR_NPU_MODEL)
    return str(wrong), blame


def _of_stream(
    program: Program, wrong: Disagreement, blame: NpuBlame, process: ExportProcess
) -> NpuBlame:
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


def _gives(
    program: Program, network: Network, number: int, input_set: int, produced: Produced
) -> bool | None:
    """Whether the runner's delegate gave the outputs of ``network``; None if unknown."""
    actual, files = produced(number, input_set), program.delegates[number].sets[input_set]
    if actual is None:
        return None
    inputs = _read(program.directory, files.inputs)
    outputs = [bytes(output) for output in network.run(inputs, strict=False)[0]]
    if [len(output) for output in outputs] != [len(output) for output in actual]:
        return None  # the runner adjusted the layout
    return outputs == [*actual]


@dataclass(frozen=True)
class Disagreement:
    """The first wrong element; without one, ``trouble`` says why the delegate does not run.

    ``operator`` and ``tensor`` are names of the TOSA graph. When compiling the graph anew shows
    no fault, or cannot be done (``unnamed`` is the error then, its class first), ``operator`` is
    empty, ``tensor`` is an output of the delegate, and ``operation`` is the one of the command
    stream that wrote the element.
    """

    delegate: int
    set: int
    tensor: str = ""
    element: tuple[int, ...] = ()
    expected: int = 0
    actual: int = 0
    operator: str = ""
    operation: str = ""
    unnamed: str = ""
    trouble: str = ""
    output: int = 0  # of the delegate
    byte: int = 0  # of that output, the first that differs

    def __str__(self) -> str:
        where = f"delegate {self.delegate}, input set {self.set}"
        if self.trouble:
            return f"{where}: {self.trouble}"
        what = f"{self.operator} ({self.tensor})" if self.operator else f"output {self.tensor}"
        written = f", written by {self.operation}" if self.operation else ""
        unnamed = f"; its operator is not named: {self.unnamed}" if self.unnamed else ""
        return (
            f"{where}: {what}, element {list(self.element)} is {self.actual} on the NPU and "
            f"{self.expected} in TOSA{written}{unnamed}"
        )


def first_disagreement(
    program: Program, sets: Sequence[int] | None = None, pte: Path | None = None
) -> Disagreement | None:
    """Return the first delegate that computes something else than the oracle.

    Only the given input sets count; the operator is not named yet. ``pte`` is the file that really
    ran, when it may not be the exported one. None when all agree: then the difference comes from
    outside the NPU, that is, from an operator on the CPU or from how the runner passes tensors."""
    blobs = _blobs(program, pte)
    if len(blobs) != len(program.delegates):
        trouble = f"the program that ran has {len(blobs)} delegates, not {len(program.delegates)}"
        return Disagreement(0, 0, trouble=trouble)
    for number, (delegate, blob) in enumerate(zip(program.delegates, blobs, strict=True)):
        for index in sets if sets is not None else range(len(delegate.sets)):
            wrong = _compared(program, number, delegate, blob, index)
            if wrong is not None:
                return wrong
    return None


def name_operator(
    program: Program, wrong: Disagreement, process: ExportProcess, pte: Path | None = None
) -> Disagreement:
    """Return ``wrong`` with its operator, if the fault stays when Vela shows more values.

    Otherwise it has the operation of the stream that wrote the element."""
    if wrong.trouble:
        return wrong
    try:
        first = first_wrong_value(process, program, wrong.delegate, wrong.set)
    except HarnessError as error:
        first, wrong = None, replace(wrong, unnamed=f"{type(error).__name__}: {error.message}")
    if first is not None:
        return replace(wrong, **asdict(first))
    blob = _blobs(program, pte)[wrong.delegate]
    inputs = _read(program.directory, program.delegates[wrong.delegate].sets[wrong.set].inputs)
    return replace(wrong, operation=last_writer(blob, inputs, wrong.output, wrong.byte))


def _blobs(program: Program, pte: Path | None) -> list[bytes]:
    """Return the NPU's blobs in the order of the delegates.

    As they lie in the file, if it has another number of them."""
    if pte is None:
        return [read_regular(program.directory / d.blob) for d in program.delegates]
    blobs = find_blobs(read_regular(pte))
    if len(blobs) != len(program.delegates):
        return list(blobs)
    return [blobs[delegate.position] for delegate in program.delegates]


def _compared(
    program: Program, number: int, delegate: Delegate, blob: bytes, index: int
) -> Disagreement | None:
    inputs = _read(program.directory, delegate.sets[index].inputs)
    try:
        outputs, _ = Network(blob).run(inputs)
    except EthosUError as error:
        return Disagreement(number, index, trouble=error.message)
    if len(outputs) != len(delegate.outputs):
        trouble = f"its stream has {len(outputs)} outputs, and the graph {len(delegate.outputs)}"
        return Disagreement(number, index, trouble=trouble)
    expected = _read(program.directory, delegate.sets[index].expected)
    for output, spec in enumerate(delegate.outputs):
        pairs = zip(outputs[output], expected[output], strict=True)
        byte = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
        if byte is not None:
            wrong = _first_element(spec, outputs[output], expected[output])
            return replace(wrong, delegate=number, set=index, output=output, byte=byte)
    return None


def _first_element(spec: TensorSpec, ours: bytes, theirs: bytes) -> Disagreement:
    import numpy as np

    actual, expected = spec.decode(ours), spec.decode(theirs)
    element = tuple(int(i) for i in np.argwhere(actual != expected)[0])
    return Disagreement(0, 0, spec.name, element, int(expected[element]), int(actual[element]))


def _read(directory: Path, names: Sequence[str]) -> list[bytes]:
    return [read_regular(directory / name) for name in names]


def last_writer(blob: bytes, inputs: Sequence[bytes], output: int, byte: int) -> str:
    """Return the operation of a command stream that wrote a byte of the output; "" if unknown.

    An example is ``CONV at byte 0x348 of the stream``. Stops the stream early, at a place found by
    bisection, until the byte has its final value after the operation and another value before it.
    """
    actions = read_actions(read_blob(blob).commands)
    names = register_set(actions.config.product)
    stream = struct.pack(f"<{len(actions.words)}I", *actions.words)
    start = blob.index(stream)
    done = [(found.offset, found.name) for found in walk(actions.words, names, RegisterState())]
    if any(name == "BRANCH" for _, name in done):
        return ""

    def after(count: int) -> int:
        stopped = bytearray(blob)
        if count < len(done):
            struct.pack_into("<I", stopped, start + done[count][0], _STOP)
        return Network(bytes(stopped)).run(inputs, strict=False)[0][output][byte]

    final = after(len(done))
    count = bisect_left(range(len(done)), True, key=lambda count: after(count) == final)
    if count == 0:
        return ""
    offset, name = done[count - 1]
    return f"{name} at byte {offset:#x} of the stream"
