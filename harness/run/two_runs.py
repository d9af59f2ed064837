"""Compares two runs of one program: of two runners, or on two simulators.

The results of two runners or two simulators (``--firmware both``, ``--simulator board+qemu``) are
compared with each other. The bundled runner follows the definitions that ``--oracle`` names and is
an oracle for the checkout's; somebody has to look at a difference that has no name
(``export/by_design``), whatever the verdicts are. The last bits of floats differ: each runner adds
in its own order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from harness.core.errors import MalformedFile
from harness.formats.pte import Instruction
from harness.judge.evidence import TensorDiff, compare
from harness.judge.first_difference import FirstDifference, first_difference
from harness.run.directory import save_record
from harness.run.judging import RunPlan
from harness.run.record import Differential, RunRecord
from harness.sim.run_files import WORK, output_base, output_name, read_output


@dataclass(frozen=True)
class FinishedRun:
    """A run that was simulated and judged. ``record`` has its run directory."""

    plan: RunPlan
    record: RunRecord

    def output(self, name: str, nbytes: int) -> bytes | None:
        """Return an output of the run; None if it was not written, or has another size."""
        assert self.record.run_dir is not None
        found = read_output(Path(self.record.run_dir) / WORK / name, nbytes)
        return None if found is None or found[1] != nbytes else found[0]


def compared(own: FinishedRun, other: FinishedRun) -> RunRecord:
    """Return the second record with the differences, saved; unchanged without outputs."""
    tensors = _tensors(own, other)
    if not tensors:
        return other.record
    names = own.plan.chosen.name, other.plan.chosen.name
    several = names[0] is not names[1]
    differential = Differential(
        tensors=tensors,
        between=names if several else (own.record.source, other.record.source),
        first=_first_difference(own, other, tensors),
        by_design=other.record.by_design,
        figures=_side_by_side(own.record.metrics, other.record.metrics),
        # a board's are cycles
        operators={} if several else _side_by_side(_ticks(own.record), _ticks(other.record)),
    )
    record = replace(other.record, differential=differential)
    save_record(record)
    return record


def _tensors(own: FinishedRun, other: FinishedRun) -> tuple[TensorDiff, ...]:
    found, program = [], own.plan.program
    for k in range(len(program.sets)):
        for n, spec in enumerate(program.outputs):
            name = output_name(output_base(k), n)
            ours, theirs = (run.output(name, spec.nbytes) for run in (own, other))
            if ours is not None and theirs is not None:  # else it is judged already
                found.append(compare(spec, k, theirs, ours))
    return tuple(found)


def _first_difference(
    own: FinishedRun, other: FinishedRun, tensors: tuple[TensorDiff, ...]
) -> FirstDifference | None:
    wrong = next((diff for diff in tensors if not diff.exact), None)
    if wrong is None:
        return None
    one, two = (run.plan.cut(wrong.input_set) for run in (own, other))

    def differs(step: Instruction) -> bool | None:
        ours, theirs = one.results(step), two.results(step)
        return None if ours is None or theirs is None else ours != theirs

    try:
        return first_difference(one.cuttable, differs)
    except (MalformedFile, OSError):  # the runners read it, and it cannot be cut
        return None


def _side_by_side(
    own: Mapping[str, int], other: Mapping[str, int]
) -> dict[str, tuple[int | None, int | None]]:
    return {name: (own.get(name), other.get(name)) for name in {**own, **other}}


def _ticks(record: RunRecord) -> dict[str, int]:
    return {name: ticks for name, (_, ticks) in record.op_ticks.items()}
