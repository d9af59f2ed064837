"""The public verb: a suite, an ELF and a selection in, a Report out."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from harness import toolchain
from harness.conformance import expectations
from harness.conformance.model import Report, Selection
from harness.conformance.session import WORKERS, run_suite
from harness.conformance.stage import prepare
from harness.conformance.verdicts import judge


def conform_cortex_m(
    elf: Path | None,
    selection: Selection,
    progress: Callable[[str], None],
    *,
    workers: int = WORKERS,
    expected: Path = expectations.CORTEX_M,
) -> Report:
    """ExecuTorch's Cortex-M suite against ``elf``, or against the bundled runner."""
    known = expectations.load(expected)
    qemu = toolchain.require("qemu-system-arm")
    runner = elf or _bundled(progress)
    stage = prepare(runner)
    started = time.monotonic()
    phases = run_suite(stage, selection, workers, progress)
    verdicts = expectations.apply(judge(phases), expectations.applying(known, runner))
    return Report(
        suite="cortex-m",
        simulator=f"FVP stand-in on QEMU {qemu.version} (mps3-an547)",
        elf=str(runner),
        verdicts=verdicts,
        seconds=time.monotonic() - started,
        log=stage.log,
        complaints=expectations.strangers(verdicts, known) if selection.everything else (),
    )


def _bundled(progress: Callable[[str], None]) -> Path:
    from harness.build import build
    from harness.target import load_target

    return build(load_target("corstone-300-m55"), on_progress=progress).elf
