"""Runs ExecuTorch's CI jobs, one after the other, and keeps the result of each.

A result is kept for the content of the checkout, in ``.hil/executorch-ci/<key>/<job>.json``: a
report can be written of jobs that ran in several sittings, and ``resume`` leaves out those that
passed.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from harness.export.checkout import CheckoutExporter
from harness.firmware.executorch.checkout import Checkout
from harness.suites.ci import recorder
from harness.suites.ci.jobs import Job, Jobs, Listed, Replaced
from harness.suites.ci.results import (
    JobResult,
    JobVerdict,
    doubts,
    read_calls,
    read_tests,
)
from harness.suites.ci.workspace import lay_workspace
from harness.suites.standin.record import RECORD
from harness.system import artifact_cache, paths
from harness.system.files import MALFORMED, disk_errors, read_json, write_whole
from harness.system.git import changed, is_work_tree, shown
from harness.system.process import Bounds, Stop, Watch, run
from harness.system.progress import Progress

NOT_YET = "not run yet"
_JOB_SECONDS = 6 * 3600.0
_SILENT_SECONDS = 1800.0
_STEP = re.compile(rb"^\[\d+/\d+\]|\[ *\d+%\]", re.MULTILINE)  # of ninja, of pytest
_UNKNOWN = Listed(commands="unknown")


@dataclass(frozen=True)
class CiOptions:
    """``only``: parts or patterns of names. ``resume``: what passed for this very checkout is not
    run again."""

    checkout: Checkout
    exporter: CheckoutExporter
    only: tuple[str, ...] = ()
    shard: tuple[int, int] = (1, 1)
    resume: bool = False


def run_jobs(jobs: Jobs, options: CiOptions, progress: Progress) -> Iterator[JobResult]:
    index, count = options.shard
    store = _store(options.checkout)
    for number, job in enumerate(jobs.select(options.only)):
        if number % count != index - 1:
            continue
        earlier = _kept(store, job) if options.resume else None
        if earlier is not None and earlier.verdict is JobVerdict.PASSED:
            yield earlier
            continue
        result = _run(job, jobs.environment, options, progress)
        if result.verdict is not JobVerdict.NOT_RUN:
            with disk_errors("keeping a job's result"):
                store.mkdir(parents=True, exist_ok=True)
                write_whole(_file(store, job), json.dumps(result.as_json(), indent=1))
        yield result


def kept_results(jobs: Jobs, checkout: Checkout) -> tuple[JobResult, ...]:
    """The kept result of each job; of the others, why there is none."""
    store = _store(checkout)
    return tuple(
        _kept(store, job) or _not_run(job, checkout, _prevented(job, checkout.root) or (NOT_YET,))
        for job in jobs.jobs
    )


def _store(checkout: Checkout) -> Path:
    return paths.state_dir() / "executorch-ci" / checkout.identity()[:12]


def _file(store: Path, job: Job) -> Path:
    return store / f"{job.name.replace('/', '+')}.json"


def _kept(store: Path, job: Job) -> JobResult | None:
    with suppress(OSError, *MALFORMED):
        return JobResult.from_json(read_json(_file(store, job)))
    return None


def _prevented(job: Job, root: Path) -> tuple[str, ...]:
    """Why a job cannot run on this machine."""
    listed = job.listed or _UNKNOWN
    if listed.cannot:
        return (listed.cannot,)
    reasons = []
    for package in listed.packages:
        try:
            version(package)
        except PackageNotFoundError:
            reasons.append(f"needs the Python package {package}: pip install {package}")
    reasons += [f"needs {name}" for name in listed.files if not Path(root, name).exists()]
    return tuple(reasons)


def _not_run(job: Job, checkout: Checkout, reasons: Sequence[str]) -> JobResult:
    commit = shown(checkout.revision.commit, edited=checkout.revision.dirty)
    return JobResult(job.name, job.place, commit, JobVerdict.NOT_RUN, tuple(reasons))


def _run(
    job: Job, environment: Sequence[Replaced], options: CiOptions, progress: Progress
) -> JobResult:
    checkout = options.checkout
    if reasons := _prevented(job, checkout.root):
        return _not_run(job, checkout, reasons)
    listed = job.listed or _UNKNOWN
    progress(f"{job.name}: preparing")
    workspace = lay_workspace(checkout, options.exporter, listed.overlay)
    folder = paths.state_dir() / "executorch-ci" / "runs" / job.name.replace("/", "+")
    record, log, tests = folder / "record", folder / "job.log", folder / "tests.jsonl"
    steps, provided = job.steps(environment)
    with disk_errors("running a job"):
        shutil.rmtree(folder, ignore_errors=True)
        record.mkdir(parents=True)
        (folder / "job.sh").write_text(f"set -euo pipefail\n{steps}")

    def watch(data: bytes) -> None:
        if step := _STEP.findall(data):
            progress(f"{job.name} {step[-1].decode().strip()}")

    started = time.monotonic()
    with artifact_cache.locked(
        workspace.root.parent, on_wait=lambda: progress(f"{job.name}: waiting")
    ):
        ended = run(
            ["bash", str(folder / "job.sh")],
            cwd=workspace.root,
            environment={
                **workspace.environment,
                RECORD: str(record),
                recorder.TESTS: str(tests),
                "PYTEST_ADDOPTS": f"-p {recorder.__name__}",
            },
            console=log,
            bounds=Bounds(_JOB_SECONDS, _SILENT_SECONDS),
            watch=Watch(watch),
        )
    calls, (results, reruns) = read_calls(record), read_tests(tests)
    reasons = doubts(calls, results, record, simulates=listed.simulates)
    if ended.stop is not Stop.EXITED or ended.status != 0:
        how = f"ended with {ended.status}" if ended.stop is Stop.EXITED else str(ended.stop)
        reasons = (f"ExecuTorch's own script {how}: {_last_words(log)}", *reasons)
    reasons += (f"{reruns} runs of tests were repeated",) if reruns else ()
    passed = [test for test in results if test.result == "passed"]
    observed = [test.exact for test in passed if not test.constant and test.exact is not None]
    result = replace(
        _not_run(job, checkout, reasons),
        verdict=JobVerdict.PASSED if not reasons else JobVerdict.UNPROVEN,
        status=ended.status,
        seconds=time.monotonic() - started,
        calls=calls,
        tests=dict(Counter(test.result for test in results)),
        simulated=sum(test.simulated for test in results),
        exact=(observed.count(True), len(observed)),
        constant=sum(test.constant for test in passed),
        notes=(*_notes(job, checkout), *provided),
        log=str(log),
    )
    return result if ended.status == 0 else replace(result, verdict=JobVerdict.FAILED)


def _notes(job: Job, checkout: Checkout) -> Iterator[str]:
    if job.listed is None:
        yield "the list does not know this job"
    elif job.changed:
        yield "its commands have changed since the list was written"
    if job.listed and job.listed.note:
        yield job.listed.note
    if is_work_tree(checkout.root) and (names := changed(checkout.root)):
        yield f"edited: {', '.join(names[:5])}" + (f" and {len(names) - 5} more" * (len(names) > 5))


def _last_words(log: Path) -> str:
    """The line of a log that most likely says why its script ended."""
    lines = [s.strip() for s in log.read_text("utf-8", "replace").splitlines() if s.strip()]
    tail = lines[-200:]
    error = re.compile(r"(?i)\berror\b|\bfailed\b|not found|no such file")
    return next((line for line in reversed(tail) if error.search(line)), "".join(tail[-1:]))[:300]
