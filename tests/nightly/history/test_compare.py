"""Protects what a night says is new, since when a case fails, and what is flaky."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness.core.verdict import ExitCode
from harness.nightly.history.compare import (
    State,
    code_of,
    drift_of,
    first_bad,
    flaky,
    standings,
)
from harness.nightly.history.database import open_history
from harness.nightly.history.model import Row
from harness.report.history import print_night, summary_of

from .made import KNOWN, night, row

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
    found = standings(history, now)
    history.close()
    assert [(one.case, one.state) for one in found] == [
        ("t/new", State.NEW),
        ("t/still", State.STILL),
        ("t/fixed", State.FIXED),
        ("t/passing", State.PASSING),
        ("t/quarantined", State.QUARANTINED),
        ("t/infra", State.INFRA),
        ("t/skipped", State.SKIPPED),
        ("t/missing", State.MISSING),
    ]
    infra = next(one for one in found if one.state is State.INFRA)
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
    (found,) = standings(history, now)
    history.close()
    assert found.baseline is not None
    assert found.baseline.night == "n1"
    assert [one.night for one in found.earlier] == ["n1", "n2", "n3"]
    assert found.state is State.FIXED


BEFORE = row(
    1,
    versions={"torch": "2.13.0", "executorch": "1.5.1"},
    outline=("cortex_m::quantize_per_tensor.out 11111111", "aten::add.out 22222222"),
    model_source="m1",
)


def drifted(**more: Any) -> Row:
    """The night after, with another program."""
    told = {
        "versions": {"torch": "2.14.0", "executorch": "1.5.1"},
        "outline": ("cortex_m::quantize_per_tensor.out 33333333", "aten::add.out 22222222"),
        "model_source": "m1",
        "identity": replace(KNOWN, program="p2"),
        **more,
    }
    return row(2, **told)


def test_drift_of_the_exporter_names_versions_and_operators() -> None:
    """A case that passes, too: nothing else of it may look different."""
    assert str(drift_of(BEFORE, drifted())) == (
        "same model, other program: torch 2.13.0 -> 2.14.0; "
        "what changed: cortex_m::quantize_per_tensor.out changed"
    )
    same = str(drift_of(BEFORE, drifted(versions=BEFORE.versions)))
    assert "same model, other program: with the same exporter" in same
    unknown = str(drift_of(BEFORE, drifted(outline=())))
    assert "not known, its operators were not kept" in unknown


@pytest.mark.parametrize(
    "later",
    [
        drifted(identity=KNOWN),
        drifted(model_source="m2"),
        drifted(model_source=""),
        drifted(identity=replace(KNOWN, program="")),
        None,
    ],
    ids=["same program", "edited model", "unknown model", "not exported", "missing"],
)
def test_what_is_no_drift(later: Row | None) -> None:
    assert drift_of(BEFORE, later) is None
    assert drift_of(None, later) is None


def test_a_night_tells_drift_before_all_else(tmp_path: Path) -> None:
    history = open_history(f"sqlite:///{tmp_path}/h.db")
    case = BEFORE.case
    history.begin(night(1, case))
    now = history.begin(night(2, case))
    history.append([BEFORE, drifted(verdict="MISMATCH")])
    found = standings(history, now)
    history.close()
    console = Console(file=StringIO(), width=200)
    print_night(console, now, found)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert shown.startswith("same model, other program (1)")
    assert shown.index("torch 2.13.0 -> 2.14.0") < shown.index("outputs_differ")
    (told,) = summary_of(now, found)["cases"]
    assert "quantize_per_tensor.out changed" in told["drift"]


@pytest.mark.parametrize(
    ("states", "code"),
    [
        ({"PASS": State.PASSING}, ExitCode.PASSED),
        ({"MISMATCH": State.NEW, "INFRA": State.INFRA}, ExitCode.FAILED),
        ({"PASS": State.PASSING, "INFRA": State.INFRA}, ExitCode.INFRASTRUCTURE),
        ({"PASS": State.PASSING, "FAULT": State.QUARANTINED}, ExitCode.PASSED),
        ({"FAULT": State.QUARANTINED}, ExitCode.PASSED),
        ({"PASS": State.PASSING, "": State.MISSING}, ExitCode.INFRASTRUCTURE),
        ({}, ExitCode.FAILED),
    ],
)
def test_the_exit_code_of_a_night(states: dict[str, State], code: ExitCode) -> None:
    from harness.nightly.history.compare import Standing

    found = [
        Standing("t/m", (row(1, verdict, quarantined=quarantined),) if verdict else ())
        for verdict, state in states.items()
        for quarantined in ["until …" if state is State.QUARANTINED else ""]
    ]
    assert [one.state for one in found] == list(states.values())
    assert code_of(found) is code


def runs(*ends: str | Row) -> list[Row]:
    return [one if isinstance(one, Row) else row(day, one) for day, one in enumerate(ends, 1)]


def test_the_first_bad_run_the_last_good_one_and_what_changed_between() -> None:
    broken = replace(KNOWN, sources="s2", firmware="f2", host="farm")
    found = first_bad(
        runs(
            "PASS",
            "FAULT",
            "PASS",
            "INFRA",
            row(5, "MISMATCH", identity=broken, metrics={"pte_bytes": 2100}),
            "MISMATCH",
            "INFRA",
        ),
    )
    assert found is not None
    assert (found.last_good and found.last_good.night, found.first.night) == ("n3", "n5")
    assert (found.bad_runs, found.unsure, found.fixed) == (2, 1, None)
    assert [one.what for one in found.differences] == ["sources", "firmware", "host"]
    assert found.figures == {"pte_bytes": (2000, 2100)}


def test_a_case_that_passes_again_says_when() -> None:
    found = first_bad(runs("PASS", "FAULT", "PASS", "PASS"))
    assert found is not None
    assert found.fixed is not None
    assert (found.first.night, found.fixed.night) == ("n2", "n3")


def test_infrastructure_alone_is_no_regression() -> None:
    assert first_bad(runs("PASS", "INFRA", "INFRA")) is None
    assert first_bad(runs("PASS", row(2, "INFRA"), row(2, "PASS", attempt=2))) is None


def test_a_case_that_never_passed_has_no_good_run() -> None:
    found = first_bad(runs("FAULT", "FAULT"))
    assert found is not None
    assert found.last_good is None
    assert found.differences == ()


def test_flaky_is_what_ends_otherwise_with_the_same() -> None:
    other = replace(KNOWN, host="farm", harness="h2")
    changed = replace(KNOWN, sources="s2", firmware="f2")
    rows = [
        row(1, case="t/flaky"),
        row(2, "MISMATCH", "t/flaky", identity=other),
        row(1, case="t/broken"),
        row(2, "MISMATCH", "t/broken", identity=changed),
        row(1, "INFRA", "t/infra"),
        row(1, case="t/infra", attempt=2),
        row(1, "INFRA", "t/killed"),
        row(1, "INFRA", "t/killed", attempt=2),
        row(2, "PASS", "t/killed"),
        row(1, case="t/outputs", output="aa"),
        row(2, case="t/outputs", output="bb"),
        row(1, "BUILD_ERROR", "t/unbuilt", identity=replace(KNOWN, firmware="")),
        row(2, "PASS", "t/unbuilt", identity=replace(KNOWN, firmware="")),
    ]
    found = {one.case: one for one in flaky(rows)}
    assert sorted(found) == ["t/flaky", "t/infra", "t/outputs"]
    assert found["t/flaky"].verdicts == {"PASS": 1, "MISMATCH": 1}
    assert found["t/infra"].rescued == 1
    assert found["t/outputs"].outputs == 2


def test_the_flakiest_comes_first() -> None:
    def many(case: str, bad: int) -> Sequence[Any]:
        return [row(d, "FAULT" if d <= bad else "PASS", case) for d in range(1, 11)]

    assert [one.case for one in flaky([*many("t/a", 1), *many("t/b", 4)])] == ["t/b", "t/a"]
