"""``hil run``, ``exec``, ``judge`` and ``accept``: options and help; the work is done elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.progress import progress_shown
from harness.cli.verb import verb
from harness.errors import ExitCode

if TYPE_CHECKING:
    from harness.run.accept import Only
    from harness.run.execute import Execution

_limit_factor = click.option(
    "--limit-factor",
    type=click.FloatRange(min=0, min_open=True, max=1000),
    help="Multiply all time limits, for a slow machine (default: $HIL_LIMIT_FACTOR or 1).",
)
_fvp_missing = click.option(
    "--fvp-missing",
    type=click.Choice(["fail", "skip"]),
    help="What a case is whose FVP is not installed; fail when $CI is set, else skip.",
)


_dev_mode = click.option(
    "--dev-mode",
    is_flag=True,
    help="Zephyr: look at every repository of the workspace, linked checkouts included, for edits.",
)


@click.command()
@click.argument("target")
@click.argument("models", nargs=-1, metavar="MODEL...")
@click.option(
    "--model",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A model file with ModelUnderTest and ModelInputs; may be repeated.",
)
@click.option(
    "--simulator",
    default="auto",
    show_default=True,
    help="One of the target's simulators; auto takes an installed FVP first.",
)
@click.option(
    "--pte",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Run this program in place of the exported one (one model only).",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    metavar="LSB",
    help="Accept output differences up to this many steps.",
)
@click.option("--profile", is_flag=True, help="Also print instructions per operator.")
@_limit_factor
@_fvp_missing
@_dev_mode
@verb
def run(
    target: str, models: tuple[str, ...], files: tuple[Path, ...], simulator: str,
    pte: Path | None, tolerance: float, profile: bool, limit_factor: float | None,
    fvp_missing: str | None, dev_mode: bool, as_json: bool,
) -> tuple[Any, ExitCode]:  # fmt: skip
    """Export MODELs, build the runner for TARGET, simulate, and judge against the reference.

    MODEL is a name from `hil models` or a .py file.

    \b
    Examples:
      hil run corstone-300-m55 ds_cnn resnet8 mobilenet_v1_025 deep_autoencoder
      hil run host --model my_model.py
      hil run corstone-300-m55 ds_cnn --pte changed.pte --json
    """
    from harness.case.case import Case
    from harness.errors import UsageError, exit_code
    from harness.report.terminal import overall
    from harness.run.pipeline import RunOptions, run_cases
    from harness.simulate.fvp import missing_policy

    wanted = [*models, *map(str, files)]
    if not wanted:
        raise UsageError("no model was named", hint="`hil models` lists them; or --model FILE.py")
    if pte is not None and len(wanted) != 1:
        raise UsageError(f"--pte replaces one program, but {len(wanted)} models were named")
    missing = fvp_missing or missing_policy()
    options = RunOptions(simulator, tolerance, pte, profile, limit_factor, missing, dev_mode)
    with progress_shown(as_json) as progress:
        records = run_cases([Case(target, m) for m in wanted], options, progress)
    if not as_json:
        from rich.console import Console

        from harness.report.terminal import print_profile, print_records

        print_records(Console(), records)
        if profile:
            print_profile(Console(), records)
    speaker = overall(records)
    summary = {**(speaker.summary() if speaker else {}), "cases": [r.summary() for r in records]}
    return summary, exit_code(r.verdict for r in records)


@click.command("exec")
@click.argument("target")
@click.argument("program", type=click.Path(path_type=Path), metavar="FILE.pte|.bpte")
@click.option(
    "-i",
    "inputs",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="IN.bin",
    help="Raw bytes of an input in the method's own memory order; in order.",
)
@click.option(
    "-o",
    "base",
    type=click.Path(path_type=Path),
    metavar="BASE",
    help="Outputs are written to BASE-0.bin, BASE-1.bin, ... (default: out)",
)
@click.option("--simulator", default="auto", show_default=True)
@_limit_factor
@_fvp_missing
@_dev_mode
@verb
def exec_(
    target: str, program: Path, inputs: tuple[Path, ...], base: Path | None, simulator: str,
    limit_factor: float | None, fvp_missing: str | None, dev_mode: bool, as_json: bool,
) -> tuple[Any, ExitCode]:  # fmt: skip
    """Run a given program on given raw inputs and write its outputs; nothing is judged.

    A .bpte without -i runs its bundled test cases. The program is confined: it has no network,
    no other process, and only its run directory to write to. What it tries beyond that fails
    for it, and is reported where its own runner says so.

    \b
    Example:
      hil exec corstone-300-m55 model.pte -i image.bin -o /tmp/out
    """
    from harness.run.execute import ExecOptions, execute
    from harness.simulate.fvp import missing_policy

    options = ExecOptions(simulator, limit_factor, fvp_missing or missing_policy(), dev_mode)
    with progress_shown(as_json) as progress:
        result = execute(target, program, inputs, base or Path("out"), options, progress)
    if not as_json:
        _print_execution(result)
    return result.summary(), result.exit_code


def _print_execution(execution: Execution) -> None:
    cause = execution.cause
    if cause is not None:
        where = f" (console line {cause.line})" if cause.line else ""
        click.secho(f"hil: {execution.verdict} {cause.kind}{where}: {cause.text}",
                    err=True, fg="red")  # fmt: skip
        click.echo(f"hil: evidence: {execution.run_dir}", err=True)
    for path in execution.outputs:
        click.echo(path)


@click.command("judge")
@click.argument("run_dir", metavar="RUN_DIR|LOG", type=click.Path(path_type=Path))
@click.option(
    "--elf",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The firmware of a LOG, to name the functions its faults were in.",
)
@verb
def judge_(run_dir: Path, elf: Path | None, as_json: bool) -> tuple[Any, ExitCode]:
    """Judge a finished run again, offline, from its directory; or a lone console log.

    A LOG is from anybody's CI. It passes only when a runner in it completed and compared its
    own outputs (Test_result: PASS); what a log cannot tell is listed.

    \b
    Examples:
      hil judge .hil/runs/20260101-120000-ds_cnn-1a2b3c
      hil judge fvp.log --elf arm_executor_runner
    """
    if run_dir.is_file():
        from harness.report.log import judge_file, log_text

        log = judge_file(run_dir, elf)
        if not as_json:
            click.echo(log_text(log))
        return log.summary(), log.judgement.verdict.exit_code
    from harness.run.pipeline import judge_again

    record = judge_again(run_dir)
    if not as_json:
        from rich.console import Console

        from harness.report.terminal import print_records

        print_records(Console(), [record])
    return record.summary(), record.verdict.exit_code


@click.command()
@click.argument("subject", metavar="TARGET/MODEL|TARGET/runner")
@click.option("--reason", required=True, help="Why this is the new reference; kept in its history.")
@click.option(
    "--only",
    type=click.Choice(["size", "outputs"]),
    help="The sizes of program and firmware, without a run; or the outputs alone (default: all).",
)
@click.option("--dry-run", is_flag=True, help="Show the change, write nothing.")
@_limit_factor
@_fvp_missing
@verb
def accept(
    subject: str, reason: str, only: Only | None, dry_run: bool, limit_factor: float | None,
    fvp_missing: str | None, as_json: bool,
) -> tuple[Any, ExitCode]:  # fmt: skip
    """Run a case and propose its outputs and figures as the new reference, shown as a diff.

    The file under references/ is changed for you to review and commit. A case whose outputs do
    not match is refused, and so is a figure over its hard limit. TARGET/runner is the firmware
    of a target: only built and measured.

    \b
    Examples:
      hil accept corstone-300-m55/ds_cnn --reason "faster depthwise kernel, +400 B"
      hil accept corstone-300-m55/ds_cnn --only size --reason "two more operators, see #12"
      hil accept corstone-300-m55/runner --reason "first footprint of gcc 14"
    """
    from harness.run.accept import accept_case
    from harness.run.pipeline import RunOptions
    from harness.simulate.fvp import missing_policy

    options = RunOptions(limit_factor=limit_factor, fvp_missing=fvp_missing or missing_policy())
    with progress_shown(as_json) as progress:
        proposal = accept_case(
            subject, reason, options, only=only, dry_run=dry_run, progress=progress
        )
    if not as_json:
        click.echo(proposal.text())
    return proposal.summary(), ExitCode.PASSED
