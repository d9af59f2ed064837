"""``hil history``: options and help."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.history_options import DefaultGroup, history_option, opened
from harness.cli.verb import echo, verb
from harness.core.errors import UsageError
from harness.core.verdict import ExitCode
from harness.system.files import disk_errors

if TYPE_CHECKING:
    from harness.nightly.history.model import Row

_UNITS = {"d": 1, "w": 7, "m": 30, "y": 365}  # days


class _History(DefaultGroup):
    default = "show"


@click.group(cls=_History)
def history() -> None:
    """Results of past nights: the runs of a case, since when it fails and what changed, what is
    flaky.

    \b
    Examples:
      hil history corstone-300-m55/ds_cnn
      hil history first-bad corstone-300-m55/ds_cnn
      hil history flaky
      hil history export nights.db
      hil history prune --keep 90d
    """


def _rows(url: str | None, case: str, most: int | None = None) -> list[Row]:
    from harness.nightly.history.compare import NoSuchCase

    with opened(url) as database:
        rows = database.of_case(case, most=most)
        if not rows:
            raise NoSuchCase(case, get_close_matches(case, database.cases()))
    return rows


@history.command("show")
@click.argument("case", metavar="TARGET/MODEL")
@click.option(
    "-n",
    "most",
    type=click.IntRange(1),
    default=30,
    show_default=True,
    help="How many runs, the newest.",
)
@history_option
@verb
def show_(case: str, most: int, url: str | None, as_json: bool) -> tuple[Any, ExitCode]:
    """The runs of one case: verdicts, size, instructions, time. `hil history CASE` is the same.

    A case with ExecuTorch's own firmware is called "TARGET/MODEL [executorch]".
    """
    rows = _rows(url, case, most)
    if not as_json:
        from harness.report.console import Terminal
        from harness.report.history import print_case

        print_case(Terminal(), case, rows)
    return {"case": case, "runs": [row.to_fields() for row in rows]}, ExitCode.PASSED


@history.command("first-bad")
@click.argument("case", metavar="TARGET/MODEL")
@history_option
@verb
def first_bad_(case: str, url: str | None, as_json: bool) -> tuple[Any, ExitCode]:
    """The run since which a case fails, the last good run before it, and what differs.

    INFRA and SKIPPED are neither good nor bad. Exits with 1 while the case fails, with 0 when its
    last run passed.
    """
    from harness.nightly.history.compare import first_bad

    found = first_bad(case, _rows(url, case))
    if not as_json:
        from harness.report.console import Terminal
        from harness.report.history import print_first_bad

        print_first_bad(Terminal(), case, found)
    if found is None:
        return {"case": case, "first_bad": None}, ExitCode.PASSED
    from harness.report.history import first_bad_summary

    code = ExitCode.FAILED if found.fixed is None else ExitCode.PASSED
    return first_bad_summary(found), code


@history.command("flaky")
@click.option(
    "--nights", type=click.IntRange(2), default=30, show_default=True, help="How many, the newest."
)
@history_option
@verb
def flaky_(nights: int, url: str | None, as_json: bool) -> tuple[Any, ExitCode]:
    """Cases with different results though program, firmware, toolchain, simulator, target and
    reference were the same.

    Exits with 1 when there are any.
    """
    from harness.nightly.history.compare import flaky

    with opened(url) as database:
        found = flaky(database.rows([night.id for night in database.nights(most=nights)]))
    if not as_json:
        from harness.report.console import Terminal
        from harness.report.history import print_flaky

        print_flaky(Terminal(), found)
    summary = [{**vars(one), "rows": [row.to_fields() for row in one.rows]} for one in found]
    return {"flaky": summary}, ExitCode.FAILED if found else ExitCode.PASSED


@history.command("export")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.db")
@click.option("--night", metavar="ID", help="That night alone.")
@history_option
@verb
def export_(file: Path, night: str | None, url: str | None, as_json: bool) -> tuple[Any, ExitCode]:
    """Write the history into a SQLite file, which `import` and `nightly merge` read."""
    from harness.cli.page import known_night

    with opened(url) as database:
        from harness.nightly.history.database import open_history

        if night is not None:
            known_night(database, night)
        part = file.with_name(f".{file.name}.new")
        with disk_errors("writing the history"):
            part.unlink(missing_ok=True)
            copy = open_history(f"sqlite:///{part.absolute()}")
            try:
                copied = database.copy_to(copy, night)
            finally:
                copy.close()
            part.replace(file)
    if not as_json:
        echo(f"{copied.nights} nights with {copied.rows} rows in {file}")
    return {"file": str(file), "nights": copied.nights, "rows": copied.rows}, ExitCode.PASSED


@history.command("import")
@click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILE.db...",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
)
@history_option
@verb
def import_(files: tuple[Path, ...], url: str | None, as_json: bool) -> tuple[Any, ExitCode]:
    """Add the nights and rows of SQLite files. What the history has already stays as it is."""
    nights = rows = known = 0
    with opened(url) as database:
        from harness.nightly.history.database import open_history

        for file in files:
            source = open_history(f"sqlite:///{file.absolute()}")
            try:
                copied = source.copy_to(database)
            finally:
                source.close()
            nights, rows = nights + copied.nights, rows + copied.rows
            known += copied.known
    if not as_json:
        echo(f"{nights} nights and {rows} rows are new, {known} were known")
    return {"nights": nights, "rows": rows, "known": known}, ExitCode.PASSED


@history.command("prune")
@click.option("--keep", required=True, metavar="AGE", help="For example 90d, 12w, 6m or 2y.")
@history_option
@verb
def prune_(keep: str, url: str | None, as_json: bool) -> tuple[Any, ExitCode]:
    """Remove older nights with their rows. Nothing else removes any.

    \b
    Example:
      hil history prune --keep 90d
    """
    before = datetime.now(timezone.utc) - _age(keep)
    with opened(url) as database:
        nights, rows = database.prune(before.isoformat(timespec="seconds"))
    if not as_json:
        echo(f"{nights} nights with {rows} rows removed")
    return {"nights": nights, "rows": rows}, ExitCode.PASSED


def _age(text: str) -> timedelta:
    match = re.fullmatch(r"(\d{1,4})([dwmy])", text)
    if match is None:
        raise UsageError(f"{text!r} is no age", hint="90d, 12w, 6m and 2y are some")
    return timedelta(days=int(match[1]) * _UNITS[match[2]])
