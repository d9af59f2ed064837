"""Protects what a night says is new, and with which nights it is compared."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness.core.verdict import ExitCode
from harness.nightly.history.case_state import CaseState, Standing
from harness.nightly.history.compare import Comparison, compare
from harness.nightly.history.database import open_history
from harness.nightly.history.nights import Excluded, Night, Origin
from harness.nightly.history.store import History
from harness.report.history import print_night, summary_of

from .made import night, row
from .test_case_state import BEFORE, drifted

CASES = [
    "t/new",
    "t/still",
    "t/fixed",
    "t/passing",
    "t/quarantined",
    "t/infra",
    "t/skipped",
    "t/missing",
]


def test_each_case_stands_against_the_nights_before(tmp_path: Path) -> None:
    history = open_history(f"sqlite:///{tmp_path}/h.db")
    for day in (1, 2):
        history.begin(night(day, *CASES))
    bad_before = ("t/still", "t/fixed")
    history.append([row(1, "FAULT" if c in bad_before else "PASS", c) for c in CASES[:-1]])
    history.append([row(2, "INFRA", c) for c in CASES])  # says nothing of the product
    now = history.begin(night(3, *CASES))
    ends = {
        "t/new": "MISMATCH",
        "t/still": "FAULT",
        "t/fixed": "PASS",
        "t/passing": "PASS",
        "t/quarantined": "HANG",
        "t/infra": "INFRA",
        "t/skipped": "SKIPPED",
    }
    history.append(
        [
            row(3, verdict, case, quarantined="until …" if case == "t/quarantined" else "")
            for case, verdict in ends.items()
        ]
    )
    history.append([row(3, "INFRA", "t/infra", attempt=2)])
    found = compare(history, now).cases
    history.close()
    assert [(one.case, one.state) for one in found] == [
        ("t/new", CaseState.NEW),
        ("t/still", CaseState.STILL),
        ("t/fixed", CaseState.FIXED),
        ("t/passing", CaseState.PASSING),
        ("t/quarantined", CaseState.QUARANTINED),
        ("t/infra", CaseState.INFRA),
        ("t/skipped", CaseState.SKIPPED),
        ("t/missing", CaseState.MISSING),
    ]
    infra = next(one for one in found if one.state is CaseState.INFRA)
    assert [one.attempt for one in infra.tries] == [1, 2]
    assert infra.baseline is not None
    assert infra.baseline.night == "n1"


def test_the_baseline_is_of_an_earlier_night_of_the_suite(tmp_path: Path) -> None:
    """Not of another suite, nor of a later night; INFRA and SKIPPED say nothing."""
    history = open_history(f"sqlite:///{tmp_path}/h.db")
    for day, verdict in enumerate(("MISMATCH", "INFRA", "SKIPPED"), 1):
        history.begin(night(day, "t/a"))
        history.append([row(day, verdict, "t/a")])
    history.begin(night(4, "t/a", suite="a branch's"))
    now = history.begin(night(5, "t/a"))
    history.begin(night(6, "t/a"))
    history.append([row(day, case="t/a") for day in (4, 5, 6)])
    (found,) = compare(history, now).cases
    history.close()
    assert found.baseline is not None
    assert found.baseline.night == "n1"
    assert [one.night for one in found.earlier] == ["n1", "n2", "n3"]
    assert found.state is CaseState.FIXED


def test_a_night_tells_drift_before_all_else(tmp_path: Path) -> None:
    history = open_history(f"sqlite:///{tmp_path}/h.db")
    case = BEFORE.case
    history.begin(night(1, case))
    now = history.begin(night(2, case))
    history.append([BEFORE, drifted(verdict="MISMATCH")])
    found = compare(history, now)
    history.close()
    console = Console(file=StringIO(), width=200)
    print_night(console, found)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert shown.startswith("same model, other program (1)")
    assert shown.index("torch 2.13.0 -> 2.14.0") < shown.index("outputs_differ")
    (told,) = summary_of(found)["cases"]
    assert "quantize_per_tensor.out changed" in told["drift"]


@pytest.mark.parametrize(
    ("states", "code"),
    [
        ({"PASS": CaseState.PASSING}, ExitCode.PASSED),
        ({"MISMATCH": CaseState.NEW, "INFRA": CaseState.INFRA}, ExitCode.FAILED),
        ({"PASS": CaseState.PASSING, "INFRA": CaseState.INFRA}, ExitCode.INFRASTRUCTURE),
        ({"PASS": CaseState.PASSING, "FAULT": CaseState.QUARANTINED}, ExitCode.PASSED),
        ({"FAULT": CaseState.QUARANTINED}, ExitCode.PASSED),
        ({"PASS": CaseState.PASSING, "": CaseState.MISSING}, ExitCode.INFRASTRUCTURE),
        ({}, ExitCode.FAILED),
    ],
)
def test_the_exit_code_of_a_night(states: dict[str, CaseState], code: ExitCode) -> None:
    found = [
        Standing("t/m", (row(1, verdict, quarantined=quarantined),) if verdict else ())
        for verdict, state in states.items()
        for quarantined in ["until …" if state is CaseState.QUARANTINED else ""]
    ]
    assert [one.state for one in found] == list(states.values())
    assert Comparison(night(1), None, tuple(found)).code is code


def states(history: History, night: Night) -> dict[str, str]:
    return {case.case: str(case.state) for case in compare(history, night).cases}


def test_only_nights_of_the_suite_and_the_branch_count(history: History) -> None:
    """What another branch or another suite found is neither old nor fixed here."""
    other = Origin("topic", "c9")
    history.begin(night(1, "t/a"))
    history.append([row(1, case="t/a")])
    for day, more in ((2, {"origin": other}), (3, {"suite": "weekly"})):
        history.begin(night(day, "t/a", **more))
        history.append([row(day, "MISMATCH", "t/a", **more)])
    now = history.begin(night(4, "t/a"))
    history.append([row(4, "MISMATCH", "t/a")])
    (case,) = compare(history, now).cases
    assert (case.state, [r.night for r in case.earlier]) == (CaseState.NEW, ["n1"])
    assert case.since is not None
    assert case.since.first.night == "n4"


def test_a_branch_is_compared_with_the_night_that_it_started_from(history: History) -> None:
    """Not with what its base found later, nor with its own nights."""
    for day, verdict in ((1, "PASS"), (3, "FAULT")):
        history.begin(night(day, "t/a"))
        history.append([row(day, verdict, "t/a")])
    topic: dict[str, Any] = {"origin": Origin("topic", "c9", pull_request="12")}
    for day in (2, 4):
        now = history.begin(night(day, "t/a", base="n1", **topic))
        history.append([row(day, "FAULT", "t/a", **topic)])
    assert states(history, now) == {"t/a": "new"}
    assert compare(history, now).before == history.night("n1")
    lost = night(5, "t/a", base="n0", **topic)  # a history that does not have it
    assert compare(history, lost).before is None


def test_what_left_is_gone_and_a_failure_must_not_leave(history: History) -> None:
    names = ("t/ok", "t/bad", "t/excused", "t/out", "t/old")
    history.begin(night(1, *names))
    ends = {"t/ok": "PASS", "t/bad": "FAULT", "t/excused": "FAULT", "t/out": "FAULT"}
    quarantined = {"t/excused": "until …"}
    history.append(
        [row(1, v, c, quarantined=quarantined.get(c, "")) for c, v in ends.items()]
        + [row(1, "FAULT", "t/old", night="n1")]
    )
    now = history.begin(
        night(2, "t/new", renames={"t/new": "t/old"}, excluded=(Excluded("t/out", "slow"),))
    )
    history.append([row(2, "FAULT", "t/new")])
    assert states(history, now) == {
        "t/new": "still failing",
        "t/ok": "gone",
        "t/bad": "gone while it failed",
        "t/excused": "gone",
    }
    found = compare(history, now)
    assert found.verdict == "1 new failure (1 gone while it failed), 1 still failing"
    only_gone = Comparison(now, None, tuple(c for c in found.cases if c.case == "t/ok"))
    assert (found.code, only_gone.code) == (ExitCode.FAILED, ExitCode.PASSED)
    later = history.begin(night(3, "t/new"))  # told once; a rename holds on
    history.append([row(3, "FAULT", "t/new")])
    (case,) = compare(history, later).cases
    assert case.since is not None
    assert (case.state, case.since.first.night) == (CaseState.STILL, "n1")


def test_a_slowdown_of_what_passes_is_told(history: History) -> None:
    history.begin(night(1, "t/a", "t/b"))
    history.append([row(1, case=c, metrics={"ticks_set0": 1_300_000}) for c in ("t/a", "t/b")])
    now = history.begin(night(2, "t/a", "t/b"))
    history.append(
        [
            row(2, case=c, metrics={"ticks_set0": t})
            for c, t in (("t/a", 39_600_000), ("t/b", 1_301_000))
        ]
    )
    found = compare(history, now)
    said = "t/a: ticks_set0 1,300,000 -> 39,600,000 (+38,300,000, +2,946.2%)"
    assert found.verdict == f"no failures; {said}"
    console = Console(file=StringIO(), width=200)
    print_night(console, found)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert f"other figures (1)\n  {said}" in shown
