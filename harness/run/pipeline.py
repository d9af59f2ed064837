"""Run cases: the one place where the stages meet.

``run_cases`` exports what is not cached (all of it in one process), builds the firmware each
target needs meanwhile, then simulates and judges the cases in parallel. A case that fails
early still gets a record, and never stops the others.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from harness.build.firmware import Firmware, build
from harness.build.operators import operators_of, require_operators
from harness.build.zephyr import find_workspace
from harness.case.budgets import run_limits
from harness.case.case import Case
from harness.case.models import find_model
from harness.errors import HarnessError, InfraError, UsageError
from harness.export import ExportEvent, ExportRequest, export
from harness.export.program import InputSet, Program
from harness.footprint.elf import Region, measure
from harness.judge.reference import load_reference
from harness.judge.run import Ending, Expectation, Outputs, judge
from harness.judge.symbols import where_spinning
from harness.localise.first_difference import first_difference
from harness.observe import observe
from harness.run.record import RunRecord, SimulatorFacts, failed_record
from harness.run.rejudge import judge_again, judged
from harness.simulate import Transcript, choose, simulate, skip_without_fvp
from harness.simulate.fvp import eula_accepted
from harness.system.paths import references_dir, runs_dir
from harness.system.progress import Progress, silent
from harness.target.loading import Target, load_target

__all__ = [
    "RunOptions",
    "elf_metrics",
    "ending",
    "export_cases",
    "judge_again",
    "new_run_dir",
    "run_case",
    "run_cases",
]

_EXPORT_WORDS = {"started": "exporting", "waiting": "waiting for another process's export"}


@dataclass(frozen=True)
class RunOptions:
    """How to run, beyond which case.

    ``pte`` replaces the exported program by a file of the user's, judged against the export's
    inputs and expected outputs. ``tolerance_lsb`` is the largest accepted difference in steps
    of the output's scale. ``profile`` asks the runner for ticks per operator. ``limit_factor``
    multiplies all limits (None: ``$HIL_LIMIT_FACTOR``). ``fvp_missing``: "fail" or "skip" a case
    whose FVP is not installed.
    """

    simulator: str = "auto"
    tolerance_lsb: float = 0.0
    pte: Path | None = None
    profile: bool = False
    limit_factor: float | None = None
    fvp_missing: str = "fail"


def run_cases(
    cases: Sequence[Case], options: RunOptions, progress: Progress = silent
) -> list[RunRecord]:
    """One record per case, in order. Raises UsageError before any work for a wrong name."""
    targets = {name: load_target(name) for name in {c.target for c in cases}}
    for target in targets.values():
        choose(target, options.simulator)
        if target.zephyr is not None:
            find_workspace(target.zephyr.board)  # says at once how to get one
    # a default memory mode that was named is not part of the target's name
    cases = [Case(targets[c.target].name, c.model) for c in cases]
    targets = {target.name: target for target in targets.values()}
    requests = _requests(cases, targets)
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        firmware = {
            name: pool.submit(build, t, simulator=options.simulator, progress=progress)
            for name, t in targets.items()
        }
        programs = _exported(requests, progress)
        pending = [
            pool.submit(_run_one, case, targets[case.target], program, firmware[case.target],
                        options, progress)
            for case, program in zip(cases, programs, strict=True)
        ]  # fmt: skip
        return [future.result() for future in pending]


def export_cases(
    cases: Sequence[Case], targets: Mapping[str, Target], progress: Progress = silent
) -> list[Program | HarnessError]:
    """The Program of each case, or the error that prevented it, in order."""
    return _exported(_requests(cases, targets), progress)


def _requests(cases: Sequence[Case], targets: Mapping[str, Target]) -> list[ExportRequest]:
    return [_request(c.model, targets[c.target]) for c in cases]


def _request(model: str, target: Target) -> ExportRequest:
    source = find_model(model)
    if target.npu is None:
        return ExportRequest(source, target.compile_target)
    return ExportRequest(
        source,
        target.compile_target,
        system_config=target.npu.system_config,
        memory_mode=target.npu.memory_mode,
    )


def _exported(
    requests: Sequence[ExportRequest], progress: Progress
) -> list[Program | HarnessError]:
    def report(event: ExportEvent) -> None:
        if event.kind in ("started", "waiting"):
            progress(f"{event.request.model.name}: {_EXPORT_WORDS[event.kind]}")

    results = export(requests, on_event=report)
    return [result.error or result.unwrap() for result in results]


def _run_one(
    case: Case,
    target: Target,
    program: Program | HarnessError,
    firmware: Future[Firmware],
    options: RunOptions,
    progress: Progress,
) -> RunRecord:
    try:
        if isinstance(program, HarnessError):
            raise program
        return run_case(case, target, program, firmware.result(), options, progress)
    except HarnessError as error:
        return failed_record(case, _now(), error)


def run_case(
    case: Case,
    target: Target,
    program: Program,
    firmware: Firmware,
    options: RunOptions,
    progress: Progress = silent,
) -> RunRecord:
    """Simulate and judge one exported case; the record is saved in its run directory."""
    progress(f"{case.id}: simulating")
    if options.fvp_missing == "skip":
        skip_without_fvp(target, options.simulator)
    pte = options.pte or program.pte_path
    pte_sha256 = _sha256(pte)
    require_operators(firmware.elf, program.operators if options.pte is None else operators_of(pte))
    run_dir = new_run_dir(case.label)
    started = time.monotonic()
    transcript = simulate(
        target,
        firmware,
        program=pte,
        sets=[[program.directory / name for name in s.inputs] for s in program.sets],
        run_dir=run_dir,
        simulator=options.simulator,
        profile=options.profile,
        limit_factor=options.limit_factor,
    )
    simulated = time.monotonic()
    _keep_expectations(program, run_dir)
    static = {
        "pte_bytes": pte.stat().st_size,
        **elf_metrics(target.on(transcript.simulator), firmware.elf),
    }
    expectation = Expectation(
        build_id=firmware.build_id,
        pte_unchanged=pte_sha256 == program.pte_sha256,
        pte_sha256=pte_sha256,
        toolchain=firmware.toolchain_id,
        tolerance_lsb=options.tolerance_lsb,
        reference=load_reference(references_dir(), case),
        limits=run_limits(case),
    )
    record = RunRecord(
        case=case,
        time=_now(),
        verdict=judge(observe(b""), ending(transcript), Outputs(()), {}, expectation),
        static_metrics=static,
        run_dir=str(run_dir),
        simulator=_simulator_facts(transcript, target),
        npu=transcript.npu,
        ending=ending(transcript, firmware.elf),
        expectation=expectation,
        program={"pte": str(pte), "sha256": pte_sha256, "oracle": program.oracle,
                 "oracles": [asdict(agreement) for agreement in program.oracles],
                 "operators": list(program.operators), "versions": program.versions},
        firmware={"elf": str(firmware.elf), "key": firmware.key, "build_id": firmware.build_id,
                  "toolchain": firmware.toolchain_id},
        seconds={"simulate": round(simulated - started, 4)},
    )  # fmt: skip
    final = judged(record, program, transcript.observation)
    if final.verdict.name == "MISMATCH":
        where = first_difference(program, pte)
        final = judged(replace(final, mismatch_at=where), program, transcript.observation)
    final.save()
    return final


def elf_metrics(target: Target, elf: Path) -> dict[str, int]:
    """The ELF's bytes by region of the target; nothing for a target without a memory map."""
    regions = [Region(r.name, r.origin, r.size) for r in target.memory]
    return measure(elf, regions).metrics() if regions else {}


def new_run_dir(label: str) -> Path:
    """A fresh directory under ``.hil/runs``. Raises InfraError when it cannot be made."""
    stamp = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S")
    path = runs_dir() / f"{stamp}-{label}-{uuid.uuid4().hex[:6]}"
    try:
        path.mkdir(parents=True)
    except OSError as error:
        raise InfraError(
            f"cannot make the run directory {path}: {error}", path=str(path)
        ) from error
    return path


def _keep_expectations(program: Program, run_dir: Path) -> None:
    """Copy what judging needs (not the program) into the run directory."""
    kept = replace(program, directory=run_dir / "expected", sets=tuple(
        InputSet(s.inputs, tuple(f"set{k}-{n}.bin" for n in range(len(s.expected))))
        for k, s in enumerate(program.sets)
    ))  # fmt: skip
    try:
        kept.directory.mkdir()
        for old, new in zip(program.sets, kept.sets, strict=True):
            for source, name in zip(old.expected, new.expected, strict=True):
                shutil.copyfile(program.directory / source, kept.directory / name)
        kept.save()
    except OSError as error:
        raise InfraError(f"cannot write into {run_dir}: {error}", path=str(run_dir)) from error


def ending(transcript: Transcript, elf: Path | None = None) -> Ending:
    cpu = transcript.cpu
    return Ending(
        transcript.stop,
        transcript.exit_status,
        transcript.signal,
        transcript.seconds,
        native=transcript.simulator == "host",
        where=None if cpu is None else where_spinning(cpu.registers, cpu.stack, elf),
    )


def _simulator_facts(transcript: Transcript, target: Target) -> SimulatorFacts:
    return SimulatorFacts(
        name=transcript.simulator,
        version=transcript.version,
        confined=transcript.confined,
        unconfined_reason=transcript.unconfined_reason,
        argv=transcript.argv,
        environment=transcript.environment,
        eula=eula_accepted() if transcript.simulator == "fvp" else None,
        differences=target.differences(transcript.simulator),
    )


def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", path=str(path)) from error


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
