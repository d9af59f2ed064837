"""``--history``, and what a group of verbs does with a word that is none of its verbs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from harness.errors import ToolMissing

if TYPE_CHECKING:
    from harness.history.store import Database

history_option = click.option(
    "--history",
    "url",
    metavar="URL",
    help="The history's database, as sqlite:///FILE or postgresql://USER@HOST/NAME (default: "
    "$HIL_HISTORY, or history.db in the state directory).",
)


class NoPackage(ToolMissing):
    """``tool``: the package that is not there, and that ``asked`` needs."""

    kind = "no_package"

    def __init__(self, asked: str, missing: str | None) -> None:
        super().__init__(
            f"{asked} needs the Python package {missing}, which is not installed",
            tool=missing,
            hint="pip install 'executorch-hil[nightly]'",
        )


@contextmanager
def opened(url: str | None) -> Iterator[Database]:
    """The history, with what waited for it. Raises what ``open_history`` does."""
    try:
        from harness.history.database import open_history
    except ModuleNotFoundError as error:
        raise NoPackage("the history", error.name) from error
    from harness.nightly.spool import Spool

    database = open_history(url)
    try:
        Spool(database.url).deliver(database)
        yield database
    finally:
        database.close()


class DefaultGroup(click.Group):
    """A group whose verb ``default`` is meant where no other is named."""

    default: str

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = [self.default, *args]
        return super().parse_args(ctx, args)
