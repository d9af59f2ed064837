"""``hil zephyr``: options and help; the work is done elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.cli.progress import progress_shown
from harness.cli.verb import echo, verb
from harness.core.verdict import ExitCode
from harness.firmware.zephyr.init import InitPlan, init, plan_init
from harness.firmware.zephyr.manifest import UPSTREAM

DEFAULT_VERSION = "4.1.0"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def zephyr() -> None:
    """A Zephyr workspace for the zephyr-* targets; `hil doctor` examines one.

    \b
    Examples:
      hil zephyr init ~/zephyr-hil --dry-run
      hil zephyr init ~/zephyr-hil
    """


@zephyr.command(name="init")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "--zephyr",
    "version",
    default=DEFAULT_VERSION,
    show_default=True,
    metavar="VERSION",
    help="Which release of Zephyr.",
)
@click.option(
    "--url",
    default=UPSTREAM,
    show_default=True,
    help="Another remote, for Zephyr and for its modules: what stands before their names.",
)
@click.option(
    "--packages/--no-packages",
    default=True,
    help="Whether Zephyr's Python packages are installed, into DIR/.venv.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be downloaded, and write nothing.")
@verb
def init_(
    folder: Path, version: str, url: str, packages: bool, dry_run: bool, as_json: bool
) -> tuple[dict[str, Any], ExitCode]:
    """Make a west workspace in DIR with Zephyr and the four modules that our targets need.

    Only files, no history. What there is of an earlier attempt is kept: the same command goes on.
    """
    plan = plan_init(folder, version, url, packages=packages)
    if not as_json:
        _tell(plan)
    result = {**plan.summary(), "done": not dry_run}
    if not dry_run:
        with progress_shown(as_json) as progress:
            init(plan, progress)
    if not as_json:
        echo("nothing was written (--dry-run)" if dry_run else "done. Before a build:")
        for line in [] if dry_run else plan.activation():
            echo(f"  {line}")
        echo("" if dry_run else "`hil doctor` then says whether a compiler or dtc is missing.")
    return result, ExitCode.PASSED


def _tell(plan: InitPlan) -> None:
    """Before anything starts: what comes from where, and about how much of it."""
    echo(f"Zephyr {plan.version} into {plan.folder}:")
    for item in plan.summary()["downloads"]:
        echo(f"  {item['what']:16}{item['megabytes']:4.0f} MB  {item['from']}  ({item['why']})")
    echo(f"about {plan.megabytes:.0f} MB in all; the compiler is not among it")
    for _, command in plan.steps():
        echo(f"  $ {' '.join(command)}")
