"""What came of a replay, for a person at a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from harness.bundle.replay import Replay
from harness.report.terminal import print_records, verdict_text

_MOST = 12


def print_replay(console: Console, found: Replay) -> None:
    print_records(console, [found.here])
    there, here = found.versions
    console.print(
        Text.assemble("in the bundle: ", verdict_text(found.there), f" on version {there}"),
        soft_wrap=True,
    )
    if there != here:
        console.print(Text(f"here: version {here}", style="yellow"), soft_wrap=True)
    if found.same:
        console.print("the same: verdict, cause, outputs and figures", style="green")
        return
    if not found.same_verdict:
        console.print("another verdict or cause", style="red")
    if found.outputs:
        console.print(Text(f"other outputs: {', '.join(found.outputs[:_MOST])}", style="red"))
    for name, (then, now) in list(found.metrics.items())[:_MOST]:
        console.print(Text(f"other figure: {name} was {_told(then)}, is {_told(now)}", style="red"))


def _told(value: int | None) -> str:
    return "not measured" if value is None else str(value)
