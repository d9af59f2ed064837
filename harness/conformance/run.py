"""The public verb: a suite, an ELF and a selection in, a Report out.

The suite is pytest with its workers as a child; its events are read as they come.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from harness.build.source import FirmwareSource, named
from harness.conformance.core import check_core
from harness.conformance.model import Phase, Report, Selection
from harness.conformance.plan import Plan, make_plan
from harness.conformance.recorder import EVENTS
from harness.conformance.remembered import Remembered, add_seconds, put_by, remembered
from harness.conformance.replay import replay
from harness.conformance.stage import (
    SuiteStage,
    finish,
    identify,
    interrupted,
    mark,
    prepare,
    require_standins,
    simulated_with,
)
from harness.conformance.suites import (
    SUITES,
    Suite,
    Tooling,
    lay_over,
    meant_for,
    read_known,
    strangers,
)
from harness.conformance.surroundings import Roots, roots_of
from harness.conformance.verdicts import judge, require_found
from harness.errors import InfraError, UsageError
from harness.system import toolchain
from harness.system.files import disk_errors
from harness.system.progress import Progress

if TYPE_CHECKING:
    from harness.build.executorch.checkout import Checkout
    from harness.build.firmware import Firmware

WORKERS = 2
_LIMIT_SECONDS = 7200.0
_USAGE_ERROR = 4  # pytest's exit status
_NOTHING_RAN = 5


def conform(
    name: str,
    elf: Path | None,
    selection: Selection,
    progress: Progress,
    *,
    workers: int = WORKERS,
    continued: bool = False,
    source: FirmwareSource = FirmwareSource.BUNDLED,
    checkout: Checkout | None = None,
    tooling: Tooling | None = None,
    cached: bool = True,
    changed: bool = False,
) -> Report:
    """ExecuTorch's suite ``name`` against ``elf``, or against the firmware of ``source``.

    ``tooling``: whose suite it is; None for the installed wheel's. ``continued``: the results of
    an interrupted run of the same are taken over. ``cached``: what earlier runs exported is
    simulated again, and not exported again, and two tests that prepare the same do it once.
    ``changed``: only tests that something affects which
    has changed since they last came to their result. Raises StandinMissing, and what prevents the
    run.
    """
    suite = SUITES[name]
    known = read_known(suite.expectations)
    qemu = toolchain.require("qemu-system-arm")
    runner, firmware = elf, "a given ELF"
    if elf is not None:
        check_core(suite, elf)
    if runner is None:
        built = build_runner(suite, source, checkout, progress)
        runner, firmware = built.elf, named(built.source, built.checkout)
    identity = identify(suite, runner, selection, tooling)
    earlier = interrupted(identity) if continued else ()
    stage = prepare(suite, runner, tooling)
    require_standins(stage)
    mark(stage, identity)
    started = time.monotonic()
    roots = roots_of(suite, tooling)
    valid = remembered(suite.name, roots) if cached or changed else Remembered()
    plan = make_plan(valid, selection, earlier, simulated_with(runner), changed=changed)
    plan = replace(plan, each_apart=not cached)
    phases = _run(stage, selection, workers, progress, plan, valid, roots)
    finish(stage)
    judged = judge(phases)
    require_found(judged)
    wheels = tooling is None  # the expectations are about its tests
    whole = selection.everything and not plan.left_out
    verdicts = lay_over(judged, meant_for(known, runner), strict=wheels)
    return Report(
        suite=suite.name,
        simulator=f"FVP stand-in on QEMU {qemu.version} (mps3-an547)",
        elf=str(runner),
        verdicts=verdicts,
        seconds=time.monotonic() - started,
        log=stage.log,
        complaints=strangers(verdicts, known) if whole and wheels else (),
        note=suite.note,
        firmware=firmware,
        exporter="wheel" if tooling is None else tooling.label,
        from_cache=len(plan.replayed),
        left_out=plan.left_out,
    )


def _run(
    stage: SuiteStage,
    selection: Selection,
    workers: int,
    progress: Progress,
    plan: Plan,
    valid: Remembered,
    roots: Roots,
) -> list[Phase]:
    """Simulate again what needs no export, then run the rest, and remember it."""
    earlier = [*plan.earlier]
    try:
        for one in replay(plan.notes, valid, stage, workers, plan.by, progress):
            plan.replayed.add(one.test)
            earlier += map(json.dumps, one.events)
        if plan.nothing_left:
            if not plan.left_out:
                earlier += valid.not_collected(selection.keyword)
            return [_phase(line) for line in earlier]
        began = time.time()
        phases = run_suite(stage, selection, workers, progress, earlier, plan)
        put_by(stage.suite.name, roots, stage.notes, began, valid)
        add_seconds(stage.suite.name, _seconds(phases, plan.replayed))
        return phases
    finally:
        shutil.rmtree(stage.scratch, ignore_errors=True)
        shutil.rmtree(stage.notes, ignore_errors=True)


def _seconds(phases: Iterable[Phase], replayed: Collection[str]) -> dict[str, float]:
    """Of what was exported now."""
    found: dict[str, float] = {}
    for phase in phases:
        if phase.test not in replayed:
            found[phase.test] = round(found.get(phase.test, 0.0) + phase.seconds, 3)
    return found


def build_runner(
    suite: Suite, source: FirmwareSource, checkout: Checkout | None, progress: Progress
) -> Firmware:
    """The runner that the suite's tests are to find, as the stand-in runs it."""
    from harness.build.choice import build_for
    from harness.simulate.pick import pick
    from harness.target.loading import load_target
    from harness.target.model import SimulatorName

    theirs = source is FirmwareSource.EXECUTORCH and suite.mode
    target = load_target(f"{suite.target}@{suite.mode}" if theirs else suite.target)
    chosen = pick(target, SimulatorName.QEMU)
    return build_for(
        source, chosen.target, chosen.name, checkout, options=suite.options, progress=progress
    )


def run_suite(
    stage: SuiteStage,
    selection: Selection,
    workers: int,
    progress: Progress,
    earlier: Sequence[str] = (),
    plan: Plan | None = None,
) -> list[Phase]:
    """Every phase of every test, in the order they ended. ``earlier``: events of tests that ran
    already; they are not run again, and nor is what ``plan`` leaves out."""
    plan = plan or Plan("")
    phases = [_phase(line) for line in earlier]
    done = sorted({*plan.left_out_tests, *(phase.test for phase in phases)})
    with disk_errors("preparing the conformance run"):
        stage.done.write_text("".join(f"{test}\n" for test in done))
        stage.events.write_text("".join(f"{line}\n" for line in earlier))
    read, write = os.pipe()
    environment = {**stage.environment, EVENTS: str(write)}
    setpriv = str(toolchain.require("setpriv").path)
    with disk_errors("running the suite"), stage.log.open("wb") as log:
        child = subprocess.Popen(
            [setpriv, "--pdeathsig", "KILL", "--", *_argv(stage, selection, workers, plan)],
            cwd=stage.directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=[write],
            start_new_session=True,
        )
    os.close(write)
    overdue = threading.Timer(_LIMIT_SECONDS, _kill, [child])
    overdue.start()
    try:
        with os.fdopen(read, "rb") as events, stage.events.open("ab") as record:
            phases += _phases(events, record, len(done), progress)
        status = child.wait()
    finally:
        overdue.cancel()
        _kill(child)
        child.wait()
        shutil.rmtree(stage.scratch, ignore_errors=True)
    _check(status, phases, stage)
    return phases


def _argv(stage: SuiteStage, selection: Selection, workers: int, plan: Plan) -> list[str]:
    shard = selection.shard or (1, 1)
    return [
        *(sys.executable, "-m", "pytest", "-q", "-W", "ignore", "--tb", "short"),
        *("-c", str(stage.ini), "--rootdir", str(stage.root), "--confcutdir", str(stage.root)),
        *("-p", "no:cacheprovider", "-p", "xdist", "-p", "harness.conformance.recorder"),
        "--log-level=ERROR",  # torch traces what it does, and pytest would keep all of it
        *("-n", str(workers), "--dist", "worksteal", "--max-worker-restart", "4"),
        "--continue-on-collection-errors",
        *("--hil-only", stage.suite.only, "--hil-done", str(stage.done)),
        *("--hil-seconds", str(stage.seconds), "--hil-by", plan.by),
        *(("--hil-each-apart",) if plan.each_apart else ()),
        *("--hil-shard", f"{shard[0]}/{shard[1]}"),
        *("--hil-sample", str(selection.sample or 0), "--hil-seed", str(selection.seed)),
        *(("-k", selection.keyword) if selection.keyword is not None else ()),
        str(stage.root / stage.suite.tests),
    ]


def _phases(events: Any, record: IO[bytes], done: int, progress: Progress) -> Iterator[Phase]:
    total = done
    progress("starting the suite: importing torch and collecting tests")
    for line in events:
        event = json.loads(line)
        if "selected" in event:
            total = done + event["selected"] if total == done else total
            continue
        record.write(line)
        record.flush()
        phase = _phase(line)
        yield phase
        if phase.when == "teardown":
            done += 1
            progress(f"conformance {done}/{total}")


def _phase(line: str | bytes) -> Phase:
    event = json.loads(line)
    return Phase(**{**event, "consoles": tuple(base64.b64decode(c) for c in event["consoles"])})


def _check(status: int, phases: list[Phase], stage: SuiteStage) -> None:
    usual = (0, 1, 2, _NOTHING_RAN)
    if status in usual and not any(phase.when != "collect" for phase in phases):
        raise UsageError("no test of the suite was selected", hint="look at -k, --shard, --sample")
    if status in usual:
        return
    said = [line for line in stage.log.read_text("utf-8", "replace").splitlines() if line.strip()]
    reason = next((line for line in reversed(said) if "rror" in line), said[-1] if said else "")
    kind = UsageError if status == _USAGE_ERROR else InfraError
    raise kind(f"pytest could not run the suite: {reason}", hint=f"see {stage.log}")


def _kill(child: subprocess.Popen[bytes]) -> None:
    """The whole session of the child; it is ours and not reaped before its status was read."""
    if child.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
