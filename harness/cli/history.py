"""``hil history``; and what the verbs of nights share: the history, and how a night is shown."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.verb import FILE, Answer, echo, tell_ci, terminal, verb, wants_json
from harness.core.errors import NotThere, ToolMissing, Unknown, UsageError
from harness.core.verdict import ExitCode
from harness.nightly.history.case_state import first_bad, flaky
from harness.nightly.history.compare import compare
from harness.report.history import (
    first_bad_summary,
    print_case,
    print_flaky,
    print_night,
    summary_of,
)
from harness.report.page.render import summary, workflow_commands, write_page
from harness.report.summary import STEP_SUMMARY, append_to_step_summary
from harness.system.paths import install_command

if TYPE_CHECKING:
    from harness.nightly.history.nights import Night
    from harness.nightly.history.store import History

history_option = click.option(
    "--history",
    "url",
    metavar="URL",
    help="The history's database, as sqlite:///FILE or postgresql://USER@HOST/NAME (default: "
    "$HIL_HISTORY, or history.db in the state directory).",
)
html_option = click.option(
    "--html",
    type=FILE,
    help="Write the night as one HTML page, as `hil nightly page` does.",
)
junit_option = click.option(
    "--junit",
    type=FILE,
    help="Write the night as JUnit XML, as Jenkins and GitLab read it.",
)


@contextmanager
def packages_of(user: str) -> Iterator[None]:
    """Raise ToolMissing for a Python package that ``user`` needs and the block does not find."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ToolMissing(
            f"{user} needs the Python package {error.name}, which is not installed",
            tool=error.name,
            hint=install_command("nightly"),
            kind="no_package",
        ) from error


@contextmanager
def opened(url: str | None) -> Iterator[History]:
    """Return the history, after delivering what waited for it.

    Raises what ``open_history`` does."""
    with packages_of("the history"):
        from harness.nightly.history.database import Recorder, open_history
    history = open_history(url)
    try:
        Recorder(history).deliver()
        yield history
    finally:
        history.close()


def known_night(history: History, id: str | None) -> Night:
    """Return the one of that id, or the newest.

    Raises UsageError for a history without nights, Unknown for an id of none."""
    newest = history.nights(most=20)
    if not newest:
        raise UsageError(
            f"the history has no night: {history.url} is empty",
            hint="`hil nightly` runs one and keeps it there; another history: --history URL",
        )
    chosen = newest[0] if id is None else history.night(id)
    if chosen is None:
        raise Unknown(
            f"the history has no night {id}",
            str(id),
            [night.id for night in newest],
            listing="the last ones: ",
        )
    return chosen


def show_night(
    history: History,
    night: Night,
    html: Path | None,
    junit: Path | None,
    *,
    only: Collection[str] | None = None,
) -> Answer:
    """Print a night, or return it as data, and write its files.

    On GitHub also as annotations and in the summary of the step. ``only``: the cases of a shard.
    Raises DiskError."""
    comparison = compare(history, night, only)
    for file, template in ((html, "night.html"), (junit, "night.xml")):
        if file is not None:
            write_page(file, comparison, template)
    for line in workflow_commands(comparison, os.environ):
        tell_ci(line)
    if STEP_SUMMARY in os.environ:
        append_to_step_summary(summary(comparison), os.environ)
    print_night(terminal(), comparison)
    return summary_of(comparison) if wants_json() else {}, comparison.code


class DefaultGroup(click.Group):
    """A group whose verb ``default`` runs if no other is named."""

    def __init__(self, *arguments: Any, default: str, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = [self.default, *args]
        return super().parse_args(ctx, args)


@click.group(cls=DefaultGroup, default="show")
def history() -> None:
    """Show past nights: the runs of a case, since when it fails, what changed, what is flaky.

    \b
    Examples:
      hil history corstone-300-m55/ds_cnn    its runs; since when it fails
      hil history                            what is flaky
      hil history copy --to nights.db
    """


@history.command("show")
@click.argument("case", required=False, metavar="[TARGET/MODEL]")
@click.option(
    "-n",
    "most",
    type=click.IntRange(1),
    default=30,
    show_default=True,
    help="How many of the newest: runs of a case, or nights that are searched for flaky cases.",
)
@click.option("--suite", metavar="NAME", help="Show this suite (default: the last run's).")
@click.option("--branch", metavar="NAME", help="Show this branch (default: the last run's).")
@click.option(
    "--cause",
    metavar="WORDS",
    default="",
    help="Since when it fails of this cause: a verdict, a kind, or words of its text (default: of "
    "the last one).",
)
@history_option
@verb
def show_(
    case: str | None,
    most: int,
    cause: str,
    url: str | None,
    **place: str | None,
) -> Answer:
    """Show the runs of a case; without one, the flaky cases.

    `hil history CASE` is the same.

    If the case fails, or failed once, also the run since which, the last good run before it, and
    what differs; INFRA and SKIPPED are neither good nor bad. Exits with 1 while the case fails.

    Flaky are cases with different results though program, firmware, toolchain, simulator, target
    and reference were the same. Exits with 1 when there are any.

    A case with ExecuTorch's own firmware is called "TARGET/MODEL [executorch]"."""
    if case is None:
        return _flaky(most, url)
    with opened(url) as database:
        newest_of = database.last_of(case, **{n: v for n, v in place.items() if v is not None})
        if newest_of is None:
            known = database.cases()
            message, close = f"the history has no run of {case}", get_close_matches(case, known)
            raise Unknown(message, case, known[:5], close=close, listing="some that it has: ")
        rows = database.of_case(case, **newest_of)
    failure, newest = first_bad(rows, cause), rows[-most:]
    print_case(terminal(), case, newest, failure)
    summary = {"case": case, **newest_of, "runs": [asdict(row) for row in newest]}
    if failure is None:
        return {**summary, "first_bad": None}, ExitCode.PASSED
    code = ExitCode.FAILED if failure.fixed is None else ExitCode.PASSED
    return {**summary, **first_bad_summary(failure)}, code


def _flaky(nights: int, url: str | None) -> Answer:
    with opened(url) as database:
        known_night(database, None)
        cases = flaky(database.rows([night.id for night in database.nights(most=nights)]))
    print_flaky(terminal(), cases)
    summary = [{**vars(case), "score": case.score} for case in cases]
    return {"flaky": summary}, ExitCode.FAILED if cases else ExitCode.PASSED


@history.command("copy")
@click.option("--from", "source", metavar="URL|FILE.db", help="Where nights are read from.")
@click.option("--to", "destination", metavar="URL|FILE.db", help="Where they are added.")
@click.option("--night", metavar="ID", help="That night alone.")
@verb
def copy_(source: str | None, destination: str | None, night: str | None) -> Answer:
    """Add the nights of one history to another, and keep the nights that it has.

    One of --from and --to may be left out: it is then $HIL_HISTORY, or history.db in the state
    directory. A history is a database's URL or a SQLite file, which `hil nightly merge` reads.

    \b
    Examples:
      hil history copy --to nights.db --night 20260101-020000-1a2b3c
      hil history copy --from nights.db
    """
    if source is None and destination is None:
        raise UsageError(
            "nothing to copy: both ends are the same history", hint="name --from or --to"
        )
    if source is not None and "://" not in source and not Path(source).exists():
        raise NotThere(Path(source))
    with opened(_url(source)) as old:
        if night is not None:
            known_night(old, night)
        with opened(_url(destination)) as new:
            copied = old.copy_to(new, night)
    counts = f"{copied['nights']} nights and {copied['rows']} rows are new"
    echo(f"{counts}, {copied['known']} were known")
    return copied, ExitCode.PASSED


def _url(text: str | None) -> str | None:
    """Return a database's URL; None: the default one."""
    return text if text is None or "://" in text else f"sqlite:///{Path(text).absolute()}"
