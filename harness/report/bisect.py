"""A bisection as text, for a person at a terminal."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.text import Text

from harness.core.plain import plain
from harness.core.words import counted
from harness.report.terminal import verdict_text
from harness.run.bisect import Bisection, Mark, Trial

_STYLES = {Mark.GOOD: "green", Mark.BAD: "bold red", Mark.SKIP: "yellow"}
_MOST_CANDIDATES = 20


def print_bisection(console: Console, bisection: Bisection) -> None:
    """Every revision that was run, then the first bad one."""

    def say(*parts: str | Text | tuple[str, str]) -> None:
        console.print(Text.assemble(*parts), soft_wrap=True)

    for trial in bisection.trials:
        say((f"{trial.mark:5}", _STYLES[trial.mark]), f" {trial.commit}  ", _verdict(trial))
    counts = Counter(trial.mark for trial in bisection.trials)
    say(
        f"{counted(len(bisection.trials), 'revision')} run: "
        + ", ".join(f"{counts[mark]} {mark}" for mark in Mark if counts[mark])
    )
    say()
    if bisection.first_bad is None:
        say(
            ("not decided: ", "yellow"),
            "skipped revisions hide the first bad "
            f"commit; it is one of these {len(bisection.candidates)}:",
        )
        for commit in bisection.candidates[:_MOST_CANDIDATES]:
            say(f"  {commit}")
        if (more := len(bisection.candidates) - _MOST_CANDIDATES) > 0:
            say(f"  ... and {more} more (--json lists all)")
    else:
        _print_first_bad(console, bisection.first_bad, bisection.command)
    for note in bisection.notes:
        say((f"note: {note}", "dim"))


def _print_first_bad(console: Console, trial: Trial, command: str) -> None:
    commit, record = trial.commit, trial.record
    lines = [
        Text.assemble((commit.sha, "bold"), " is the first bad commit"),
        Text(f"  {commit.date}  {commit.author}"),
        Text(f"  {commit.subject}"),
        Text.assemble("  ", _verdict(trial)),
    ]
    if record.cause is not None:
        lines.append(Text(f"  {plain(record.cause.text)}"))
    if record.run_dir:
        lines.append(Text(f"  evidence: {record.run_dir}"))
    lines.append(Text(f"  reproduce: {command}"))
    for line in lines:
        console.print(line, soft_wrap=True)


def _verdict(trial: Trial) -> Text:
    kind = "" if trial.record.cause is None else f" {trial.record.cause.kind}"
    return Text.assemble(verdict_text(trial.record), kind)
