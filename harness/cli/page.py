"""``hil nightly page``: options and help; the work is done elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.history_options import NoSqlAlchemy, history_option, opened
from harness.cli.verb import echo, verb
from harness.errors import Unknown, UsageError
from harness.errors.verdict import ExitCode

if TYPE_CHECKING:
    from harness.history.model import Night
    from harness.history.store import Database


@click.command("page")
@click.argument("night", required=False, metavar="[NIGHT]")
@click.option(
    "-o",
    "out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("night.html"),
    show_default=True,
    metavar="FILE",
    help="Where to write it.",
)
@history_option
@verb
def page(night: str | None, out: Path, url: str | None, as_json: bool) -> tuple[Any, ExitCode]:
    """Write a night as one HTML page: what broke, since when, what changed, how to see it.

    NIGHT is an id (default: the newest). The page needs no network and no other file, so that it
    can be opened from a disk or kept as an artefact of CI.

    \b
    Examples:
      hil nightly page
      hil nightly page 20260101-020000-1a2b3c -o night.html
    """
    with opened(url) as history:
        try:
            from harness.report.page.render import write_page
        except ModuleNotFoundError as error:
            raise NoSqlAlchemy(error.name) from error
        from harness.report.page.view import page_of

        found = page_of(history, _night(history, night))
    write_page(out, found)
    if not as_json:
        echo(f"{out}: {found.night.suite}, night {found.night.id}: {found.verdict}")
    return {
        "page": str(out),
        "night": found.night.id,
        "counts": {str(state): count for state, _, count in found.counts},
        "groups": [
            {"what": g.what, "why": g.why, "cases": [c.case for c in g.cases]} for g in found.groups
        ],
    }, ExitCode.PASSED


def _night(history: Database, id: str | None) -> Night:
    """Raises UsageError for a history without nights, Unknown for an id of none."""
    newest = history.nights(most=20)
    if not newest:
        raise UsageError("the history has no night", hint="`hil nightly` runs one")
    found = newest[0] if id is None else history.night(id)
    if found is None:
        raise Unknown(f"the history has no night {id}", str(id), [one.id for one in newest],
                      listing="the last ones: ")  # fmt: skip
    return found
