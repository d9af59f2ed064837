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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from harness.config.loading import load_target
from harness.core.errors import HarnessError
from harness.export.checkout import CheckoutExporter
from harness.firmware.checkout import Checkout
from harness.firmware.step import FailedStep, LinkFailed, diagnose
from harness.firmware.zephyr.workspace import require_workspace
from harness.suites import recorder
from harness.suites.ci.jobs import CiJob, Replaced
from harness.suites.ci.results import (
    JobResult,
    JobVerdict,
    changes,
    doubts,
    other_outputs,
    read_calls,
    read_tests,
)
from harness.suites.ci.workspace import lay_workspace, place_of
from harness.suites.standin.record import RECORD
from harness.system import artifact_cache, paths
from harness.system.files import disk_errors, write_whole
from harness.system.git import shown
from harness.system.process import Bounds, Ended, Stop, Watch, run
from harness.system.progress import Progress

NOT_YET = "not run yet"
_BOUNDS = Bounds(host_seconds=6 * 3600, stall_seconds=1800)
_STEP = re.compile(rb"^\[\d+/\d+\]|\[ *\d+%\]", re.MULTILINE)  # of ninja, of pytest
_ERROR = re.compile(r"(?i)error\b|\bfailed\b|not found|no such file")
_MOST_EDITS = 5  # that a note names


@dataclass(frozen=True)
class CiOptions:
    """``resume``: what passed for this very content of the checkout is not run again.
    ``downloads``: jobs may use the network. ``base``: results are compared with those that are kept
    for it; None: with those of the same commit without edits."""

    checkout: Checkout
    exporter: CheckoutExporter
    resume: bool = False
    downloads: bool = False
    base: Checkout | None = None


def run_jobs(
    jobs: Iterable[CiJob], environment: Sequence[Replaced], options: CiOptions, progress: Progress
) -> Iterator[JobResult]:
    store = _store(options.checkout)
    for job in jobs:
        earlier = _kept(store, job) if options.resume else None
        if earlier is not None and earlier.verdict is JobVerdict.PASSED:
            yield earlier
            continue
        result = _run(job, environment, options, progress)
        if result.verdict is not JobVerdict.NOT_RUN:
            with disk_errors("keeping a job's result"):
                store.mkdir(parents=True, exist_ok=True)
                write_whole(_file(store, job), json.dumps(result.as_json(), indent=1))
        yield result


def kept_results(jobs: Iterable[CiJob], checkout: Checkout) -> tuple[JobResult, ...]:
    """The kept result of each job; of the others, why there is none."""
    store = _store(checkout)
    return tuple(
        _kept(store, job) or _not_run(job, checkout, _prevented(job) or (NOT_YET,)) for job in jobs
    )


def _store(checkout: Checkout) -> Path:
    return paths.state_dir() / "executorch-ci" / checkout.identity()[:12]


def _file(store: Path, job: CiJob) -> Path:
    return store / f"{job.name.replace('/', '+')}.json"


def _kept(store: Path, job: CiJob) -> JobResult | None:
    with suppress(OSError, ValidationError):
        return TypeAdapter(JobResult).validate_json(_file(store, job).read_bytes())
    return None


def _prevented(job: CiJob, *, downloads: bool = False) -> tuple[str, ...]:
    reasons = [job.listed.cannot] if job.listed.cannot else []
    if job.listed.downloads and not downloads:
        reasons.append(f"{job.listed.downloads}: --downloads runs it all the same")
    if job.listed.zephyr:
        target = load_target(job.listed.zephyr)
        assert target.zephyr is not None
        try:
            require_workspace(target.zephyr.board, target.cpu)
        except HarnessError as error:
            reasons.append(f"{error.message}: {error.hint}")
    for package in job.listed.packages:
        try:
            version(package)
        except PackageNotFoundError:
            reasons.append(f"needs the Python package {package}: pip install {package}")
    return tuple(reasons)


def _not_run(job: CiJob, checkout: Checkout, reasons: tuple[str, ...]) -> JobResult:
    commit = shown(checkout.revision.commit, edited=checkout.revision.dirty)
    return JobResult(job.name, job.place, commit, JobVerdict.NOT_RUN, reasons)


def _run(
    job: CiJob, environment: Sequence[Replaced], options: CiOptions, progress: Progress
) -> JobResult:
    checkout = options.checkout
    if reasons := _prevented(job, downloads=options.downloads):
        return _not_run(job, checkout, reasons)
    progress(f"{job.name}: preparing")
    folder = paths.state_dir() / "executorch-ci" / "runs" / job.name.replace("/", "+")
    steps, provided = job.steps(environment)
    with disk_errors("running a job"):
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "record").mkdir(parents=True)
        (folder / "job.sh").write_text(f"set -euo pipefail\n{steps}")
    waiting = f"{job.name}: waiting for another job in its copy of the checkout"
    place = place_of(checkout, job.listed.overlay)
    with artifact_cache.locked(place, on_wait=lambda: progress(waiting)):
        root, environ = lay_workspace(checkout, options.exporter, place, job.listed.zephyr)
        started = time.monotonic()
        ended = _script(job, folder, root, environ, progress)
    calls, (tests, reruns) = read_calls(folder / "record"), read_tests(folder / "tests.jsonl")
    reasons = doubts(calls, tests, folder / "record", simulates=job.listed.simulates)
    reasons += (f"{reruns} runs of tests were repeated",) if reruns else ()
    clean = replace(checkout, revision=replace(checkout.revision, changes="", edited=()))
    before = _kept(_store(options.base or clean), job)
    reasons += tuple(other_outputs(before, calls)) if before else ()
    verdict = JobVerdict.UNPROVEN if reasons else JobVerdict.PASSED
    log = folder / "job.log"
    lacking = [test for test in tests if test.result == "unsupported"]
    if lacking and ended.status == 1 and not any(test.result == "failed" for test in tests):
        verdict = JobVerdict.UNPROVEN  # pytest ends with 1 for what it could not collect
        reasons += (f"{len(lacking)} not run: {lacking[0].id} {lacking[0].cause}",)
    elif ended.stop is not Stop.EXITED or ended.status != 0:
        how = f"ended with {ended.status}" if ended.stop is Stop.EXITED else str(ended.stop)
        why = _last_words(job, log, ended.status).replace(f"{root}/", "")
        verdict = JobVerdict.FAILED
        reasons = (f"ExecuTorch's own script {how}: {why}", *reasons)
    passed = [test for test in tests if test.result == "passed"]
    observed = [test.exact for test in passed if not test.constant and test.exact is not None]
    result = replace(
        _not_run(job, checkout, reasons),
        verdict=verdict,
        status=ended.status,
        seconds=round(time.monotonic() - started, 1),
        calls=calls,
        tests=dict(Counter(test.result for test in tests)),
        exact=(observed.count(True), len(observed)),
        constant=sum(test.constant for test in passed),
        notes=tuple(_notes(job, checkout)),
        provided=provided,
        log=str(log),
    )
    return replace(result, notes=(*result.notes, *changes(before, result))) if before else result


def _script(
    job: CiJob, folder: Path, root: Path, environ: Mapping[str, str], progress: Progress
) -> Ended:
    def watch(data: bytes) -> None:
        if step := _STEP.findall(data):
            progress(f"{job.name} {step[-1].decode().strip('[]')}")

    own = {
        RECORD: str(folder / "record"),
        recorder.JOB_TESTS: str(folder / "tests.jsonl"),
        # what a file of tests lacks, torchaudio for example, does not keep the others from running
        "PYTEST_ADDOPTS": f"-p {recorder.__name__} --continue-on-collection-errors",
    }
    return run(
        ["bash", str(folder / "job.sh")],
        cwd=root,
        environment={**environ, **own},
        console=folder / "job.log",
        bounds=_BOUNDS,
        watch=Watch(watch),
    )


def _notes(job: CiJob, checkout: Checkout) -> Iterator[str]:
    yield from filter(None, (job.difference, job.listed.note))
    if edited := checkout.edited:
        more = f" and {len(edited) - _MOST_EDITS} more" if len(edited) > _MOST_EDITS else ""
        yield f"edited: {', '.join(edited[:_MOST_EDITS])}{more}"


def _last_words(job: CiJob, log: Path, status: int | None) -> str:
    """A failed link with its cause and fix; else the line that most likely says why it ended."""
    text = log.read_text("utf-8", "replace")
    error = diagnose(text, FailedStep("build", log, job.name, status))
    if isinstance(error, LinkFailed):
        return str(error.hint).removesuffix(f" (the whole output is in {log})")
    tail = [s.strip() for s in text.splitlines() if s.strip()][-200:]
    return next((line for line in reversed(tail) if _ERROR.search(line)), "".join(tail[-1:]))[:300]
