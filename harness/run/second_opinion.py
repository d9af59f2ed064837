"""Two runners, or two simulators, on one program: where they agree, where they first part, and what
each costs.

Made from the records of both (``--firmware both``, ``--simulator board+qemu``). The bundled runner
follows the definitions that ``--oracle`` names and is an oracle beside the checkout's; a difference
here that has no name (``export/by_design``) is for somebody to look at, whatever the verdicts are.
Of floats the last bits differ: each runner adds them up in an order of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness.core.errors import MalformedFile
from harness.export.program import Program
from harness.firmware.firmware import Firmware
from harness.formats.pte_cut import Instruction
from harness.judge.evidence import TensorDiff, compare
from harness.judge.first_operator import FirstDifference, first_difference
from harness.run.cpu_blame import CutRuns
from harness.run.directory import save_record
from harness.run.record import Differential, RunRecord
from harness.sim.run_files import WORK, output_base, output_name, read_output
from harness.sim.simulator import Chosen


def second_opinion(
    program: Program,
    pair: tuple[RunRecord, RunRecord],
    runners: Sequence[tuple[Chosen, Firmware]],
) -> RunRecord:
    """The second record with what came of comparing the two, or as it is when one of the runs
    left no outputs. ``runners``: those of ``pair``, which have run directories."""
    (one, _), (two, _) = runners
    several = one.name is not two.name
    own, other = pair
    assert own.run_dir is not None
    assert other.run_dir is not None
    tensors = _tensors(program, Path(own.run_dir), Path(other.run_dir))
    if not tensors:
        return other
    differential = Differential(
        tensors=tensors,
        between=(one.name, two.name) if several else (own.source, other.source),
        first=_first(program, runners, tensors),
        by_design=other.by_design,
        figures=_beside(own.metrics, other.metrics),
        # a board's are cycles
        operators={} if several else _beside(_ticks(own), _ticks(other)),
    )
    compared = replace(other, differential=differential)
    save_record(compared)
    return compared


def _tensors(program: Program, own: Path, other: Path) -> tuple[TensorDiff, ...]:
    found = []
    for k in range(len(program.sets)):
        for n, spec in enumerate(program.outputs):
            name = output_name(output_base(k), n)
            there = [read_output(run / WORK / name, spec.nbytes) for run in (own, other)]
            whole = [read[0] for read in there if read is not None and read[1] == spec.nbytes]
            if len(whole) == 2:  # else one is not written, or of another size: judged already
                found.append(compare(spec, k, whole[1], whole[0]))
    return tuple(found)


def _first(
    program: Program,
    runners: Sequence[tuple[Chosen, Firmware]],
    tensors: tuple[TensorDiff, ...],
) -> FirstDifference | None:
    wrong = next((diff for diff in tensors if not diff.exact), None)
    if wrong is None:
        return None
    pte = program.pte_path
    one, two = (CutRuns(*runner, program, pte, wrong.input_set) for runner in runners)

    def differs(step: Instruction) -> bool | None:
        ours, theirs = one.results(step), two.results(step)
        return None if ours is None or theirs is None else ours != theirs

    try:
        return first_difference(one.cuttable, differs)
    except (MalformedFile, OSError):  # the runners read it, and it cannot be cut
        return None


def _beside(
    own: Mapping[str, int], other: Mapping[str, int]
) -> dict[str, tuple[int | None, int | None]]:
    return {name: (own.get(name), other.get(name)) for name in {**own, **other}}


def _ticks(record: RunRecord) -> dict[str, int]:
    return {name: ticks for name, (_, ticks) in record.op_ticks.items()}
