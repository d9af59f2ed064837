"""Run what is in a bundle again, here, and say what is the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from harness.config.loading import Target, load_target
from harness.config.model import SimulatorName, target_from
from harness.core.errors import HarnessError, InfraError, Unknown, UsageError
from harness.core.verdict import ExitCode
from harness.export.program import Program, load_program
from harness.firmware.firmware import RUNNER, Firmware, read_firmware
from harness.judge.rules import judge
from harness.run.bundle.archive import FIRMWARE, MAX_BYTES, TARGET, BadBundle, Manifest, unpack
from harness.run.bundle.pack import target_fields
from harness.run.directory import keep_expectations, new_run_dir
from harness.run.gather import RunFacts, gather, static_metrics
from harness.run.identity import host, revision
from harness.run.record import RunRecord, SimulatorFacts, load_record
from harness.sim.pick import Chosen, pick
from harness.sim.simulation import simulate
from harness.sim.transcript import Transcript
from harness.system.clock import now
from harness.system.files import disk_errors
from harness.system.json_file import MALFORMED, read_json
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

    def __init__(self, target: str, differing: tuple[str, ...]) -> None:
        self.target, self.differing = target, differing
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


@dataclass(frozen=True)
class _Bundle:
    """Every file that program and firmware name is in it."""

    record: RunRecord
    simulator: SimulatorFacts
    program: Program
    firmware: Firmware
    target: dict[str, Any]


def replay(bundle: Path, options: ReplayOptions, progress: Progress = silent) -> Replay:
    """Raises BadBundle, OtherTarget, OtherSimulator, ToolMissing without the simulator, InfraError
    when it cannot be run."""
    run_dir = new_run_dir("replay")
    root = run_dir / "bundle"
    with disk_errors("unpacking the bundle"):
        root.mkdir()
    manifest = unpack(bundle, root, options.max_bytes)
    there = _read(bundle, root, manifest)
    with disk_errors("unpacking the bundle"):
        there.firmware.elf.chmod(0o755)  # a native one is started
    target = _target(bundle, there, trusted=options.bundled_target)
    chosen = pick(target, str(there.simulator.name))
    here = chosen.require().version
    if here != there.simulator.version and not options.any_version:
        raise OtherSimulator(str(there.simulator.name), there.simulator.version, here)
    progress(f"{there.record.case.id}: simulating")
    transcript = simulate(
        chosen,
        there.firmware,
        program=there.program.pte_path,
        sets=[[root / name for name in one.inputs] for one in there.program.sets],
        run_dir=run_dir,
        profile=bool(there.record.op_ticks),
        limit_factor=options.limit_factor,
        require_confinement=options.require_confinement,
    )
    keep_expectations(there.program, run_dir)
    record = _judged(there, chosen, transcript)
    record.save()
    return _compared(there.record, record, transcript)


def _read(bundle: Path, root: Path, manifest: Manifest) -> _Bundle:
    """Raises BadBundle."""
    try:
        record, program = load_record(root), load_program(root)
        firmware = read_firmware(root / FIRMWARE)
        if program is None or firmware is None:
            lacking = f"the firmware ({FIRMWARE}/{RUNNER})" if program else "the program"
            raise BadBundle(bundle, f"{lacking} is not whole")
        TypeAdapter(Program).validate_python(asdict(program))
        target = read_json(root / TARGET)
        if (name := target_from(target).name) != record.case.board:
            raise BadBundle(bundle, f"{TARGET} is {name}, and the run was on {record.case.board}")
    except ValidationError as error:
        raise BadBundle(bundle, f"{error.title}: {error.errors()[0]['msg']}") from error
    except (OSError, HarnessError, *MALFORMED) as error:
        if isinstance(error, BadBundle):
            raise
        raise BadBundle(bundle, str(error)) from error
    sets = (name for s in program.sets for name in (*s.inputs, *s.expected, *s.by_design))
    for name in (program.pte, *sets):
        if name not in manifest.files:
            raise BadBundle(bundle, f"its program names {name!r}, which is not in it")
    if record.simulator is None or record.expectation is None or record.ending is None:
        raise BadBundle(bundle, "its record is not that of a whole run")
    if record.firmware is None or record.program is None:
        raise BadBundle(bundle, "its record does not name what ran")
    return _Bundle(record, record.simulator, program, firmware, target)


def _target(bundle: Path, there: _Bundle, *, trusted: bool) -> Target:
    """The target known here under the name, if it is the same; the bundle's own on demand. Raises
    OtherTarget."""
    if trusted:
        return target_from(there.target)
    name = there.record.case.board
    try:
        known = load_target(name)
    except Unknown as error:
        raise OtherTarget(name, ()) from error
    here = target_fields(known)
    names = sorted({*here, *there.target})
    differing = tuple(key for key in names if here.get(key) != there.target.get(key))
    if differing:
        raise OtherTarget(name, differing)
    return known


def _judged(there: _Bundle, chosen: Chosen, transcript: Transcript) -> RunRecord:
    """By what the bundle expects, which is what the run was compared with."""
    record, program, firmware = there.record, there.program, there.firmware
    assert record.expectation is not None
    assert record.program is not None
    assert record.firmware is not None
    static = static_metrics(chosen.target, firmware, program.pte_path)
    differences = there.simulator.differences
    facts = RunFacts.of(transcript, firmware.elf, static, differences)
    evidence = gather(program, transcript.run_dir, facts, transcript.observation)
    if evidence.outputs.sha256 == record.output_sha256:  # then the same is to blame
        evidence = replace(evidence, mismatch_at=record.mismatch_at, blame=record.blame)
    return replace(
        record,
        time=now(),
        static_metrics=static,
        run_dir=str(transcript.run_dir),
        simulator=SimulatorFacts.of(transcript, differences),
        npu=transcript.npu,
        ending=evidence.ending,
        program=replace(record.program, pte=str(program.pte_path)),
        firmware=replace(record.firmware, elf=str(firmware.elf), sha256=firmware.elf_sha256),
        seconds={"simulate": round(transcript.seconds, 4)},
        starts=transcript.starts,
        differential=None,
        harness=revision(),
        host=host(),
    ).with_evidence(evidence, judge(evidence, record.expectation))


def _compared(there: RunRecord, here: RunRecord, transcript: Transcript) -> Replay:
    assert there.simulator is not None
    native = transcript.simulator in (SimulatorName.HOST, SimulatorName.QEMU_USER)
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
