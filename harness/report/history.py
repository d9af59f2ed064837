"""Nights in the terminal: a night with new failures first; a case's trend, since when it fails and
what changed; what is flaky.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console

from harness.firmware.source import label
from harness.nightly.history.compare import FirstBad, Flaky, Standing, State
from harness.nightly.history.model import Difference, Night, Row
from harness.report.console import say

_COLUMNS = ("time", "verdict", "cause", "bytes", "ticks", "seconds", "night")
_LINE = "{:16}  {:12} {:18} {:>11} {:>13} {:>8}  {}"
_BARS = "▁▂▃▄▅▆▇█"
_TRENDS = (("pte_bytes", "bytes of the .pte"), ("ticks_set0", "ticks of the first input set"))
_MOST_FIGURES = 6
_SHOWN = 12  # characters of a digest
_DIGEST = re.compile(r"\b[0-9a-f]{16,64}\b")
_COMMIT = re.compile(r"[0-9a-f]{40}")


def print_case(console: Console, case: str, rows: Sequence[Row], failure: FirstBad | None) -> None:
    """Its runs, the trend of its figures, and since when it fails or when it last did."""
    say(console, case, "bold")
    say(console, _LINE.format(*_COLUMNS), "dim")
    for row in rows:
        cells = (
            row.time[:16].replace("T", " "),
            str(row.verdict),
            "" if row.cause is None else row.cause.kind,
            _number(row.metrics.get("pte_bytes")),
            _number(row.metrics.get("ticks_set0")),
            f"{row.seconds['total']:.1f}" if "total" in row.seconds else "",
            row.night,
        )
        say(console, _LINE.format(*cells), row.verdict.style)
    for name, title in _TRENDS:
        _print_trend(console, title, [r.metrics[name] for r in rows if name in r.metrics])
    _print_trend(console, "seconds", [r.seconds["total"] for r in rows if "total" in r.seconds])
    if failure is not None:
        console.print()
        _print_first_bad(console, failure)


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _print_trend(console: Console, title: str, values: Sequence[float]) -> None:
    if len(values) > 1:
        say(console, f"{bars(values)}  {title}: {values[0]:,g} to {values[-1]:,g}")


def bars(values: Sequence[float]) -> str:
    """A character for each value, from the least to the most of them."""
    least, most = min(values), max(values)
    if least == most:
        return _BARS[0] * len(values)
    steps = len(_BARS) - 1
    return "".join(_BARS[round((value - least) / (most - least) * steps)] for value in values)


def _print_first_bad(console: Console, failure: FirstBad) -> None:
    first, good = failure.first, failure.last_good
    say(console, f"first bad  {_when(first)}  {first.verdict}", "red")
    if first.cause is not None:
        say(console, f"           {first.cause.kind}: {first.cause.text}")
    if good is None:
        say(console, "last good  none: it never passed before")
    else:
        say(console, f"last good  {_when(good)}", "green")
    if failure.unsure:
        between = "runs between them that say nothing of the product"
        say(console, f"           {between}: {failure.unsure}")
    if failure.fixed is not None:
        say(console, f"fixed      {_when(failure.fixed)}", "green")
    say(console, f"{failure.bad_runs} bad in a row")
    if good is not None:
        _print_differences(console, failure)


def _print_differences(console: Console, failure: FirstBad) -> None:
    differences = in_order(failure.differences)
    if not differences:
        say(console, "nothing that the history knows of differs: look whether it is flaky")
    for difference in differences:
        after = shown(difference.after) or "(did not get so far)"
        say(console, f"  {name_of(difference)}: {shown(difference.before)} -> {after}")
    for name, (then, now) in list(failure.figures.items())[:_MOST_FIGURES]:
        say(console, f"  {name}: {then:,} -> {now:,} ({now - then:+,})")
    if command := next_step(failure):
        say(console, f"next: {command}")


def shown(value: str) -> str:
    """A digest by its beginning, all else as it is."""
    return _DIGEST.sub(lambda digest: digest[0][:_SHOWN], value)


def next_step(failure: FirstBad) -> str | None:
    """The command that looks further, when commits of a checkout are known."""
    by_name = {each.what: each for each in failure.differences}
    sources = by_name.get("sources")
    if sources is None or not all(map(_COMMIT.fullmatch, (sources.before, sources.after))):
        return None
    ends = f"--good {sources.before[:12]} --bad {sources.after[:12]}"
    return f"hil bisect {failure.first.target} {failure.first.model} {ends}"


def first_bad_summary(failure: FirstBad) -> dict[str, Any]:
    """What ``--json`` shows."""
    return {
        "case": failure.case,
        "first_bad": failure.first.to_fields(),
        "last_good": None if failure.last_good is None else failure.last_good.to_fields(),
        "fixed": None if failure.fixed is None else failure.fixed.to_fields(),
        "bad_runs": failure.bad_runs,
        "unsure": failure.unsure,
        "differences": [vars(each) for each in in_order(failure.differences)],
        "figures": {name: list(pair) for name, pair in failure.figures.items()},
        "next": next_step(failure),
    }


def _when(row: Row) -> str:
    return f"{row.time[:16].replace('T', ' ')}  night {row.night}"


def print_flaky(console: Console, cases: Sequence[Flaky]) -> None:
    if not cases:
        say(console, "none: equal runs ended alike", "green")
    for case in cases:
        verdicts = ", ".join(f"{number} {name}" for name, number in case.verdicts.items())
        outputs = f"; {case.outputs} different outputs" if case.outputs > 1 else ""
        say(console, f"{case.case}: {verdicts} of {case.runs} equal runs{outputs}")


# In the order in which they are shown.
_STYLES = {
    State.NEW: "bold red",
    State.STILL: "red",
    State.INFRA: "magenta",
    State.MISSING: "magenta",
    State.QUARANTINED: "yellow",
    State.FIXED: "green",
}


def print_night(console: Console, night: Night, found: Sequence[Standing]) -> None:
    drifted = [(one.case, drift) for one in found if (drift := one.drift) is not None]
    if drifted:
        say(console, f"same model, other program ({len(drifted)})", "yellow")
        for case, drift in drifted:
            say(console, f"  {case}: {drift}")
    for state, style in _STYLES.items():
        group = [one for one in found if one.state is state]
        if group:
            say(console, f"{state} ({len(group)})", style)
            for one in group:
                _print_one(console, one)
    for left in night.excluded:
        say(console, f"left out: {left.case}: {left.reason}")
    passed = sum(one.row is not None and one.row.good for one in found)
    text = f"{passed} of {len(found)} passed; night {night.id} of {night.suite}"
    say(console, text, "green" if passed == len(found) else "red")


def _print_one(console: Console, one: Standing) -> None:
    row = one.row
    if row is None:
        say(console, f"  {one.case}")
        return
    whose = f"  [{row.owner}]" if row.owner else ""
    tries = f" ({len(one.tries)} tries)" if len(one.tries) > 1 else ""
    say(console, f"  {one.case}: {row.verdict_text or row.verdict}{tries}{whose}")
    if one.state is State.FIXED or row.cause is None:
        return
    line = f" (console line {row.cause.line})" if row.cause.line else ""
    say(console, f"    {row.cause.kind}{line}: {row.cause.text}")
    if row.quarantined:
        say(console, f"    in quarantine {row.quarantined}")
    say(console, f"    {reproducing(row)}")


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
        "drift": None if one.drift is None else str(one.drift),
        "tries": [{"verdict": t.verdict, "time": t.time} for t in one.tries],
        "seconds": row.seconds,
        "metrics": row.metrics,
        "identity": vars(row.identity),
        "owner": row.owner,
        "quarantined": row.quarantined,
        "command": reproducing(row),
        "run_dir": row.run_dir,
    }


# In the order in which they are shown.
_NAMES = {
    "target": "target file",
    "exporter": "exporter",
    "sources": "firmware sources",
    "toolchain": "toolchain",
    "simulator": "simulator",
    "reference": "reference and budgets",
    "program": "program (.pte)",
    "firmware": "firmware (ELF)",
    "harness": "harness",
    "host": "host",
}


def name_of(one: Difference) -> str:
    return _NAMES[one.what]


def in_order(several: Iterable[Difference]) -> list[Difference]:
    return sorted(several, key=lambda one: list(_NAMES).index(one.what))
