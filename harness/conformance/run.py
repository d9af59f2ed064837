"""The public verb: a suite, an ELF and a selection in, a Report out."""

from __future__ import annotations

import time
from pathlib import Path

from harness.conformance import expectations, resume
from harness.conformance.model import Report, Selection
from harness.conformance.session import WORKERS, run_suite
from harness.conformance.stage import prepare
from harness.conformance.suites import SUITES, Suite
from harness.conformance.verdicts import judge
from harness.system import toolchain
from harness.system.progress import Progress


def conform(
    name: str,
    elf: Path | None,
    selection: Selection,
    progress: Progress,
    *,
    workers: int = WORKERS,
    continued: bool = False,
) -> Report:
    """ExecuTorch's suite ``name`` against ``elf``, or against the bundled runner.

    ``continued``: the results of an interrupted run of the same are taken over.
    """
    suite = SUITES[name]
    known = expectations.load(suite.expectations)
    qemu = toolchain.require("qemu-system-arm")
    runner = elf or bundled(suite, progress)
    identity = resume.identity(suite, runner, selection)
    earlier = resume.interrupted(identity) if continued else ()
    stage = prepare(suite, runner)
    resume.mark(stage, identity)
    started = time.monotonic()
    phases = run_suite(stage, selection, workers, progress, earlier)
    resume.finish(stage)
    verdicts = expectations.apply(judge(phases), expectations.applying(known, runner))
    return Report(
        suite=suite.name,
        simulator=f"FVP stand-in on QEMU {qemu.version} (mps3-an547)",
        elf=str(runner),
        verdicts=verdicts,
        seconds=time.monotonic() - started,
        log=stage.log,
        complaints=expectations.strangers(verdicts, known) if selection.everything else (),
        note=suite.note,
    )


def bundled(suite: Suite, progress: Progress) -> Path:
    from harness.build.firmware import build
    from harness.simulate.pick import pick
    from harness.target.loading import load_target
    from harness.target.model import SimulatorName

    target = load_target(suite.target)
    there = pick(target, SimulatorName.QEMU).target
    return build(there, options=suite.options, progress=progress).elf
