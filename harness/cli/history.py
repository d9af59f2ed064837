"""``hil history``: options and help."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from harness.cli.history_options import DefaultGroup, history_option, known_night, opened
from harness.cli.verb import echo, verb
from harness.core.errors import NotThere, UsageError
from harness.core.verdict import ExitCode


class _History(DefaultGroup):
    default = "show"


@click.group(cls=_History)
def history() -> None:
    """Results of past nights: the runs of a case, since when it fails and what changed, what is
    flaky.

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
@history_option
@verb
def show_(case: str | None, most: int, url: str | None, as_json: bool) -> tuple[Any, ExitCode]:
    """The runs of a case; or without one, the flaky cases. `hil history CASE` is the same.

    If the case fails, or failed once, also the run since which, the last good run before it, and
    what differs; INFRA and SKIPPED are neither good nor bad. Exits with 1 while the case fails.

    Flaky are cases with different results though program, firmware, toolchain, simulator, target
    and reference were the same. Exits with 1 when there are any.

    A case with ExecuTorch's own firmware is called "TARGET/MODEL [executorch]".
    """
    return _flaky(most, url, as_json) if case is None else _case(case, most, url, as_json)


def _case(case: str, most: int, url: str | None, as_json: bool) -> tuple[Any, ExitCode]:
    with opened(url) as database:
        from harness.nightly.history.compare import NoSuchCase, first_bad
        from harness.report.history import first_bad_summary, print_case

        rows = database.of_case(case)
        if not rows:
            raise NoSuchCase(case, get_close_matches(case, database.cases()))
    failure, newest = first_bad(case, rows), rows[-most:]
    if not as_json:
        from harness.report.console import Terminal

        print_case(Terminal(), case, newest, failure)
    summary = {"case": case, "runs": [row.to_fields() for row in newest]}
    if failure is None:
        return {**summary, "first_bad": None}, ExitCode.PASSED
    code = ExitCode.FAILED if failure.fixed is None else ExitCode.PASSED
    return {**summary, **first_bad_summary(failure)}, code


def _flaky(nights: int, url: str | None, as_json: bool) -> tuple[Any, ExitCode]:
    with opened(url) as database:
        from harness.nightly.history.compare import flaky

        cases = flaky(database.rows([night.id for night in database.nights(most=nights)]))
    if not as_json:
        from harness.report.console import Terminal
        from harness.report.history import print_flaky

        print_flaky(Terminal(), cases)
    summary = [{**vars(case), "rows": [row.to_fields() for row in case.rows]} for case in cases]
    return {"flaky": summary}, ExitCode.FAILED if cases else ExitCode.PASSED


@history.command("copy")
@click.option("--from", "source", metavar="URL|FILE.db", help="Where nights are read from.")
@click.option("--to", "destination", metavar="URL|FILE.db", help="Where they are added.")
@click.option("--night", metavar="ID", help="That night alone.")
@verb
def copy_(
    source: str | None, destination: str | None, night: str | None, as_json: bool
) -> tuple[Any, ExitCode]:
    """Add the nights of one history to another. What that has already stays as it is.

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
    if not as_json:
        echo(f"{copied.nights} nights and {copied.rows} rows are new, {copied.known} were known")
    return vars(copied), ExitCode.PASSED


def _url(text: str | None) -> str | None:
    """Of a database; None: the default one."""
    return text if text is None or "://" in text else f"sqlite:///{Path(text).absolute()}"
