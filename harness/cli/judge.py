"""``hil judge``, ``why`` and ``accept``: a finished run, and what later runs are compared with."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from harness.cli.options import firmware_options, limit_factor_option
from harness.cli.verb import EXISTING_FILE, PATH, Answer, echo, progress_shown, terminal, verb
from harness.core.verdict import ExitCode
from harness.export.estimates import NpuCost
from harness.firmware.choice import FirmwareChoice
from harness.judge.budget_check import describe_accuracy, describe_witness
from harness.judge.console_log import judge_file
from harness.log.pattern import text
from harness.report.model_explorer import write_node_data
from harness.report.terminal import (
    Advice,
    advice,
    fault_details,
    judged_log_text,
    print_records,
    write_profile,
)
from harness.run.accept import Only, accept_case
from harness.run.directory import last_run
from harness.run.judging import judge_again
from harness.run.pipeline import RunOptions
from harness.run.record import RunRecord
from harness.sim.run_files import CONSOLE
from harness.system.files import read_regular


@click.command("judge")
@click.argument("run_dir", metavar="RUN_DIR|LOG", type=PATH)
@click.option(
    "--elf",
    type=EXISTING_FILE,
    help="The firmware of a LOG, to name the functions its faults were in.",
)
@click.option(
    "--prefix",
    metavar="REGEX",
    help="The prefix of every line of a LOG, if hil does not learn it by itself.",
)
@click.option("--strict", is_flag=True, help="A LOG whose outputs nobody compared fails (exit 1).")
@click.option("--verbose", is_flag=True, help="Also list what no LOG can tell.")
@verb
def judge_(
    run_dir: Path, elf: Path | None, prefix: str | None, strict: bool, verbose: bool
) -> Answer:
    """Judge a finished run again, offline, from its directory; or a lone console log.

    A LOG is from anybody's CI. It is PASS only when a runner in it completed and compared its
    own outputs (Test_result: PASS), and COMPLETED when it completed and nothing compared them:
    exit 0, and 1 with --strict. Runs of this tool are never COMPLETED.

    \b
    Examples:
      hil judge .hil/runs/20260101-120000-ds_cnn-1a2b3c
      hil judge fvp.log --elf arm_executor_runner
      hil judge fvp.log --strict
      hil judge pod.log --prefix 'stdout F '
    """
    if run_dir.is_file():
        log = judge_file(run_dir, elf, prefix)
        echo(judged_log_text(log, verbose))
        verdict = log.judgement.verdict
        return log.summary(), verdict.exit_code if strict else verdict.log_exit_code
    record = judge_again(run_dir)
    print_records(terminal(), [record])
    return record.summary(), record.verdict.exit_code


@click.command()
@click.argument("subject", metavar="TARGET/MODEL|TARGET/runner")
@click.option("--reason", required=True, help="Why this is the new reference; kept in its history.")
@click.option(
    "--only",
    type=click.Choice(["size", "outputs"]),
    help="The sizes of program and firmware, without a run; or the outputs alone (default: all).",
)
@click.option(
    "--truth",
    is_flag=True,
    help="Make these outputs what every firmware has to give, instead of the oracle's.",
)
@click.option("--dry-run", is_flag=True, help="Show the change, write nothing.")
@limit_factor_option
@firmware_options
@verb
def accept(
    subject: str,
    reason: str,
    only: Only | None,
    truth: bool,
    dry_run: bool,
    limit_factor: float | None,
    firmware: FirmwareChoice,
) -> Answer:
    """Run a case and propose its outputs and figures as the new reference, shown as a diff.

    The file under references/ (in your repository for a model of yours, which is named by its path
    there) is changed for you to review and commit. A case whose outputs do
    not match is refused, and so is a figure over its hard limit. TARGET/runner is the firmware
    of a target: only built and measured.

    --firmware executorch writes the results of the checkout's own runner into a separate file, for
    its own runs only. --truth makes them the reference of every firmware.

    \b
    Examples:
      hil accept corstone-300-m55/ds_cnn --reason "faster depthwise kernel, +400 B"
      hil accept corstone-300-m55/ds_cnn --only size --reason "two more operators, see #12"
      hil accept corstone-300-m55/runner --reason "first footprint of gcc 14"
      hil accept corstone-300-m55/ds_cnn --executorch ~/executorch --reason "ExecuTorch 1.5"
    """
    options = RunOptions(limit_factor=limit_factor, firmware=firmware)
    with progress_shown() as progress:
        proposal = accept_case(
            subject, reason, options, only=only, truth=truth, dry_run=dry_run, progress=progress
        )
    echo(proposal.text())
    return proposal.summary(), ExitCode.PASSED


_AROUND = 2  # lines of the console above and below the one that the cause names
_WIDEST = 300


@click.command()
@click.argument("subject", required=False, metavar="[TARGET/MODEL|RUN_DIR]")
@click.option("--html", type=PATH, metavar="FILE", help="Draw what each layer costs, as a page.")
@click.option(
    "--node-data",
    type=PATH,
    metavar="DIR",
    help="Write what each node of the program costs, and the first wrong one, for Model Explorer.",
)
@verb
def why(subject: str | None, html: Path | None, node_data: Path | None) -> Answer:
    """Explain the last recorded run, of a case or of any: verdict, cause, evidence, what to do.

    A case that ended before its program ran has no record; `hil run` said then why it did.

    \b
    Examples:
      hil why
      hil why corstone-300-m55/ds_cnn
      hil why corstone-300-u55-128/ds_cnn --html profile.html
      hil why corstone-300-u55-128/ds_cnn --node-data ds_cnn && python ds_cnn/show.py
      hil why .hil/runs/20260101-120000-ds_cnn-1a2b3c
    """
    record = last_run(subject)
    explained = advice(record.verdict, None if record.cause is None else record.cause.kind)
    console = list(_console(record))
    for line in _explanation(record, explained, console):
        echo(line)
    if html is not None:
        write_profile(html, record)
        echo(f"  written   {html}")
    if node_data is not None:
        echo(f"  written   {write_node_data(node_data, record)}: run it to see the program")
    return {
        **record.summary(),
        "time": record.time,
        "meaning": explained.meaning,
        "do": explained.do,
        "console": console,
    }, ExitCode.PASSED


def _explanation(record: RunRecord, explained: Advice, console: list[str]) -> Iterator[str]:
    cause = record.cause
    yield f"{record.title}: {record.verdict_text}, {record.time}"
    yield f"  {record.verdict}: {record.verdict.meaning}"
    if cause is not None:
        yield f"  cause     {cause.kind}: {explained.meaning}"
        yield f"            {cause.text}"
        if (details := fault_details(cause.facts or {})) is not None:
            yield f"            {details}"
    yield from (f"  console   {line}" for line in console)
    yield from (f"  note      {note}" for note in record.notes)
    yield from (f"  accuracy  {describe_accuracy(each)}" for each in record.accuracy)
    if record.program is not None and (cost := record.program.npu_cost) is not None:
        yield from (f"  NPU       {line}" for line in _npu_lines(cost))
    yield from (f"  on CPU    {each.describe()}" for each in record.on_cpu)
    witness = record.program and record.program.witness
    if witness and witness.values:
        yield f"  witness   {describe_witness(witness)}"
    if not record.verdict.passed:
        yield f"  to do     {explained.do}"
    yield f"  evidence  {record.run_dir}"
    yield f"  again     {again(record)}"


_MOST_OPERATORS = 5


def _npu_lines(cost: NpuCost) -> Iterator[str]:
    for number, estimate in enumerate(cost.estimates):
        yield f"delegate {number}: {estimate.text().splitlines()[0]}"
    largest = sorted(cost.operators, key=lambda operator: -operator.cycles)
    for operator in largest[:_MOST_OPERATORS]:
        yield f"  {operator.cycles:,} cycles: {operator.title}"
    if rest := largest[_MOST_OPERATORS:]:
        yield f"  {sum(o.cycles for o in rest):,} cycles: {len(rest)} more (--json lists all)"


def again(record: RunRecord) -> str:
    """Return the command that repeats a run, with its simulator, firmware, exporter and options."""
    exporter = record.program and record.program.exporter
    checkout = (record.firmware and record.firmware.checkout) or exporter
    words = ["hil", "run", record.case.target, record.case.model]
    if record.simulator is not None:
        words += ["--simulator", str(record.simulator.name)]
    if checkout:
        words += ["--executorch", checkout.path]
    if record.source != ("executorch" if checkout else "bundled"):  # the defaults of hil run
        words += ["--firmware", record.source]
    if exporter:
        words += ["--exporter", "checkout"]
    return shlex.join((*words, *record.options))


def _console(record: RunRecord) -> Iterator[str]:
    """Yield the lines around the one that the cause names, with their numbers."""
    if record.cause is None or record.cause.line is None or record.run_dir is None:
        return
    try:
        lines = read_regular(Path(record.run_dir) / CONSOLE).splitlines()
    except OSError:
        return
    named = record.cause.line
    for number in range(max(1, named - _AROUND), min(len(lines), named + _AROUND) + 1):
        yield f"{number}: {text(lines[number - 1])[:_WIDEST]}"
