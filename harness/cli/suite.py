"""``hil suite``, ExecuTorch's suites and CI jobs, and ``hil standin``."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from harness.cli.history import history_option, opened
from harness.cli.options import exporter_option, firmware_options
from harness.cli.verb import EXISTING_FILE, PATH, Answer, echo, progress_shown, terminal, verb
from harness.core.errors import UsageError
from harness.core.judgement import Cause
from harness.core.verdict import ExitCode, Verdict
from harness.export.checkout import find_exporter, selected_exporter
from harness.export.exporter import ExporterChoice
from harness.firmware.choice import FirmwareChoice
from harness.nightly.history.nights import Identity, Night, Origin, Planned, Row
from harness.nightly.suite import parse_shard
from harness.report.suite import (
    print_jobs,
    print_report,
    write_jobs_page,
    write_json,
    write_junit,
)
from harness.run.bisect import at_commits
from harness.run.record import exact_harness_revision, host, now
from harness.suites.ci.jobs import read_jobs
from harness.suites.ci.results import JobResult, JobVerdict
from harness.suites.ci.run import CiOptions, kept_results, run_jobs
from harness.suites.results import Selection, SuiteReport
from harness.suites.run import SuiteOptions, run_suite
from harness.suites.standin.install import install
from harness.suites.suites import SUITES
from harness.system.artifact_cache import key_of
from harness.system.files import disk_errors, write_whole

CI_JOBS = "executorch-ci"
_OF_TESTS = ("elf", "keyword", "sample", "junit")


@click.command()
@click.argument("name", type=click.Choice([*SUITES, CI_JOBS]))
@click.option("-k", "keyword", metavar="EXPR", help="Only tests that match, as in pytest.")
@click.option("--shard", metavar="I/N", default="1/1", help="Only the I-th of N parts.")
@click.option("--sample", type=click.IntRange(min=1), metavar="N", help="Only N random tests.")
@click.option("--seed", type=int, default=0, show_default=True, help="For --sample.")
@click.option(
    "--elf", type=EXISTING_FILE, help="Your own semihosting runner; the bundled one otherwise."
)
@click.option("--report", type=PATH, metavar="FILE.json")
@click.option("--junit", type=PATH, metavar="FILE.xml")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Processes that run tests; each needs about 1.5 GB.",
)
@click.option("--no-cache", is_flag=True, help="Export every test again.")
@click.option(
    "--only",
    multiple=True,
    metavar="JOB",
    help="executorch-ci: only jobs with this in their name; may be repeated.",
)
@click.option(
    "--list", "listed", is_flag=True, help="executorch-ci: run nothing, show the last results."
)
@click.option(
    "--resume",
    is_flag=True,
    help="executorch-ci: leave out what passed for this very content of the checkout.",
)
@click.option(
    "--commits", metavar="BASE..HEAD", help="executorch-ci: run at both, say what differs."
)
@click.option(
    "--downloads",
    is_flag=True,
    help="executorch-ci: run also jobs that download weights, packages or sources.",
)
@history_option
@verb
@exporter_option
@firmware_options
def suite(name: str, firmware: FirmwareChoice, exporter: ExporterChoice, **words: Any) -> Answer:
    """Run ExecuTorch's own on-target suite, unmodified, on the FVP stand-in.

    The suite is the installed wheel's; --exporter checkout takes the checkout's, whose Python
    then also exports; the list of known failures is for the wheel. The runner is the bundled one,
    that of a checkout, or a given ELF. --firmware both names the files of the second run
    FILE.executorch.json.

    Exported programs are stored. As long as ExecuTorch and all packages stay as they are, a
    later run simulates the stored programs again, without torch; a test whose simulation ends
    otherwise than before is run in full. The report counts these tests. Tests that simulate
    nothing are then not repeated. --no-cache exports everything again.

    executorch-ci runs the Arm jobs of the checkout's own workflow files, each with its own
    commands in a copy of the checkout. A job passes when its script does and each call of the FVP
    proves something. --report FILE.md writes a page. --history (or $HIL_HISTORY) keeps a row for
    each job, which `hil history JOB` shows.

    \b
    Examples:
      hil suite cortex-m
      hil suite cortex-m -k "add or sub" --elf build/arm_executor_runner
      hil suite cortex-m --executorch ~/executorch
      hil suite cortex-m --executorch ~/executorch --exporter checkout
      hil suite cortex-m --sample 60 --seed 1 --report out.json --junit out.xml
      hil suite ethos-u55 --shard 1/4
      hil suite models-cortex-m -k resnet50
      hil suite executorch-ci --executorch ~/executorch --only run_ethos_u55
    """
    elf, sample = words["elf"], words["sample"]
    if name == CI_JOBS:
        return _run_ci_jobs(firmware, words)
    if any(words[option] for option in ("only", "listed", "resume", "commits", "downloads", "url")):
        raise UsageError(
            f"--only, --list, --resume, --commits, --downloads and --history are for {CI_JOBS}",
            hint="-k selects tests",
        )
    if elf is not None and firmware != FirmwareChoice():
        raise UsageError(
            "--elf is the runner under test, so --firmware and --executorch are not",
            hint="with --exporter checkout, for its suite: --firmware bundled and --executorch",
        )
    shard = parse_shard(words["shard"])
    options = SuiteOptions(
        selection=Selection(words["keyword"], (shard.number, shard.count), sample, words["seed"]),
        elf=elf,
        checkout=firmware.checkout(),
        exporter=selected_exporter(exporter),
        workers=words["workers"],
        use_store=not words["no_cache"],
    )
    reports: list[SuiteReport] = []
    with progress_shown() as progress:
        for source in firmware.sources:
            report = run_suite(name, replace(options, source=source), progress)
            for write, path in ((write_json, words["report"]), (write_junit, words["junit"])):
                if path is not None:  # of a second run out.executorch.json
                    second = path.with_name(f"{path.stem}.{source}{path.suffix}")
                    write(report, second if reports else path)
            reports.append(report)
    if sample is not None:
        echo(f"a sample of {sample} tests, seed {words['seed']}")
    for report in reports:
        print_report(terminal(), report)
    answers = [report.as_json() for report in reports]
    code = max(report.exit_code for report in reports)
    return answers[0] if len(answers) == 1 else {"runs": answers}, ExitCode(code)


def _run_ci_jobs(firmware: FirmwareChoice, words: Mapping[str, Any]) -> Answer:
    """Run ExecuTorch's CI jobs. ``words``: the options of ``hil suite``."""
    if any(words[option] for option in _OF_TESTS):
        raise UsageError(
            f"-k, --sample, --elf and --junit are for suites of tests, not for {CI_JOBS}",
            hint="--only selects jobs by a part of their names",
        )
    if firmware.root is None:
        raise UsageError(
            f"{CI_JOBS} runs a checkout's jobs, and none is named", hint="--executorch DIR"
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
            keep_jobs(words["url"], results)
    print_jobs(terminal(), results)
    commands = {job.name: job.commands for job in chosen}
    answer = {
        "jobs": [{**result.as_json(), "commands": commands[result.name]} for result in results],
        "aside": dict(jobs.aside),
        "differences": list(jobs.differences),
    }
    if (report := words["report"]) is not None and report.suffix == ".md":
        write_jobs_page(report, results)
    elif report is not None:
        with disk_errors("writing the report"):
            write_whole(report, json.dumps(answer, indent=1) + "\n")
    return answer, code


def keep_jobs(url: str | None, results: Sequence[JobResult]) -> None:
    """Keep the results in a history: a night with a row for each job. Raises as ``opened``."""
    names = [result.name for result in results]
    id, origin = f"{CI_JOBS}-{uuid.uuid4().hex[:12]}", Origin(commit=results[0].commit)
    made = (exact_harness_revision(), host())
    night = Night(
        id, CI_JOBS, key_of(names), now(), *made, tuple(map(Planned, names)), origin=origin
    )
    with opened(url) as history:
        history.begin(night)
        history.append([_row_of_job(night, result) for result in results])


def _row_of_job(night: Night, result: JobResult) -> Row:
    text, verdict = "; ".join(result.reasons)[:800], _verdict_of_job(result)
    case = (night.id, result.name, night.began, CI_JOBS, result.name, "executorch", verdict)
    return Row(
        *case,
        verdict_text=str(verdict),
        cause=Cause(str(result.verdict), text) if text else None,
        seconds={"total": result.seconds},
        identity=Identity(sources=result.commit, harness=night.harness, host=night.host),
        run_dir=result.log or None,
        suite=CI_JOBS,
        origin=night.origin,
    )


def _verdict_of_job(result: JobResult) -> Verdict:
    """Return a failed job's verdict from its simulation or its tests; else it built nothing."""
    if result.verdict is JobVerdict.PASSED:
        return Verdict.PASS
    if result.verdict is not JobVerdict.FAILED:
        skipped = result.verdict is JobVerdict.NOT_RUN
        return Verdict.SKIPPED if skipped else Verdict.NO_VERDICT
    of_tests = Verdict.MISMATCH if result.tests.get("failed") else Verdict.BUILD_ERROR
    return next((Verdict[c.verdict] for c in result.calls if not c.proven), of_tests)


@click.group()
def standin() -> None:
    """Offer the FVP's command line on top of QEMU, where there is no FVP."""


@standin.command("install")
@click.argument("directory", metavar="DIR", type=PATH)
@verb
def install_(directory: Path) -> Answer:
    """Write commands with the names of Arm's models into DIR.

    They take the models' options and run the program on QEMU's mps3-an547 (Corstone-300 with a
    Cortex-M55) with a functional model of the NPU. They say that they are not an FVP.

    \b
    Example:
      hil standin install /tmp/fvp && PATH=/tmp/fvp:$PATH run_fvp.sh --elf=...
    """
    written = install(directory)
    for path in written:
        echo(path)
    return {"commands": [str(path) for path in written]}, ExitCode.PASSED
