"""Protects since when a case fails of which cause, what changed, and that a program drifted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.core.judgement import Cause
from harness.nightly.history.case_state import Standing, changes, deltas_of, drift_of, first_bad
from harness.nightly.history.nights import Identity, InputDifference, Row

from .made import KNOWN, row


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
    assert [str(d) for d in deltas_of(found.last_good, found.first)] == [
        "pte_bytes 2,000 -> 2,100 (+100, +5.0%)"
    ]


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
    assert found.differences == []


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
    assert drift_of(BEFORE, drifted()) == (
        "same model, other program: torch 2.13.0 -> 2.14.0; "
        "what changed: cortex_m::quantize_per_tensor.out changed"
    )
    same = drift_of(BEFORE, drifted(versions=BEFORE.versions))
    assert "same model, other program: with the same exporter" in same
    unknown = drift_of(BEFORE, drifted(outline=()))
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
    assert drift_of(BEFORE, later) == ""
    assert drift_of(None, later) == ""


def test_changes_are_what_both_know() -> None:
    """A run that ended early knows little, and what it does not know has not changed."""
    later = replace(KNOWN, sources="s2", toolchain="", host="farm")
    assert changes([row(1)], row(2, identity=later)) == [
        InputDifference("sources", "s1", "s2"),
        InputDifference("host", "desk (x86_64)", "farm"),
    ]
    assert changes([row(1, identity=Identity())], row(2)) == []
    early = row(2, "NO_VERDICT", identity=Identity(target="malformed 00ff"))
    assert [each.what for each in changes([row(1)], early)] == ["target"]
    assert changes([row(1), early], row(3)) == []
    torch = row(3, versions={"torch": "2.14"}, identity=replace(KNOWN, target="t2", program="p2"))
    told = changes([row(1, versions={"torch": "2.13"}), early], torch)
    assert [each.name for each in told] == ["target file", "torch", "program (.pte)"]


def failing(day: int, verdict: str, text: str, **more: Any) -> Row:
    return row(day, verdict, cause=Cause("k", text), **more)


def test_a_regression_is_a_case_and_a_cause() -> None:
    """Of two bad nights that ended differently the second is dated by itself, and what changed is
    what changed between them."""
    typo = failing(2, "NO_VERDICT", "my-board.yaml:7: unknown key", identity=Identity())
    torch = failing(3, "EXPORT_ERROR", "no kernel", identity=replace(KNOWN, exporter="wheel 1.6"))
    rows = [row(1), typo, torch, replace(torch, night="n4")]
    found = first_bad(rows)
    assert found is not None
    assert (found.first.night, found.bad_runs) == ("n3", 2)
    assert found.last_good is rows[0]
    assert [each.what for each in found.differences] == ["exporter"]
    typos = first_bad(rows, "unknown key")
    assert typos is not None
    assert (typos.first.night, typos.bad_runs, typos.differences) == ("n2", 1, [])
    assert first_bad(rows, "EXPORT_ERROR k") == found
    assert first_bad(rows, "HANG") is None


def test_another_failure_between_does_not_hide_the_first() -> None:
    again = [failing(day, "MISMATCH", "off by 3") for day in (2, 4)]
    found = first_bad([row(1), again[0], failing(3, "NO_VERDICT", "typo"), again[1]])
    assert found is not None
    assert (found.first.night, found.bad_runs) == ("n2", 2)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("off by 3 LSB", "off by 1,204 LSB", True),
        ("fault at 0x2000fa10", "fault at 0x31000000", True),
        ("/tmp/a/b/board.yaml:7: wrong", "/work/c/board.yaml:9: wrong", True),
        ("program 0123456789abcdef", "program fedcba9876543210", True),
        ("atol 1e-05", "atol -2.5e-7", True),
        ("missing aten::relu.out", "missing aten::mean.out", False),
        ("my/board.yaml is wrong", "my/other.yaml is wrong", False),
    ],
)
def test_numbers_addresses_and_folders_make_no_other_cause(
    one: str, other: str, same: bool
) -> None:
    assert (failing(1, "FAULT", one).fault == failing(2, "FAULT", other).fault) is same
    assert failing(1, "FAULT", one).fault != failing(1, "HANG", one).fault


def test_a_failure_that_equal_runs_do_not_have_is_flaky() -> None:
    """INFRA says nothing; with another firmware it is no equal run."""
    other = replace(KNOWN, firmware="f2")
    earlier = (row(1), row(2, identity=other), row(3, "INFRA"), row(4, "FAULT"), row(5))
    told = Standing("t/a", (row(6, "FAULT"),), earlier).flaky
    assert told == "flaky: 2 of 3 equal runs ended otherwise"
    assert Standing("t/a", (row(6, "FAULT", identity=other),), (row(1),)).flaky == ""
    assert Standing("t/a", (row(6),), (row(1, "FAULT"),)).flaky == ""
    unknown = replace(KNOWN, firmware="")
    build = row(6, "BUILD_ERROR", identity=unknown)
    assert Standing("t/a", (build,), (row(1, identity=unknown),)).flaky == ""
