"""A night in the terminal: new failures first, with the command that reproduces each."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from harness.core.plain import plain
from harness.firmware.names import label
from harness.nightly.history.compare import Standing, State
from harness.nightly.history.model import Night, Row

_TOLD = (State.NEW, State.STILL, State.INFRA, State.MISSING, State.QUARANTINED, State.FIXED)
_STYLES = {
    State.NEW: "bold red",
    State.STILL: "red",
    State.INFRA: "magenta",
    State.MISSING: "magenta",
    State.QUARANTINED: "yellow",
    State.FIXED: "green",
}


def print_night(console: Console, night: Night, found: Sequence[Standing]) -> None:
    for state in _TOLD:
        group = [one for one in found if one.state is state]
        if group:
            console.print(Text(f"{state} ({len(group)})", _STYLES[state]))
            for one in group:
                _print_one(console, one)
    for left in night.excluded:
        console.print(Text(f"left out: {plain(left.case)}: {plain(left.reason)}"), soft_wrap=True)
    passed = sum(one.row is not None and one.row.good for one in found)
    said = f"{passed} of {len(found)} passed; night {plain(night.id)} of {plain(night.suite)}"
    console.print(Text(said, "green" if passed == len(found) else "red"), soft_wrap=True)


def _print_one(console: Console, one: Standing) -> None:
    row = one.row
    if row is None:
        console.print(Text(f"  {plain(one.case)}"), soft_wrap=True)
        return
    whose = f"  [{row.owner}]" if row.owner else ""
    tries = f" ({len(one.tries)} tries)" if len(one.tries) > 1 else ""
    what = f"{row.verdict_text or row.verdict}{tries}"
    console.print(Text(plain(f"  {one.case}: {what}{whose}")), soft_wrap=True)
    if one.state is State.FIXED or row.cause is None:
        return
    line = f" (console line {row.cause.line})" if row.cause.line else ""
    console.print(Text(plain(f"    {row.cause.kind}{line}: {row.cause.text}")), soft_wrap=True)
    if row.quarantined:
        console.print(Text(plain(f"    in quarantine {row.quarantined}")), soft_wrap=True)
    console.print(Text(plain(f"    {reproducing(row)}")), soft_wrap=True)


def reproducing(row: Row) -> str:
    """The command that runs the case once more, for a shell."""
    words = ["hil", "run", row.target, row.model]
    if label(row.source):
        words += ["--firmware", row.source]
    return shlex.join(words)


def summary_of(night: Night, found: Sequence[Standing]) -> dict[str, Any]:
    """What ``--json`` shows of a night."""
    return {
        "night": night.id,
        "suite": night.suite,
        "began": night.began,
        "counts": dict(Counter(str(one.state) for one in found)),
        "excluded": [vars(one) for one in night.excluded],
        "cases": [_summary(one) for one in found],
    }


def _summary(one: Standing) -> dict[str, Any]:
    row = one.row
    if row is None:
        return {"case": one.case, "state": one.state, "verdict": None}
    return {
        "case": one.case,
        "state": one.state,
        "verdict": row.verdict,
        "cause": None if row.cause is None else vars(row.cause),
        "tries": [{"verdict": t.verdict, "time": t.time} for t in one.tries],
        "seconds": row.seconds,
        "metrics": row.metrics,
        "identity": vars(row.identity),
        "owner": row.owner,
        "quarantined": row.quarantined,
        "command": reproducing(row),
        "run_dir": row.run_dir,
    }
