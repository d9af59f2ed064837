"""``hil suite executorch-ci``: ExecuTorch's CI jobs on the stand-in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from harness.cli.progress import progress_shown
from harness.cli.verb import Answer, echo, terminal
from harness.core.errors import UsageError
from harness.core.verdict import ExitCode
from harness.export.checkout import find_exporter
from harness.firmware.source import FirmwareChoice
from harness.nightly.suite import parse_shard
from harness.report.executorch_ci import print_jobs, write_page
from harness.suites.ci.jobs import Jobs, read_jobs
from harness.suites.ci.results import JobResult, JobVerdict
from harness.suites.ci.run import CiOptions, kept_results, run_jobs
from harness.system import toolchain
from harness.system.files import disk_errors, write_whole

NAME = "executorch-ci"


@dataclass(frozen=True)
class CiRequest:
    """The options of ``hil suite`` that count for the jobs."""

    only: tuple[str, ...]
    shard: str
    listed: bool
    resume: bool
    report: Path | None


def suite_of_jobs(firmware: FirmwareChoice, request: CiRequest) -> Answer:
    checkout = firmware.checkout()
    if checkout is None:
        raise UsageError(
            f"{NAME} runs the jobs of a checkout, and none is named", hint="--executorch DIR"
        )
    jobs = read_jobs(checkout.root)
    chosen = {job.name for job in jobs.select(request.only)}
    for text in jobs.differences:
        echo(f"note: {text}")
    if request.listed:
        results = tuple(r for r in kept_results(jobs, checkout) if r.name in chosen)
        code = ExitCode.PASSED
    else:
        shard = parse_shard(request.shard)
        options = CiOptions(
            checkout=checkout,
            exporter=find_exporter(checkout.root),
            only=request.only,
            shard=(shard.number, shard.count),
            resume=request.resume,
        )
        with progress_shown() as progress:
            results = tuple(run_jobs(jobs, options, progress))
        proven = [r.verdict for r in results if r.verdict is not JobVerdict.NOT_RUN]
        passed = bool(proven) and all(verdict is JobVerdict.PASSED for verdict in proven)
        code = ExitCode.PASSED if passed else ExitCode.FAILED
    print_jobs(terminal(), results)
    answer = _answer(jobs, results)
    if request.report is not None and request.report.suffix == ".md":
        write_page(request.report, results, _facts(results))
    elif request.report is not None:
        with disk_errors("writing the report"):
            write_whole(request.report, json.dumps(answer, indent=1) + "\n")
    return answer, code


def _facts(results: Sequence[JobResult]) -> dict[str, str]:
    qemu = toolchain.require("qemu-system-arm").version
    gcc = toolchain.require("arm-none-eabi-gcc").version
    return {
        "commit": results[0].commit if results else "",
        "tools": f"QEMU {qemu}, GCC {gcc}",
        "date": f"{datetime.now(timezone.utc):%Y-%m-%d}",
    }


def _answer(jobs: Jobs, results: Sequence[JobResult]) -> dict[str, object]:
    commands = {job.name: job.commands for job in jobs.jobs}
    return {
        "jobs": [{**r.as_json(), "commands": commands[r.name]} for r in results],
        "aside": dict(jobs.aside),
        "differences": list(jobs.differences),
    }
