"""Run what is in a bundle again, here, and say what is the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness.build.firmware import RUNNER, Firmware, load_firmware
from harness.bundle.errors import BundleDamaged, OtherSimulator, OtherTarget
from harness.bundle.manifest import FIRMWARE, TARGET, Manifest
from harness.bundle.pack import target_fields
from harness.bundle.unpack import MOST_BYTES, unpack
from harness.errors import HarnessError, Unknown
from harness.errors.verdict import ExitCode
from harness.export.program import Program, load_program
from harness.judge.rules import judge
from harness.run.directory import keep_expectations, new_run_dir
from harness.run.gather import gather_finished, static_metrics
from harness.run.identity import host, revision
from harness.run.record import FirmwareFacts, ProgramFacts, RunRecord, SimulatorFacts, load_record
from harness.simulate.pick import Chosen, pick
from harness.simulate.simulation import simulate
from harness.simulate.transcript import Transcript
from harness.system.clock import now
from harness.system.files import disk_errors, read_regular
from harness.system.json_file import MALFORMED
from harness.system.progress import Progress, silent
from harness.target.loading import Target, load_target
from harness.target.model import SimulatorName
from harness.target.reading import target_from

_BUNDLE = "bundle"
_OF_TIME = "ticks_"  # figures that a native program's machine decides


@dataclass(frozen=True)
class ReplayOptions:
    """``any_version``: of the simulator. ``bundled_target``: the bundle's, whatever is known here.
    ``most``: bytes that it may unpack to. The others as in RunOptions."""

    any_version: bool = False
    bundled_target: bool = False
    most: int = MOST_BYTES
    limit_factor: float | None = None
    require_confinement: bool | None = None


@dataclass(frozen=True)
class Replay:
    """What the bundle says, and what came of running it again: ``there`` and ``here``.

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
        return _told(self.there) == _told(self.here)

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
            "there": {"verdict": self.there.verdict, "cause": _told(self.there)[1]},
            "differing_outputs": list(self.outputs),
            "differing_metrics": {name: list(pair) for name, pair in self.metrics.items()},
            "simulator_versions": list(self.versions),
        }


def replay(bundle: Path, options: ReplayOptions, progress: Progress = silent) -> Replay:
    """Raises what ``errors`` has, ToolMissing without the simulator, InfraError when there is no
    run to be had."""
    run_dir = new_run_dir("replay")
    root = run_dir / _BUNDLE
    with disk_errors("unpacking the bundle"):
        root.mkdir()
    manifest = unpack(bundle, root, options.most)
    with disk_errors("unpacking the bundle"):
        (root / FIRMWARE / RUNNER).chmod(0o755)  # a native one is started
    there, program, firmware = _read(bundle, root, manifest)
    simulator = there.simulator
    assert simulator is not None  # _read has looked
    target = _target(bundle, root, there.case.board, trusted=options.bundled_target)
    chosen = _chosen(target, simulator, options)
    progress(f"{there.case.id}: simulating")
    transcript = simulate(
        chosen,
        firmware,
        program=program.pte_path,
        sets=[[root / name for name in one.inputs] for one in program.sets],
        run_dir=run_dir,
        profile=bool(there.op_ticks),
        limit_factor=options.limit_factor,
        require_confinement=options.require_confinement,
    )
    keep_expectations(program, run_dir)
    here = _judged(there, program, firmware, chosen, transcript)
    here.save()
    return _compared(there, here, simulator.version, transcript)


def _read(bundle: Path, root: Path, manifest: Manifest) -> tuple[RunRecord, Program, Firmware]:
    """Every file that they name is the bundle's. Raises BundleDamaged."""
    try:
        record, program = load_record(root), load_program(root)
        firmware = load_firmware(root / FIRMWARE)
    except (OSError, HarnessError, *MALFORMED) as error:
        raise BundleDamaged(bundle, str(error)) from error
    if program is None or firmware is None:
        what = f"the firmware ({FIRMWARE}/{RUNNER})" if program else "the program's description"
        raise BundleDamaged(bundle, f"{what} is not whole")
    named = (
        program.pte,
        *(n for s in program.sets for n in (*s.inputs, *s.expected, *s.by_design)),
    )
    for name in named:
        if name not in manifest.files:
            raise BundleDamaged(bundle, f"its program names {name!r}, which is not in it")
    if record.simulator is None or record.expectation is None or record.ending is None:
        raise BundleDamaged(bundle, "its record is not that of a whole run")
    return record, program, firmware


def _target(bundle: Path, root: Path, name: str, *, trusted: bool) -> Target:
    """What is known here under its name, if it is the same; the bundle's own when that is wanted.
    Raises OtherTarget, BundleDamaged."""
    raw = read_regular(root / TARGET)
    try:
        there = json.loads(raw)
        theirs = target_from(there)
    except (ValidationError, *MALFORMED) as error:
        raise BundleDamaged(bundle, f"{TARGET} is not a target: {error}") from error
    if theirs.name != name:
        raise BundleDamaged(bundle, f"{TARGET} is that of {theirs.name}, the run was on {name}")
    if trusted:
        return theirs
    try:
        ours = load_target(name)
    except Unknown as error:
        raise OtherTarget(name, ()) from error
    here = target_fields(ours)
    differing = sorted(k for k in {*here, *there} if here.get(k) != there.get(k))
    if differing:
        raise OtherTarget(name, differing)
    return ours


def _chosen(target: Target, simulator: SimulatorFacts, options: ReplayOptions) -> Chosen:
    """Raises OtherSimulator, ToolMissing."""
    chosen = pick(target, str(simulator.name))
    here = chosen.require().version
    if here != simulator.version and not options.any_version:
        raise OtherSimulator(str(simulator.name), simulator.version, here)
    return chosen


def _judged(
    there: RunRecord, program: Program, firmware: Firmware, chosen: Chosen, transcript: Transcript
) -> RunRecord:
    """By what the bundle expects, which is what the run was held against."""
    assert there.simulator is not None
    assert there.expectation is not None
    static = static_metrics(chosen.target, firmware, program.pte_path)
    differences = there.simulator.differences
    evidence = gather_finished(program, firmware, transcript, static, differences)
    if evidence.outputs.sha256 == there.output_sha256:  # then the same is to blame
        evidence = replace(evidence, mismatch_at=there.mismatch_at, blame=there.blame)
    judgement = judge(evidence, there.expectation)
    facts, exported = there.firmware, there.program
    assert facts is not None
    assert exported is not None
    return replace(
        there,
        time=now(),
        static_metrics=static,
        run_dir=str(transcript.run_dir),
        simulator=SimulatorFacts.of(transcript, differences),
        npu=transcript.npu,
        ending=evidence.ending,
        program=_moved_program(exported, program),
        firmware=_moved_firmware(facts, firmware),
        seconds={"simulate": round(transcript.seconds, 4)},
        starts=transcript.starts,
        differential=None,
        harness=revision(),
        host=host(),
    ).with_evidence(evidence, judgement)


def _moved_program(facts: ProgramFacts, program: Program) -> ProgramFacts:
    return replace(facts, pte=str(program.pte_path))


def _moved_firmware(facts: FirmwareFacts, firmware: Firmware) -> FirmwareFacts:
    return replace(facts, elf=str(firmware.elf), sha256=firmware.elf_sha256)


def _compared(there: RunRecord, here: RunRecord, version: str, transcript: Transcript) -> Replay:
    native = transcript.simulator in (SimulatorName.HOST, SimulatorName.QEMU_USER)
    metrics = {
        name: (there.metrics.get(name), here.metrics.get(name))
        for name in sorted({*there.metrics, *here.metrics})
        if there.metrics.get(name) != here.metrics.get(name)
        and not (native and name.startswith(_OF_TIME))
    }
    return Replay(there, here, _differing_outputs(there, here), metrics,
                  (version, transcript.version))  # fmt: skip


def _differing_outputs(there: RunRecord, here: RunRecord) -> tuple[str, ...]:
    """By name, ``s<k>-<n>.bin``; a set that only one of them has, by all of its outputs."""
    then, now = _by_name(there), _by_name(here)
    return tuple(name for name in sorted({*then, *now}) if then.get(name) != now.get(name))


def _by_name(record: RunRecord) -> Mapping[str, str]:
    return {
        f"s{k}-{n}.bin": digest
        for k, digests in enumerate(record.output_sha256)
        for n, digest in enumerate(digests)
    }


def _told(record: RunRecord) -> tuple[str, str | None]:
    return str(record.verdict), None if record.cause is None else record.cause.kind
