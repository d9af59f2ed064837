"""``hil bisect``: options and help; the work is done elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.cli.progress import progress_shown
from harness.cli.verb import echo, fvp_missing_option, limit_factor_option, tolerance_option, verb
from harness.errors.verdict import ExitCode, Verdict

_UNDECIDED = ("build", "link", "export")


def _counted_options(command: Any) -> Any:
    for what in reversed(_UNDECIDED):
        command = click.option(
            f"--{what}-error",
            type=click.Choice(["skip", "bad"]),
            default="skip",
            show_default=True,
            help=f"What a revision is that ends in {what.upper()}_ERROR.",
        )(command)
    return command


@click.command()
@click.argument("target")
@click.argument("model")
@click.option("--good", required=True, metavar="REV", help="An older revision, which passes.")
@click.option("--bad", default="HEAD", show_default=True, metavar="REV", help="One that fails.")
@click.option(
    "-C",
    "--executorch",
    "checkout",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Your checkout of ExecuTorch; else the one that `hil run --firmware executorch` takes.",
)
@click.option(
    "--part",
    "parts",
    multiple=True,
    metavar="NAME=DIR",
    help="As for `hil run`: where a part of its build is; the same one for every revision.",
)
@click.option("--verify/--no-verify", default=True, help="Run --good and --bad first.")
@_counted_options
@click.option("--simulator", default="auto", show_default=True)
@tolerance_option
@limit_factor_option
@fvp_missing_option
@verb
def bisect(
    target: str, model: str, good: str, bad: str, checkout: Path | None, parts: tuple[str, ...],
    verify: bool, build_error: str, link_error: str, export_error: str, simulator: str,
    tolerance: float | None, limit_factor: float | None, fvp_missing: str | None, as_json: bool,
) -> tuple[dict[str, Any], ExitCode]:  # fmt: skip
    """Find the commit of a checkout from which on MODEL fails on TARGET.

    Each revision is built and run as `hil run --executorch` does; PASS is good, a failure of the
    product is bad, and what says nothing about the product (INFRA, a build that fails) is
    skipped. A number of revisions in the hundreds takes about eight runs.

    It works in a git worktree of its own, in the state directory (`git worktree list` shows it).
    Your files, HEAD, index, stash and a bisect of yours are not touched. The worktree stays, so
    that the next bisect only builds what differs.

    \b
    Examples:
      hil bisect corstone-300-m55 ds_cnn --good v1.0 --bad HEAD -C ~/executorch
      hil bisect corstone-300-u55-128 resnet8 --good HEAD~40 -C ~/executorch --link-error bad
    """
    from harness.bisect.search import Interrupted
    from harness.bisect.step import bisect as bisect_case
    from harness.build.choice import choose
    from harness.case.case import Case
    from harness.run.pipeline import RunOptions
    from harness.simulate.pick import missing_policy

    chosen = dict(zip(_UNDECIDED, (build_error, link_error, export_error), strict=True))
    counted = frozenset(Verdict[f"{w.upper()}_ERROR"] for w, is_ in chosen.items() if is_ == "bad")
    options = RunOptions(
        simulator=simulator, tolerance_lsb=tolerance, limit_factor=limit_factor,
        fvp_missing=fvp_missing or missing_policy(),
        firmware=choose("executorch", checkout, parts),
    )  # fmt: skip
    case = Case(target, model)
    with progress_shown(as_json) as progress:
        try:
            found, command = bisect_case(
                case, good, bad, options, counted=counted, verify=verify, progress=progress
            )
        except Interrupted as so_far:
            echo(f"hil: {so_far.told()}", err=True)
            raise
    if not as_json:
        from harness.report.bisect import print_bisection
        from harness.report.console import Terminal

        print_bisection(Terminal(), found, command)
    return {"case": case.id, **found.summary(), "command": command}, found.exit_code
