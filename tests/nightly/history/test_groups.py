"""Protects what failures are said to share: nothing is accused that passes elsewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.nightly.history.case_state import CaseState, Standing
from harness.nightly.history.compare import Comparison, compare, grouped
from harness.nightly.history.nights import InputDifference
from tests.report.page.nights import (
    CONV,
    KNOWN,
    LINEAR,
    M55,
    PAD,
    U85,
    case,
    compared,
    many,
    row,
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    return compared(tmp_path_factory.mktemp("nights"))


def failing(model: str, operators: tuple[str, ...], kind: str = "MISMATCH") -> Standing:
    bad = row(2, M55, model, kind, operators=operators)
    return Standing(bad.case, (bad,))


def test_an_operator_that_passes_elsewhere_on_the_target_is_not_accused() -> None:
    """Nor one that a single failure has."""
    failures = [failing("a", (PAD, CONV)), failing("b", (PAD,)), failing("c", (LINEAR,))]
    innocent = row(2, M55, "d", operators=(PAD,))
    assert [g.what for g in grouped(failures, [innocent])] == ["MISMATCH"]
    assert [g.what for g in grouped(failures, [])] == [f"operator {PAD}", "MISMATCH"]
    elsewhere = replace(innocent, target="host")
    assert grouped(failures, [elsewhere])[0].what == f"operator {PAD}"


def test_operators_that_cannot_be_told_apart_are_all_named() -> None:
    """No one of them is accused alone."""
    failures = [failing("a", (PAD, CONV)), failing("b", (PAD, CONV, LINEAR))]
    (group,) = grouped(failures, [])
    assert group.what == f"operators {CONV}, {PAD}"


def test_verdicts_of_other_kinds_are_not_one_cause() -> None:
    failures = [failing("a", (PAD,)), failing("b", (PAD,), "FAULT")]
    assert [len(g.cases) for g in grouped(failures, [])] == [1, 1]
    assert grouped([], []) == []


def test_what_changed_for_several_is_their_cause(tmp_path: Path) -> None:
    """The input, not what is made of it."""
    history, night = many(tmp_path, 40, 3)
    page = compare(history, night)
    history.close()
    assert page.groups
    assert all(group.what == "MISMATCH outputs_differ" for group in page.groups)
    new = replace(KNOWN, toolchain="gcc 13", firmware="0" * 64)
    failures = []
    for model in ("a", "b"):
        bad = row(2, M55, model, "FAULT", identity=new, operators=())
        failures.append(Standing(bad.case, (bad,), (row(1, M55, model),)))
    (group,) = grouped(failures, [])
    assert group.what == "toolchain changed"
    assert "gcc 13" in group.why


def test_an_input_that_a_failed_run_did_not_reach_has_not_changed() -> None:
    """A broken export has no program, and so no exporter's version: "" is not a new value."""
    failed = replace(
        row(2, M55, "ds_cnn", "EXPORT_ERROR"), operators=(), identity=replace(KNOWN, exporter="")
    )
    failing = Standing(failed.case, (failed,), (row(1, M55, "ds_cnn"),))
    (group,) = grouped([failing, replace(failing, case="another")], [])
    assert group.what.startswith("EXPORT_ERROR")


def test_the_planted_kernel_bug_is_one_group(page: Comparison) -> None:
    """By the one operator that all four have, and nothing that passed on that target."""
    first = page.groups[0]
    assert first.what == f"operator {PAD}"
    assert {one.case for one in first.cases} == {
        f"{M55}/{model}" for model in ("ds_cnn", "resnet8", "mobilenet", "padded")
    }
    changed = {one.what for one in first.cases[0].changed}
    assert changed == {"sources", "firmware"}
    assert first.changed == [InputDifference("sources", "a" * 40, "b" * 40)]
    assert first.cases[0].since is not None
    assert first.cases[0].since.first.night == "n2"


def test_a_failure_that_names_its_operator(page: Comparison) -> None:
    still = case(page, f"{U85}/resnet8")
    assert still.state is CaseState.STILL
    assert [g.what for g in page.groups if still in g.cases] == ["operator CONV_2D"]
