"""``--history``, the night that is meant, and a group of verbs with a default verb."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from harness.core.errors import ToolMissing, Unknown, UsageError

if TYPE_CHECKING:
    from harness.nightly.history.model import Night
    from harness.nightly.history.store import History

history_option = click.option(
    "--history",
    "url",
    metavar="URL",
    help="The history's database, as sqlite:///FILE or postgresql://USER@HOST/NAME (default: "
    "$HIL_HISTORY, or history.db in the state directory).",
)


class NoPackage(ToolMissing):
    """``tool``: the missing package, which ``user`` needs."""

    kind = "no_package"

    def __init__(self, user: str, missing: str | None) -> None:
        super().__init__(
            f"{user} needs the Python package {missing}, which is not installed",
            tool=missing,
            hint="pip install 'executorch-hil[nightly]'",
        )


@contextmanager
def opened(url: str | None) -> Iterator[History]:
    """The history, after delivering what waited for it. Raises what ``open_history`` does."""
    try:
        from harness.nightly.history.database import open_history
    except ModuleNotFoundError as error:
        raise NoPackage("the history", error.name) from error
    from harness.nightly.outbox import Outbox

    history = open_history(url)
    try:
        Outbox(history.url).deliver(history)
        yield history
    finally:
        history.close()


def known_night(history: History, id: str | None) -> Night:
    """The one of that id, or the newest. Raises UsageError for a history without nights, Unknown
    for an id of none."""
    newest = history.nights(most=20)
    if not newest:
        raise UsageError("the history has no night", hint="`hil nightly` runs one")
    chosen = newest[0] if id is None else history.night(id)
    if chosen is None:
        raise Unknown(
            f"the history has no night {id}",
            str(id),
            [night.id for night in newest],
            listing="the last ones: ",
        )
    return chosen


class DefaultGroup(click.Group):
    """A group whose verb ``default`` runs if no other is named."""

    default: str

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = [self.default, *args]
        return super().parse_args(ctx, args)
