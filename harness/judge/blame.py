"""Whose fault is it? The compiler's, the program file's or the runner's.

Three computations are there: the TOSA graph that Vela was given, on the reference model, which is
what the user's model means (the export has held it against the quantised model, operator by
operator); Vela's stream in process, on the model of the NPU; and the runner's outputs. What the
stream itself computes wrongly is Vela's doing, or that of the model of the NPU: a defect that
Vela is known for settles it, and so does an FVP that gives the same bytes. A stream that computes
rightly leaves the runner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.config.npu import defects
from harness.core import judgement
from harness.core.errors import HarnessError
from harness.core.verdict import Word
from harness.export.localise import SmallestPart, smallest_part
from harness.export.process import ExportProcess
from harness.export.program import Program
from harness.judge.first_disagreement import (
    ELSEWHERE,
    Disagreement,
    first_disagreement,
    name_operator,
)
from harness.npu.model import Network
from harness.system.files import read_regular

# Delegate, input set -> its outputs in the runner; None: it did not come to them.
Produced = Callable[[int, int], "Sequence[bytes] | None"]
_TRIES = 60


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
        blob = read_regular(program.directory / program.delegates[wrong.delegate].blob)
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
    inputs = [read_regular(program.directory / name) for name in files.inputs]
    outputs = [bytes(output) for output in network.run(inputs, strict=False)[0]]
    if [len(output) for output in outputs] != [len(output) for output in actual]:
        return None  # the runner adjusted the layout
    return outputs == [*actual]
