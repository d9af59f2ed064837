"""``hil npu reduce``: from a program to the smallest part of it that the NPU computes wrongly."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.core.errors import UsageError
from harness.export.localise import SmallestPart, smallest_part
from harness.export.process import ExportProcess
from harness.export.program import Program
from harness.judge.first_difference import first_disagreement
from harness.system.files import disk_errors


@dataclass(frozen=True)
class Reduced:
    delegate: int
    input_set: int
    smallest: SmallestPart


def reduce_program(program: Program, base: Path, tries: int) -> Reduced | None:
    """None when every delegate computes what TOSA means, or the graph, compiled anew, does.

    Writes BASE.tosa, its inputs and Vela's stream of it.
    """
    if not program.delegates:
        raise UsageError(f"nothing of {program.model} runs on an Ethos-U")
    wrong = first_disagreement(program)
    if wrong is None:
        return None
    with ExportProcess() as process, disk_errors("writing the reduced program"):
        smallest = smallest_part(
            process, program, wrong.delegate, wrong.set, tries=tries, base=base
        )
    return None if smallest is None else Reduced(wrong.delegate, wrong.set, smallest)
