"""Runs what is in a bundle again on this machine, and says what is the same."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from harness.config.loading import Target, load_target
from harness.config.model import target_from
from harness.core.errors import HarnessError, InfraError, Unknown, UsageError
from harness.core.verdict import ExitCode
from harness.export.program import Program, load_program
from harness.firmware.firmware import Firmware, read_firmware
from harness.run.bundle import FIRMWARE, MAX_BYTES, TARGET, BadBundle, unpack
from harness.run.directory import keep_expectations, load_record, new_run_dir, save_record
from harness.run.judging import RunPlan, record_run, static_metrics
from harness.run.pack import target_fields
from harness.run.record import RunRecord
from harness.sim.simulation import simulate
from harness.sim.simulator import pick, simulator
from harness.sim.transcript import Transcript
from harness.system.clock import now
from harness.system.files import MALFORMED, disk_errors, read_json
from harness.system.progress import Progress, silent

_TIME = "ticks_"  # figures of a native program that its machine decides


class OtherSimulator(InfraError):
    """``there``: the version that the run was made with; ``here``: the installed one."""

    kind = "other_simulator"

    def __init__(self, name: str, there: str, here: str) -> None:
        self.simulator, self.there, self.here = name, there, here
        super().__init__(
            f"the run was made with {name} {there}, and here is {name} {here}",
            hint="install that version; --any-version runs it on this one, and says so",
        )


class OtherTarget(UsageError):
    """``differing``: keys of the target's file; none when the target is not known here."""

    kind = "other_target"

    def __init__(self, target: str, differing: Sequence[str] = ()) -> None:
        self.target, self.differing = target, tuple(differing)
        what = f"is another one here: it differs in {', '.join(differing)}"
        super().__init__(
            f"the bundle's target {target} {what if differing else 'is not known here'}",
            hint="`targets` of your settings names a folder with its file; or look at target.json "
            "in the bundle, and use it with --bundled-target",
        )


@dataclass(frozen=True)
class ReplayOptions:
    """``any_version``: of the simulator. ``bundled_target``: the bundle's, whatever is known here.
    ``max_bytes``: that it may unpack to. ``require_confinement``: refuse to run it unconfined."""

    any_version: bool = False
    bundled_target: bool = False
    max_bytes: int = MAX_BYTES
    limit_factor: float | None = None
    require_confinement: bool = True


@dataclass(frozen=True)
class Replay:
    """The record in the bundle and the new one: ``there`` and ``here``.

    ``outputs``: names of those that differ. ``metrics``: those that differ, with the values there
    and here; a native program's times always do and are not among them. ``versions`` of the
    simulator.
    """

    there: RunRecord
    here: RunRecord
    outputs: tuple[str, ...]
    metrics: dict[str, tuple[int | None, int | None]]
    versions: tuple[str, str]

    @property
    def same(self) -> bool:
        return self.same_verdict and not self.outputs and not self.metrics

    @property
    def same_verdict(self) -> bool:
        return _ended(self.there) == _ended(self.here)

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
            "there": {"verdict": self.there.verdict, "cause": _ended(self.there)[1]},
            "differing_outputs": list(self.outputs),
            "differing_metrics": {name: list(pair) for name, pair in self.metrics.items()},
            "simulator_versions": list(self.versions),
        }


def replay(bundle: Path, options: ReplayOptions, progress: Progress = silent) -> Replay:
    """Raises BadBundle, OtherTarget, OtherSimulator, ToolMissing without the simulator, InfraError
    when it cannot be run."""
    try:
        return _replay(bundle, options, progress)
    except MALFORMED as error:  # of facts in it that only their use shows to be wrong
        raise BadBundle(bundle, f"what it describes cannot be run ({error!r})") from error


def _replay(bundle: Path, options: ReplayOptions, progress: Progress) -> Replay:
    run_dir = new_run_dir("replay")
    root = run_dir / "bundle"
    with disk_errors("unpacking the bundle"):
        root.mkdir()
    names = unpack(bundle, root, options.max_bytes).files
    there, program, firmware, fields = read_bundle(bundle, root, names)
    with disk_errors("unpacking the bundle"):
        firmware.elf.chmod(0o755)  # a native one is started
    assert there.simulator is not None
    assert there.expectation is not None
    target = target_from(fields) if options.bundled_target else _known_target(there, fields)
    chosen = pick(target, str(there.simulator.name))
    version = chosen.require().version
    if version != there.simulator.version and not options.any_version:
        raise OtherSimulator(str(there.simulator.name), there.simulator.version, version)
    progress(f"{there.case.id}: simulating")
    transcript = simulate(
        chosen,
        firmware,
        program=program.pte_path,
        sets=[[root / name for name in input_set.inputs] for input_set in program.sets],
        run_dir=run_dir,
        profile=bool(there.op_ticks),
        limit_factor=options.limit_factor,
        require_confinement=options.require_confinement,
    )
    keep_expectations(program, run_dir)
    static = static_metrics(target, firmware, program.pte_path)
    plan = RunPlan(
        there.case, chosen, program, firmware, program.pte_path, there.expectation, static
    )
    here = record_run(plan, transcript, now(), known=there)
    save_record(here)
    return _compared(there, here, transcript)


def read_bundle(
    bundle: Path, root: Path, names: Collection[str]
) -> tuple[RunRecord, Program, Firmware, dict[str, Any]]:
    """Record, program, firmware and target's fields of a bundle that was unpacked to ``root``. What
    they name is in it, among ``names``. Raises BadBundle."""
    try:
        record, program = load_record(root), load_program(root)
        firmware, target = read_firmware(root / FIRMWARE), read_json(root / TARGET)
        if program is None or firmware is None:
            raise ValueError(f"the {'program' if program is None else 'firmware'} is not whole")
        TypeAdapter(Program).validate_python(asdict(program))
        if (name := target_from(target).name) != record.case.board:
            raise ValueError(f"{TARGET} is {name}, and the run was on {record.case.board}")
    except ValidationError as error:
        raise BadBundle(bundle, f"{error.title}: {error.errors()[0]['msg']}") from error
    except (OSError, HarnessError, *MALFORMED) as error:
        raise BadBundle(bundle, str(error)) from error
    sets = (name for s in program.sets for name in (*s.inputs, *s.expected, *s.by_design))
    for name in (program.pte, *sets):
        if name not in names:
            raise BadBundle(bundle, f"its program names {name!r}, which is not in it")
    whole = record.simulator and record.expectation and record.ending
    if not (whole and record.firmware and record.program):
        raise BadBundle(bundle, "its record is not that of a whole run")
    return record, program, firmware, target


def _known_target(there: RunRecord, fields: dict[str, Any]) -> Target:
    """The target that is known here under the name of the bundle's. Raises OtherTarget."""
    try:
        known = load_target(there.case.board)
    except Unknown as error:
        raise OtherTarget(there.case.board) from error
    here = target_fields(known)
    differing = [n for n in sorted({*here, *fields}) if here.get(n) != fields.get(n)]
    if differing:
        raise OtherTarget(there.case.board, differing)
    return known


def _compared(there: RunRecord, here: RunRecord, transcript: Transcript) -> Replay:
    assert there.simulator is not None
    native = simulator(transcript.simulator).native
    metrics = {
        name: (there.metrics.get(name), here.metrics.get(name))
        for name in sorted({*there.metrics, *here.metrics})
        if there.metrics.get(name) != here.metrics.get(name)
        and not (native and name.startswith(_TIME))
    }
    then, now_ = _outputs(there), _outputs(here)
    outputs = tuple(n for n in sorted({*then, *now_}) if then.get(n) != now_.get(n))
    return Replay(there, here, outputs, metrics, (there.simulator.version, transcript.version))


def _outputs(record: RunRecord) -> Mapping[str, str]:
    """Digests by name, ``s<k>-<n>.bin``."""
    return {
        f"s{k}-{n}.bin": digest
        for k, digests in enumerate(record.output_sha256)
        for n, digest in enumerate(digests)
    }


def _ended(record: RunRecord) -> tuple[str, str | None]:
    return str(record.verdict), None if record.cause is None else record.cause.kind
