"""Runs a given program, keeps its outputs, and judges nothing."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.config.loading import load_target
from harness.core.errors import NotThere
from harness.core.judgement import Cause
from harness.core.verdict import ExitCode, Verdict
from harness.firmware.operators import equipped, require_possible
from harness.firmware.source import BuildRequest, full_label
from harness.judge.ending import console_cut, execution_cause
from harness.log.parser import parse_console
from harness.run.directory import new_run_dir
from harness.run.judging import ending
from harness.run.pipeline import RunOptions
from harness.run.version_skew import require_fit
from harness.sim.run_files import WORK, output_name, written_outputs
from harness.sim.simulation import simulate
from harness.sim.simulator import pick, skip_without_fvp
from harness.size.memory_plan import require_sound_plan
from harness.system.files import disk_errors
from harness.system.progress import Progress


@dataclass(frozen=True)
class Execution:
    """Output files, or why there are none. ``firmware``: which, as ``firmware_label``."""

    firmware: str
    run_dir: Path
    outputs: tuple[Path, ...]
    metrics: dict[str, int]
    verdict: Verdict | None  # None: nothing went wrong, and nothing was judged
    cause: Cause | None

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.PASSED if self.verdict is None else self.verdict.exit_code


def execute(
    target_name: str,
    program: Path,
    inputs: Sequence[Path],
    base: Path,
    options: RunOptions,
    progress: Progress,
) -> list[Execution]:
    """Run ``program`` once with each firmware that is wanted.

    Outputs go to ``<base>-<n>.bin``, of a second firmware to ``<base>.executorch-<n>.bin``. Raises
    UsageError for files that cannot be read, RunnerLacks for a program that a firmware has no
    kernel or backend for, DoesNotFit for one that the target has no memory for, VersionSkew as
    ``require_fit``, MemoryPlanError, InfraError when outputs cannot be written, FvpMissing when the
    FVP is not there and that is to be skipped."""
    checkout = options.firmware.checkout()
    chosen = pick(load_target(target_name), options.simulator, options.firmware.root)
    for path in (program, *inputs):
        if not path.is_file():
            raise NotThere(path)
    if not base.parent.is_dir():
        raise NotThere(base.parent, "directory", hint="the outputs would go there")
    if options.skips_missing_fvp:
        skip_without_fvp(chosen)
    done: list[Execution] = []
    for source in options.firmware.sources:
        require_fit(program, None, source, None if checkout is None else checkout.root)
        require_possible(source, chosen.target, program)
        require_sound_plan(program)
        request = BuildRequest(chosen.target, chosen.name, checkout, program=program)
        firmware = equipped(source.build(request, progress), request, program, progress)
        progress(f"running {program.name} on {chosen.target.name}")
        to = base.with_name(f"{base.name}.{source}") if done else base
        run_dir, sets, factor = new_run_dir(program.stem), [list(inputs)], options.limit_factor
        transcript = simulate(chosen, firmware, program, sets, run_dir=run_dir, limit_factor=factor)
        observation = parse_console(transcript.console())
        end = ending(transcript, firmware.elf)
        found = execution_cause(observation, end, firmware.printed_build_id)
        verdict, cause = found or console_cut(end, observation) or (None, None)
        outputs = _collect(run_dir / WORK, to) if verdict is None else ()
        which = full_label(firmware.source.name, firmware.checkout)
        done.append(Execution(which, run_dir, outputs, observation.metrics, verdict, cause))
    return done


def _collect(work: Path, base: Path) -> tuple[Path, ...]:
    collected = []
    with disk_errors("writing the outputs"):
        for number, file in enumerate(written_outputs(work, 0)):
            collected.append(base.parent / output_name(base.name, number))
            shutil.copyfile(file, collected[-1])
    return tuple(collected)
