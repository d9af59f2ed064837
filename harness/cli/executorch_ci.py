"""``hil suite executorch-ci``: ExecuTorch's CI jobs on the stand-in."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from harness.cli.history import opened
from harness.cli.progress import progress_shown
from harness.cli.verb import Answer, echo, terminal
from harness.core.errors import UsageError
from harness.core.judgement import Cause
from harness.core.verdict import ExitCode, Verdict
from harness.export.checkout import find_exporter
from harness.firmware.choice import FirmwareChoice
from harness.nightly.history.nights import Identity, Night, Origin, Planned, Row
from harness.nightly.suite import parse_shard
from harness.report.executorch_ci import print_jobs, write_page
from harness.run.bisect import at_commits
from harness.run.record import exact_harness_revision, host, now
from harness.suites.ci.jobs import read_jobs
from harness.suites.ci.results import JobResult, JobVerdict
from harness.suites.ci.run import CiOptions, kept_results, run_jobs
from harness.system.artifact_cache import key_of
from harness.system.files import disk_errors, write_whole

NAME = "executorch-ci"
_OF_TESTS = ("elf", "keyword", "sample", "junit")


def run_ci_jobs(firmware: FirmwareChoice, words: Mapping[str, Any]) -> Answer:
    """Run ExecuTorch's CI jobs. ``words``: the options of ``hil suite``."""
    if any(words[option] for option in _OF_TESTS):
        raise UsageError(
            f"-k, --sample, --elf and --junit are for suites of tests, not for {NAME}",
            hint="--only selects jobs by a part of their names",
        )
    if firmware.root is None:
        raise UsageError(
            f"{NAME} runs a checkout's jobs, and none is named", hint="--executorch DIR"
        )
    commits, base, code = words["commits"], None, ExitCode.PASSED
    with progress_shown() as progress:
        for there in at_commits(commits, firmware, "ci", progress) if commits else (firmware,):
            checkout = there.checkout()
            assert checkout is not None
            jobs = read_jobs(checkout.root)
            chosen = jobs.select(words["only"])
            if words["listed"]:
                results = kept_results(chosen, checkout)
                continue
            shard = parse_shard(words["shard"])
            chosen = chosen[shard.number - 1 :: shard.count]
            exporter = find_exporter(checkout.root)
            options = CiOptions(checkout, exporter, words["resume"], words["downloads"], base)
            results = tuple(run_jobs(chosen, jobs.environment, options, progress))
            base = checkout
    for text in jobs.differences:
        echo(f"note: {text}")
    if not words["listed"]:
        verdicts = {result.verdict for result in results} - {JobVerdict.NOT_RUN}
        code = ExitCode.PASSED if verdicts == {JobVerdict.PASSED} else ExitCode.FAILED
        if results and (words["url"] or "HIL_HISTORY" in os.environ):
            keep(words["url"], results)
    print_jobs(terminal(), results)
    commands = {job.name: job.commands for job in chosen}
    answer = {
        "jobs": [{**result.as_json(), "commands": commands[result.name]} for result in results],
        "aside": dict(jobs.aside),
        "differences": list(jobs.differences),
    }
    if (report := words["report"]) is not None and report.suffix == ".md":
        write_page(report, results)
    elif report is not None:
        with disk_errors("writing the report"):
            write_whole(report, json.dumps(answer, indent=1) + "\n")
    return answer, code


def keep(url: str | None, results: Sequence[JobResult]) -> None:
    """Keep the results in a history: a night with a row for each job. Raises as ``opened``."""
    names = [result.name for result in results]
    id, origin = f"{NAME}-{uuid.uuid4().hex[:12]}", Origin(commit=results[0].commit)
    made = (exact_harness_revision(), host())
    night = Night(id, NAME, key_of(names), now(), *made, tuple(map(Planned, names)), origin=origin)
    with opened(url) as history:
        history.begin(night)
        history.append([_row(night, result) for result in results])


def _row(night: Night, result: JobResult) -> Row:
    text, verdict = "; ".join(result.reasons)[:800], _verdict(result)
    case = (night.id, result.name, night.began, NAME, result.name, "executorch", verdict)
    return Row(
        *case,
        verdict_text=str(verdict),
        cause=Cause(str(result.verdict), text) if text else None,
        seconds={"total": result.seconds},
        identity=Identity(sources=result.commit, harness=night.harness, host=night.host),
        run_dir=result.log or None,
        suite=NAME,
        origin=night.origin,
    )


def _verdict(result: JobResult) -> Verdict:
    """Return a failed job's verdict from its simulation or its tests; else it built nothing."""
    if result.verdict is JobVerdict.PASSED:
        return Verdict.PASS
    if result.verdict is not JobVerdict.FAILED:
        skipped = result.verdict is JobVerdict.NOT_RUN
        return Verdict.SKIPPED if skipped else Verdict.NO_VERDICT
    of_tests = Verdict.MISMATCH if result.tests.get("failed") else Verdict.BUILD_ERROR
    return next((Verdict[c.verdict] for c in result.calls if not c.proven), of_tests)
