"""A replay as text, for a person at a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from harness.report.terminal import print_records, verdict_text
from harness.run.replay import Replay

_MOST = 12


def print_replay(console: Console, replay: Replay) -> None:
    print_records(console, [replay.here])
    there, here = replay.versions
    console.print(
        Text.assemble("in the bundle: ", verdict_text(replay.there), f" on version {there}"),
        soft_wrap=True,
    )
    if there != here:
        console.print(Text(f"here: version {here}", style="yellow"), soft_wrap=True)
    if replay.same:
        console.print("the same: verdict, cause, outputs and figures", style="green")
        return
    if not replay.same_verdict:
        console.print("another verdict or cause", style="red")
    if replay.outputs:
        console.print(Text(f"other outputs: {', '.join(replay.outputs[:_MOST])}", style="red"))
    for name, (then, now) in list(replay.metrics.items())[:_MOST]:
        console.print(
            Text(f"other figure: {name} was {_number(then)}, is {_number(now)}", style="red")
        )


def _number(value: int | None) -> str:
    return "not measured" if value is None else str(value)
