"""A run directory -> its verdict, as often as one likes: nothing is executed or written."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from harness.errors import UsageError
from harness.export.program import Program, load_program
from harness.judge.compare import TensorDiff, compare
from harness.judge.npu import with_npu, with_place
from harness.judge.run import Outputs, judge, worst
from harness.judge.symbols import with_symbols
from harness.observe import Observation, observe
from harness.run.record import RunRecord, load_record
from harness.simulate.transcript import CONSOLE, WORK


def judge_again(run_dir: Path) -> RunRecord:
    """The verdict of a finished run, from its directory alone; nothing is executed or written.

    Raises UsageError when the directory does not hold a run.
    """
    record = load_record(run_dir)
    program = load_program(run_dir / "expected")
    if program is None or record.ending is None or record.expectation is None:
        raise UsageError(f"{run_dir} does not hold a whole run", run_dir=str(run_dir))
    return judged(replace(record, run_dir=str(run_dir)), program)


def judged(
    record: RunRecord, program: Program, observation: Observation | None = None
) -> RunRecord:
    """The record with everything that follows from its run directory filled in.

    ``observation`` is what was read while the run went on, if it was.
    """
    assert record.run_dir is not None
    assert record.ending is not None
    assert record.expectation is not None
    run_dir, sim = Path(record.run_dir), record.simulator
    if observation is None:
        observation = observe((run_dir / CONSOLE).read_bytes())
    if "elf" in record.firmware:
        observation = with_symbols(observation, Path(record.firmware["elf"]))
    outputs = read_outputs(program, run_dir / WORK)
    metrics = {**record.static_metrics, **{k: m.value for k, m in observation.metrics.items()}}
    budgeted = {k: v for k, v in metrics.items() if not k.endswith("_total")}
    verdict = judge(observation, record.ending, outputs, budgeted, record.expectation)
    verdict = with_npu(verdict, record.npu, () if sim is None else sim.differences)
    verdict = with_place(verdict, record.mismatch_at)
    return replace(
        record,
        verdict=verdict,
        metrics=metrics,
        worst_lsb=worst(outputs.diffs) if outputs.diffs else None,
        sets=len(program.sets),
        output_sha256=outputs.sha256,
        op_ticks=_ticks_by_operator(observation),
    )


def _ticks_by_operator(observation: Observation) -> dict[str, tuple[int, int]]:
    """Operator to (calls, ticks) in the first input set."""
    sums: dict[str, tuple[int, int]] = {}
    for entry in observation.op_ticks:
        if entry.input_set == 0:
            calls, ticks = sums.get(entry.operator, (0, 0))
            sums[entry.operator] = (calls + 1, ticks + entry.ticks)
    return sums


def read_outputs(program: Program, work: Path) -> Outputs:
    """Compare every output file of a run with what the Program expects."""
    diffs: list[TensorDiff] = []
    missing: list[str] = []
    misshapen: list[str] = []
    digests: list[tuple[str, ...]] = []
    for k, input_set in enumerate(program.sets):
        raws: list[bytes] = []
        for n, (spec, name) in enumerate(zip(program.outputs, input_set.expected, strict=True)):
            file = work / f"s{k}-{n}.bin"
            if file.is_symlink() or not file.is_file():  # a guest may leave anything
                missing.append(file.name)
                continue
            raw = file.read_bytes()
            raws.append(raw)
            if len(raw) == spec.nbytes:
                diffs.append(compare(spec, k, raw, (program.directory / name).read_bytes()))
            else:
                misshapen.append(f"{file.name} has {len(raw)} bytes, expected {spec.nbytes}")
        digests.append(tuple(hashlib.sha256(raw).hexdigest() for raw in raws))
    return Outputs(tuple(diffs), tuple(missing), tuple(misshapen), tuple(digests))
