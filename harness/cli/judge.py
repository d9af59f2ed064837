"""``hil judge`` and ``accept``: options and help; the work is done elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.firmware import firmware_options
from harness.cli.progress import progress_shown
from harness.cli.verb import echo, limit_factor_option, verb
from harness.core.verdict import ExitCode

if TYPE_CHECKING:
    from harness.firmware.choice import FirmwareChoice
    from harness.run.accept import Only


@click.command("judge")
@click.argument("run_dir", metavar="RUN_DIR|LOG", type=click.Path(path_type=Path))
@click.option(
    "--elf",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The firmware of a LOG, to name the functions its faults were in.",
)
@click.option("--strict", is_flag=True, help="A LOG whose outputs nobody compared fails (exit 1).")
@click.option("--verbose", is_flag=True, help="Also list what no LOG can tell.")
@verb
def judge_(
    run_dir: Path, elf: Path | None, strict: bool, verbose: bool, as_json: bool
) -> tuple[dict[str, Any], ExitCode]:
    """Judge a finished run again, offline, from its directory; or a lone console log.

    A LOG is from anybody's CI. It is PASS only when a runner in it completed and compared its
    own outputs (Test_result: PASS), and COMPLETED when it completed and nothing compared them:
    exit 0, and 1 with --strict. Runs of this tool are never COMPLETED.

    \b
    Examples:
      hil judge .hil/runs/20260101-120000-ds_cnn-1a2b3c
      hil judge fvp.log --elf arm_executor_runner
      hil judge fvp.log --strict
    """
    if run_dir.is_file():
        from harness.judge.console_log import judge_file
        from harness.report.terminal import log_text

        log = judge_file(run_dir, elf)
        if not as_json:
            echo(log_text(log, verbose))
        return log.summary(), log.exit_code(strict)
    from harness.run.judging import judge_again

    record = judge_again(run_dir)
    if not as_json:
        from harness.report.console import Terminal
        from harness.report.terminal import print_records

        print_records(Terminal(), [record])
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
    help="Make these outputs what every firmware has to give, in place of the oracle's.",
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
    as_json: bool,
) -> tuple[dict[str, Any], ExitCode]:
    """Run a case and propose its outputs and figures as the new reference, shown as a diff.

    The file under references/ (in your repository for a model of yours, which is named by its path
    there) is changed for you to review and commit. A case whose outputs do
    not match is refused, and so is a figure over its hard limit. TARGET/runner is the firmware
    of a target: only built and measured.

    With --firmware executorch the reference is what the checkout's own runner gives, in a file of
    its own, which only its runs are held against; with --truth every firmware's are.

    \b
    Examples:
      hil accept corstone-300-m55/ds_cnn --reason "faster depthwise kernel, +400 B"
      hil accept corstone-300-m55/ds_cnn --only size --reason "two more operators, see #12"
      hil accept corstone-300-m55/runner --reason "first footprint of gcc 14"
      hil accept corstone-300-m55/ds_cnn --executorch ~/executorch --reason "ExecuTorch 1.5"
    """
    from harness.run.accept import accept_case
    from harness.run.pipeline import RunOptions
    from harness.sim.pick import missing_policy

    options = RunOptions(limit_factor=limit_factor, fvp_missing=missing_policy(), firmware=firmware)
    with progress_shown(as_json) as progress:
        proposal = accept_case(
            subject, reason, options, only=only, truth=truth, dry_run=dry_run, progress=progress
        )
    if not as_json:
        echo(proposal.text())
    return proposal.summary(), ExitCode.PASSED
