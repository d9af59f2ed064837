"""Terminal, page, message, issues and exit code of a night agree on what is new, in each of twelve
nights on two branches, with a quarantine, its end, and a shard without a case. Message and issues
go to servers of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness.core.judgement import Cause
from harness.core.verdict import ExitCode
from harness.nightly.history.compare import Comparison, compare
from harness.nightly.history.database import open_history
from harness.nightly.history.nights import Origin, Planned
from harness.nightly.history.store import History
from harness.nightly.suite import FollowUp
from harness.report.history import print_night, summary_of
from harness.report.notify import announce
from harness.report.page.render import render, summary
from tests.nightly.history.made import MAIN, TARGET, night, row

from .services import GitHub, Service, running

TOPIC = Origin("topic", "c9")
OTHER = Cause("outputs_differ", "output 1 has another shape", 7)
CHANGED, QUARANTINED = "another cause", "MISMATCH in quarantine"


@dataclass(frozen=True)
class Told:
    """``new`` and ``still``: failures; ``opened``: issues of this night; ``open``: afterwards."""

    cases: str  # of a, b, c
    verdict: str
    code: ExitCode
    new: int = 0
    still: int = 0
    opened: int = 0
    open: int = 0
    topic: bool = False


FAILED, PASSED, INFRA = ExitCode.FAILED, ExitCode.PASSED, ExitCode.INFRASTRUCTURE
ENDS = "; the quarantine of {c} ends today"
NIGHTS = (
    Told("PPP", "no failures", PASSED),
    Told("FPP", "1 new failure", FAILED, new=1, opened=1, open=1),
    Told("FPQ", "no new failures, 1 still failing, 1 in quarantine", FAILED, still=1, open=1),
    # The branch: what main has, and one failure of its own.
    Told(
        "FFP",
        "1 new failure, 1 still failing",
        FAILED,
        new=1,
        still=1,
        opened=1,
        open=2,
        topic=True,
    ),
    Told("FFP", "1 new failure, 1 still failing", FAILED, new=1, still=1, open=2, topic=True),
    Told("PPQ", "no failures that count, 1 in quarantine", PASSED, open=1),
    Told("PPQ", "no failures that count, 1 in quarantine" + ENDS, PASSED, open=1),
    # The quarantine is over: the failure counts for the first time.
    Told("PPF", "1 new failure", FAILED, new=1, opened=1, open=2),
    Told("PPO", "1 new failure (1 changed)", FAILED, new=1, opened=1, open=3),
    Told("FPP", "no new failures, 1 still failing", FAILED, still=1, open=2, topic=True),
    Told("PIO", "no new failures, 1 still failing; of 1 nothing is known", FAILED, still=1, open=2),
    Told("PIP", "no failures; of 1 nothing is known", INFRA),
)


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    history = open_history(f"sqlite:///{tmp_path}/h.db")
    yield history
    history.close()


def kept(history: History, day: int, told: Told) -> Comparison:
    names = [f"{TARGET}/{name}" for name in "abc"]
    more: dict[str, Any] = {"origin": TOPIC, "base": "n2"} if told.topic else {"origin": MAIN}
    made = night(day, **more)
    kinds = {
        "P": "PASS",
        "F": "MISMATCH",
        "O": CHANGED,
        "I": "INFRA",
        "Q": QUARANTINED,
    }
    plan, rows = [], []
    for name, letter in zip(names, told.cases, strict=True):
        kind = kinds[letter]
        why = "until 2026-03-07: bug 7" if kind is QUARANTINED else ""
        plan.append(Planned(name, quarantined=why, last_day="2026-03-07" if why else ""))
        verdict = "MISMATCH" if kind in (CHANGED, QUARANTINED) else kind
        cause = {"cause": OTHER} if kind is CHANGED else {}
        tries = (1, 2) if kind == "INFRA" else (1,)
        rows += [
            row(day, verdict, name, quarantined=why, attempt=n, origin=made.origin, **cause)
            for n in tries
        ]
    made = replace(made, plan=tuple(plan))
    history.begin(made)
    history.append(rows)
    return compare(history, made)


def test_all_who_tell_of_a_night_agree(history: History) -> None:
    with running(GitHub()) as github, running(Service()) as chat:
        assert isinstance(github, GitHub)
        environ = {
            "GITHUB_TOKEN": "secret",
            "GITHUB_REPOSITORY": "o/r",
            "GITHUB_API_URL": github.url,
        }
        follow_up = FollowUp(notify=(f"json://127.0.0.1:{chat.port}/hil",), issues=True)
        for day, told in enumerate(NIGHTS, 1):
            comparison = kept(history, day, told)
            (line,) = announce(comparison, follow_up, environ)
            verdict = told.verdict.replace("{c}", f"{TARGET}/c")
            # the terminal
            console = Console(file=StringIO(), width=300)
            print_night(console, comparison)
            last = console.file.getvalue().splitlines()[-1]  # type: ignore[attr-defined]
            assert last == f"suite, night n{day}: {verdict}"
            # page, step summary, JSON
            assert f"<title>suite: {verdict}</title>" in render(comparison)
            assert summary(comparison).startswith(f"## suite: {verdict}")
            assert summary_of(comparison)["verdict"] == verdict
            # the message
            body = chat.received[-1][2]
            assert body["title"] == f"suite: {verdict}"
            lines = body["message"].splitlines()
            new = sum(said.startswith(("new: ", "changed: ")) for said in lines)
            assert new == told.new == len(comparison.new)
            assert any(said.startswith("still failing: ") for said in lines) == bool(told.still)
            quarantined = any(said.startswith("quarantined: ") for said in lines)
            assert quarantined == ("Q" in told.cases)
            # issues
            assert f"{told.opened} opened" in line, (day, line)
            assert sum(issue["state"] == "open" for issue in github.issues) == told.open, day
            # the exit code
            assert comparison.code is told.code, day
            failures = render(comparison, "night.xml").partition('failures="')[2]
            assert int(failures.partition('"')[0]) == told.new + told.still
    assert len(chat.received) == len(NIGHTS) == 12


def test_a_shard_without_a_case_is_no_failure(history: History) -> None:
    """--shard 3/3 of two cases."""
    kept(history, 1, NIGHTS[0])
    made = history.night("n1")
    assert made is not None
    comparison = compare(history, made, only=())
    assert (comparison.verdict, comparison.code) == ("no case is of this shard", PASSED)
    console = Console(file=StringIO(), width=200)
    print_night(console, comparison)
    assert "0 of 0" not in console.file.getvalue()  # type: ignore[attr-defined]


def test_a_night_without_a_case_is_not_green(history: History) -> None:
    made = history.begin(night(1))
    comparison = compare(history, made)
    assert (comparison.verdict, comparison.code) == ("no case was planned", FAILED)
