"""``hil nightly page``, and how a night is shown in CI."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from harness.cli.history_options import NoPackage, history_option, known_night, opened
from harness.cli.verb import echo, tell_ci, verb
from harness.core.verdict import ExitCode

if TYPE_CHECKING:
    from harness.nightly.history.model import Night
    from harness.nightly.history.store import History
    from harness.report.page.view import Page

_Verb = TypeVar("_Verb", bound=Callable[..., Any])
_JUNIT = "Write the night as JUnit XML, as Jenkins and GitLab read it."


def surface_options(function: _Verb) -> _Verb:
    """``--html`` and ``--junit``, of every verb that has a night at its end; the function gets
    ``surfaces``."""

    @functools.wraps(function)
    def wrapped(*args: Any, html: Path | None, junit: Path | None, **kwargs: Any) -> Any:
        return function(*args, surfaces=Surfaces(html, junit), **kwargs)

    for name, description in (
        ("--junit", _JUNIT),
        ("--html", "Write the night as one HTML page, as `hil nightly page` does."),
    ):
        path = click.Path(path_type=Path, dir_okay=False)
        click.option(name, type=path, metavar="FILE", help=description)(wrapped)
    return wrapped  # type: ignore[return-value]


@dataclass(frozen=True)
class Surfaces:
    """Where a night is to be shown beside the terminal."""

    html: Path | None = None
    junit: Path | None = None

    def show(
        self,
        history: History,
        night: Night,
        only: Collection[str] | None = None,
        *,
        as_json: bool,
    ) -> None:
        """Also as annotations and in the summary of a step, where there are such. ``only``: the
        cases of a shard. Raises NoPackage without Jinja, DiskError."""
        on_github = "GITHUB_STEP_SUMMARY" in os.environ or "GITHUB_ACTIONS" in os.environ
        if not (self.html or self.junit or on_github):
            return
        from harness.report.page.view import page_of

        self.write(page_of(history, night, only), as_json=as_json)

    def write(self, page: Page, *, as_json: bool) -> None:
        """As ``show`` does."""
        from harness.report.page.ci import summary, workflow_commands, write_junit
        from harness.report.summary import append_to_step_summary

        if self.html is not None:
            _write(self.html, page)
        if self.junit is not None:
            write_junit(self.junit, page)
        for line in workflow_commands(page, os.environ):
            tell_ci(line, err=as_json)
        append_to_step_summary(summary(page), os.environ)


def _write(file: Path, page: Page) -> None:
    try:
        from harness.report.page.render import write_page
    except ModuleNotFoundError as error:
        raise NoPackage("the page", error.name) from error
    write_page(file, page)


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
@click.option(
    "--junit", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help=_JUNIT
)
@history_option
@verb
def page(
    night: str | None, out: Path, junit: Path | None, url: str | None, as_json: bool
) -> tuple[Any, ExitCode]:
    """Write a night as one HTML page: what broke, since when, what changed, how to see it.

    NIGHT is an id (default: the newest). The page needs no network and no other file, so that it
    can be opened from a disk or kept as an artefact of CI. In GitHub Actions it is told in the
    step's summary and as annotations, too.

    \b
    Examples:
      hil nightly page
      hil nightly page 20260101-020000-1a2b3c -o night.html
    """
    with opened(url) as history:
        from harness.report.page.view import page_of

        view = page_of(history, known_night(history, night))
    Surfaces(out, junit).write(view, as_json=as_json)
    if not as_json:
        echo(f"{out}: {view.night.suite}, night {view.night.id}: {view.verdict}")
    return {
        "page": str(out),
        "night": view.night.id,
        "counts": {str(state): count for state, _, count in view.counts},
        "groups": [
            {"what": g.what, "why": g.why, "cases": [c.case for c in g.cases]} for g in view.groups
        ],
    }, ExitCode.PASSED
