"""``hil suite executorch-ci``: ExecuTorch's CI jobs on the stand-in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from harness.cli.progress import progress_shown
from harness.cli.verb import Answer, echo, terminal
from harness.core.errors import UsageError
from harness.core.verdict import ExitCode
from harness.export.checkout import find_exporter
from harness.firmware.choice import FirmwareChoice
from harness.nightly.suite import parse_shard
from harness.report.executorch_ci import print_jobs, write_page
from harness.suites.ci.jobs import read_jobs
from harness.suites.ci.results import JobVerdict
from harness.suites.ci.run import CiOptions, kept_results, run_jobs
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
    checkout = firmware.checkout()
    if checkout is None:
        raise UsageError(
            f"{NAME} runs a checkout's jobs, and none is named", hint="--executorch DIR"
        )
    jobs = read_jobs(checkout.root)
    chosen = jobs.select(words["only"])
    for text in jobs.differences:
        echo(f"note: {text}")
    code = ExitCode.PASSED
    if words["listed"]:
        results = kept_results(chosen, checkout)
    else:
        shard = parse_shard(words["shard"])
        chosen = chosen[shard.number - 1 :: shard.count]
        options = CiOptions(
            checkout, find_exporter(checkout.root), words["resume"], words["downloads"]
        )
        with progress_shown() as progress:
            results = tuple(run_jobs(chosen, jobs.environment, options, progress))
        verdicts = {result.verdict for result in results} - {JobVerdict.NOT_RUN}
        code = ExitCode.PASSED if verdicts == {JobVerdict.PASSED} else ExitCode.FAILED
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
