"""Runs what is in a bundle again on this machine, and says what is the same."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.config.loading import load_target
from harness.config.schema import checked
from harness.config.target import Target
from harness.core.errors import HarnessError, Unknown, UsageError
from harness.core.verdict import ExitCode
from harness.export.program import Program
from harness.firmware.firmware import Firmware, read_firmware
from harness.run.bundle import FIRMWARE, TARGET, BadBundle, target_fields, unpack
from harness.run.directory import EXPECTED, kept_expectations, load_record, new_run_dir
from harness.run.judging import RunPlan, static_metrics
from harness.run.pipeline import run_planned
from harness.run.record import RunRecord
from harness.sim.run_files import WORK, input_name, output_base, output_name, program_name
from harness.sim.simulator import pick
from harness.system.files import MALFORMED, read_json
from harness.system.progress import Progress, silent


@dataclass(frozen=True)
class Replay:
    """The record in the bundle and the new one: ``there`` and ``here``. ``differing``: values there
    and here by name, of verdict, cause, figures and outputs (their sha256)."""

    there: RunRecord
    here: RunRecord
    differing: dict[str, tuple[Any, Any]]

    @property
    def versions(self) -> tuple[str, ...]:
        """Of the simulator."""
        return tuple(r.simulator.version for r in (self.there, self.here) if r.simulator)

    @property
    def same(self) -> bool:
        return not self.differing

    @property
    def exit_code(self) -> ExitCode:
        """0 only for a PASS that was one there, too, with the same outputs and figures."""
        if self.here.verdict.passed and not self.same:
            return ExitCode.FAILED
        return self.here.verdict.exit_code

    def summary(self) -> dict[str, Any]:
        return {
            **self.here.summary(),
            "same": self.same,
            "there": {"verdict": self.there.verdict, "cause": _facts(self.there)["cause"]},
            "differing": {name: list(pair) for name, pair in self.differing.items()},
            "simulator_versions": list(self.versions),
        }


def replay(
    bundle: Path,
    progress: Progress = silent,
    *,
    bundled_target: bool = False,
    limit_factor: float | None = None,
    require_confinement: bool = True,
) -> Replay:
    """``bundled_target``: the bundle's, whatever is known here. ``require_confinement``: refuse to
    run it unconfined. Raises BadBundle, UsageError for a target that is another one here,
    ToolMissing without the simulator, InfraError when it cannot be run."""
    run_dir = new_run_dir("replay")
    root = run_dir / "bundle"
    there, program, firmware, fields = read_bundle(bundle, root, unpack(bundle, root))
    assert there.simulator is not None
    assert there.expectation is not None
    pte = program.pte_path
    try:
        target = checked(Target, fields) if bundled_target else _known_target(there, fields)
        chosen = pick(target, str(there.simulator.name))
        progress(f"{there.case.id}: simulating")
        static = static_metrics(firmware, pte)
        plan = RunPlan(there.case, chosen, program, firmware, pte, there.expectation, static)
        here = run_planned(
            plan,
            run_dir,
            known=there,
            profile=bool(there.op_ticks),
            limit_factor=limit_factor,
            require_confinement=require_confinement,
        )
    except MALFORMED as error:  # of facts in it that only their use shows to be wrong
        raise BadBundle(bundle, f"what it describes cannot be run ({error!r})") from error
    differing = _differing(_facts(there), _facts(here))
    if chosen.simulator.native:  # its times are this machine's
        differing = {n: pair for n, pair in differing.items() if not n.startswith("ticks_")}
    return Replay(there, here, differing)


def read_bundle(
    bundle: Path, root: Path, names: Collection[str]
) -> tuple[RunRecord, Program, Firmware, dict[str, Any]]:
    """Record, program, firmware and target's fields of a bundle that was unpacked to ``root``. What
    they name is in it, among ``names``. Raises BadBundle."""
    try:
        record, program = load_record(root), kept_expectations(root)
        firmware, target = read_firmware(root / FIRMWARE), read_json(root / TARGET)
        if program is None or firmware is None:
            raise ValueError(f"the {'program' if program is None else 'firmware'} is not whole")
        if (name := checked(Target, target).name) != record.case.board:
            raise ValueError(f"{TARGET} is {name}, and the run was on {record.case.board}")
        if not (record.simulator and record.expectation and record.firmware and record.program):
            raise ValueError("its record is not that of a whole run")
        pte = program_name(Path(record.program.pte))
    except (OSError, HarnessError, *MALFORMED) as error:
        raise BadBundle(bundle, str(error)) from error
    for name in program.expected_files:
        if f"{EXPECTED}/{name}" not in names:
            raise BadBundle(bundle, f"its program names {name!r}, which is not in it")
    sets = tuple(
        replace(s, inputs=tuple(f"../{WORK}/{input_name(k, n)}" for n in range(len(s.inputs))))
        for k, s in enumerate(program.sets)
    )
    program = replace(program, delegates=(), pte=f"../{WORK}/{pte}", sets=sets)
    return record, program, firmware, target


def _known_target(there: RunRecord, fields: dict[str, Any]) -> Target:
    """The target that is known here under the name of the bundle's. Raises UsageError."""
    try:
        known = load_target(there.case.board)
        differing = _differing(fields, target_fields(known))
        problem = f"is another one here: it differs in {', '.join(differing)}" if differing else ""
    except Unknown:
        problem = "is not known here"
    if problem:
        raise UsageError(
            f"the bundle's target {there.case.board} {problem}",
            hint="`targets` of your settings names a folder with its file; or look at target.json "
            "in the bundle, and use it with --bundled-target",
        )
    return known


def _facts(record: RunRecord) -> dict[str, Any]:
    """What a run came to."""
    outputs = {
        output_name(output_base(k), n): digest
        for k, digests in enumerate(record.output_sha256)
        for n, digest in enumerate(digests)
    }
    cause = None if record.cause is None else record.cause.kind
    return {"verdict": record.verdict, "cause": cause, **record.metrics, **outputs}


def _differing(
    there: Mapping[str, object], here: Mapping[str, object]
) -> dict[str, tuple[object, object]]:
    names = sorted({*there, *here})
    return {n: (there.get(n), here.get(n)) for n in names if there.get(n) != here.get(n)}
