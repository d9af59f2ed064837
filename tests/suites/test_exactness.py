"""Protects what the report says of exactness: beside a test's tolerance, how far outputs were."""

from __future__ import annotations

import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from harness.report.suite import print_report
from harness.suites.recorder import ComparedOutput, observe_comparisons
from harness.suites.results import Phase, SuiteReport, results_of


class Tester:
    calls: int

    @staticmethod
    def _assert_outputs_equal(model_output: object, ref_output: object, atol: float = 1.0) -> None:
        Tester.calls += 1
        assert atol == 0.5


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[ComparedOutput]:
    monkeypatch.setattr(Tester, "_assert_outputs_equal", Tester._assert_outputs_equal)
    Tester.calls = 0
    found: list[ComparedOutput] = []
    observe_comparisons(SimpleNamespace(Tester=Tester), found)
    return found


@pytest.mark.parametrize(
    ("output", "reference", "said"),
    [
        ([1.0, float("nan")], [1.0, float("nan")], ComparedOutput(0.0, constant=False)),
        ([1.0, 2.5], [1.0, 2.0], ComparedOutput(0.5, constant=False)),
        ([1.0, float("nan")], [1.0, 2.0], ComparedOutput(sys.float_info.max, constant=False)),
        ([1.0], [1.0, 2.0], ComparedOutput(sys.float_info.max, constant=False)),
        ([0.0, 0.0], [0.0, 0.0], ComparedOutput(0.0, constant=True)),
        ([float("nan")] * 2, [float("nan")] * 2, ComparedOutput(0.0, constant=True)),
        ([0.0], [0.0], ComparedOutput(0.0, constant=False)),
        ([], [], ComparedOutput(0.0, constant=False)),
    ],
    ids=["exact", "within a tolerance", "NaN", "shape", "zeros", "all NaN", "one", "none"],
)
def test_what_an_output_shows_is_observed(
    compared: list[ComparedOutput],
    output: list[float],
    reference: list[float],
    said: ComparedOutput,
) -> None:
    torch = pytest.importorskip("torch")  # here: every run of pytest collects this file
    Tester._assert_outputs_equal([torch.tensor(output)], [torch.tensor(reference)], atol=0.5)
    assert compared == [said]
    assert Tester.calls == 1


@pytest.mark.parametrize("module", [None, SimpleNamespace(), SimpleNamespace(Tester=object)])
def test_another_executorch_is_left_as_it_is(module: object) -> None:
    compared: list[ComparedOutput] = []
    observe_comparisons(module, compared)
    assert compared == []


@pytest.mark.parametrize(("difference", "exact"), [(0.0, True), (0.5, False), (None, None)])
def test_a_result_says_whether_it_is_exact(difference: float | None, exact: bool | None) -> None:
    phase = Phase("ops/test_a.py::test_b", "call", "passed", "", None, 0.1, (), difference)
    (result,) = results_of([phase])
    assert (result.exact, result.difference) == (exact, difference)


def test_outputs_of_one_value_are_not_counted_as_exact() -> None:
    """A network whose weights make every output zero is right whatever the runner computes."""
    dead = Phase("models/test_a.py::test_dead", "call", "passed", "", None, 0.1, (), 0.0, True)
    live = replace(dead, test="models/test_a.py::test_live", constant=False)
    report = SuiteReport("s", "stand-in", "elf", results_of([dead, live]), 1.0, Path("log"))
    assert report.exact == (1, 1)
    console = Console(file=StringIO(), width=200)
    print_report(console, report)
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert "1 of 1 tests that passed are bit for bit the reference" in said
    assert "passed with outputs of one value throughout, which prove nothing (1): " in said
    assert "test_dead" in said
