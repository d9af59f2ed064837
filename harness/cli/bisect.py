"""``hil bisect``: options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.cli.options import (
    exporter_option,
    limit_factor_option,
    simulator_option,
    tolerance_option,
)
from harness.cli.progress import progress_shown
from harness.cli.verb import verb
from harness.core.verdict import ExitCode, Verdict

_UNDECIDED = ("build", "link", "export")


def _undecided_options(command: Any) -> Any:
    for stage in reversed(_UNDECIDED):
        command = click.option(
            f"--{stage}-error",
            type=click.Choice(["skip", "bad"]),
            default="skip",
            show_default=True,
            help=f"How to count a revision that ends in {stage.upper()}_ERROR.",
        )(command)
    return command


@click.command()
@click.argument("target")
@click.argument("model")
@click.option("--good", required=True, metavar="REV", help="An older revision that passes.")
@click.option("--bad", default="HEAD", show_default=True, metavar="REV", help="One that fails.")
@exporter_option
@click.option(
    "-C",
    "--executorch",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Your checkout of ExecuTorch; default: as for `hil run --firmware executorch`.",
)
@click.option(
    "--part",
    "parts",
    multiple=True,
    metavar="NAME=DIR",
    help="As for `hil run`: where a part of its build is; the same for every revision.",
)
@_undecided_options
@simulator_option
@tolerance_option
@limit_factor_option
@verb
def bisect(
    target: str, model: str, as_json: bool, **options: Any
) -> tuple[dict[str, Any], ExitCode]:
    """Find the commit of a checkout from which on MODEL fails on TARGET.

    Steps through `git bisect`: each revision is built and run as `hil run --executorch` does. PASS
    is good, a failure of the product is bad, and what says nothing about the product (INFRA, a
    build that fails) is skipped. --good and --bad are run first. Hundreds of revisions take about
    ten runs.

    It works in a git worktree of its own, in the state directory (`git worktree list` shows it).
    Your files, HEAD, index, stash and your own bisect are not touched. The worktree stays, so
    that the next bisect only builds what differs.

    \b
    Examples:
      hil bisect corstone-300-m55 ds_cnn --good v1.4.0 --bad HEAD -C ~/executorch
      hil bisect corstone-300-m55 ds_cnn --good v1.4.0 -C ~/executorch --exporter checkout
      hil bisect corstone-300-u55-128 resnet8 --good HEAD~40 -C ~/executorch --link-error bad
    """
    from harness.config.case import Case
    from harness.run import bisect as run_bisect

    case = Case(target, model)
    bad_too = [stage for stage in _UNDECIDED if options[f"{stage}_error"] == "bad"]
    counted_bad = frozenset(Verdict[f"{stage.upper()}_ERROR"] for stage in bad_too)
    with progress_shown(as_json) as progress:
        bisection = run_bisect.bisect(
            case,
            options["good"],
            options["bad"],
            _run_options(options),
            counted_bad=counted_bad,
            progress=progress,
        )
    if not as_json:
        from harness.report.console import Terminal
        from harness.report.terminal import print_bisection

        print_bisection(Terminal(), bisection)
    return {"case": case.id, **bisection.summary()}, bisection.exit_code


def _run_options(options: dict[str, Any]) -> Any:
    from harness.firmware.source import choose
    from harness.run.pipeline import RunOptions

    return RunOptions(
        simulator=options["simulator"],
        tolerance_lsb=options["tolerance_lsb"],
        limit_factor=options["limit_factor"],
        firmware=choose("executorch", options["executorch"], options["parts"]),
        exporter=options["exporter"],
    )
