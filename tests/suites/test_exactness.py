"""Protects what the report says of exactness: beside a test's tolerance, how far outputs were."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from harness.suites.recorder import observe_comparisons
from harness.suites.results import Phase, results_of


class Tester:
    calls: int

    @staticmethod
    def _assert_outputs_equal(model_output: object, ref_output: object, atol: float = 1.0) -> None:
        Tester.calls += 1
        assert atol == 0.5


@pytest.fixture
def differences(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    monkeypatch.setattr(Tester, "_assert_outputs_equal", Tester._assert_outputs_equal)
    Tester.calls = 0
    found: list[float] = []
    observe_comparisons(SimpleNamespace(Tester=Tester), found)
    return found


@pytest.mark.parametrize(
    ("output", "reference", "difference"),
    [
        ([1.0, float("nan")], [1.0, float("nan")], 0.0),
        ([1.0, 2.5], [1.0, 2.0], 0.5),
        ([1.0, float("nan")], [1.0, 2.0], sys.float_info.max),
        ([1.0], [1.0, 2.0], sys.float_info.max),
    ],
    ids=["exact", "within a tolerance", "NaN", "another shape"],
)
def test_the_largest_difference_is_observed(
    differences: list[float], output: list[float], reference: list[float], difference: float
) -> None:
    torch = pytest.importorskip("torch")  # here: every run of pytest collects this file
    Tester._assert_outputs_equal([torch.tensor(output)], [torch.tensor(reference)], atol=0.5)
    assert differences == [difference]
    assert Tester.calls == 1


@pytest.mark.parametrize("module", [None, SimpleNamespace(), SimpleNamespace(Tester=object)])
def test_another_executorch_is_left_as_it_is(module: object) -> None:
    differences: list[float] = []
    observe_comparisons(module, differences)
    assert differences == []


@pytest.mark.parametrize(("difference", "exact"), [(0.0, True), (0.5, False), (None, None)])
def test_a_result_says_whether_it_is_exact(difference: float | None, exact: bool | None) -> None:
    phase = Phase("ops/test_a.py::test_b", "call", "passed", "", None, 0.1, (), difference)
    (result,) = results_of([phase])
    assert (result.exact, result.difference) == (exact, difference)
