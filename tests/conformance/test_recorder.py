"""Shortcuts through torch: they change no result, and give way when something new is registered."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from harness.conformance.recorder import AnyCallable, Once, _after, watch_comparisons


def test_once_is_done_again_when_outdated() -> None:
    done = []
    once = Once(lambda: done.append(1))
    once()
    once()
    assert len(done) == 1
    once.outdated()
    once()
    assert len(done) == 2


def test_what_registers_operators_outdates_it_even_when_it_fails() -> None:
    done = []

    def define(schema: str) -> str:
        return {"known": "result"}[schema]

    watched = _after(define, lambda: done.append(1))
    assert watched("known") == "result"
    try:
        watched("unknown")
    except KeyError:
        done.append(2)
    assert done == [1, 1, 2]


def test_a_callable_for_annotations_is_still_asked_what_is_callable() -> None:
    """torch._ops uses the name for isinstance as well."""
    assert AnyCallable[[int], Callable[..., None]] is AnyCallable
    assert isinstance(len, AnyCallable)
    assert not isinstance(3, AnyCallable)


def test_how_far_outputs_are_apart_is_kept_and_the_comparison_stays_as_it_is() -> None:
    torch = pytest.importorskip("torch")

    class Tester:
        @staticmethod
        def _assert_outputs_equal(model: Any, reference: Any, atol: float = 1e-3) -> None:
            for a, b in zip(model, reference, strict=True):
                assert torch.allclose(a, b, atol=atol, equal_nan=True)

    apart: list[float] = []
    watch_comparisons(SimpleNamespace(Tester=Tester), apart)
    one, nan = torch.ones(2, 3), torch.tensor([float("nan"), 1.0])
    Tester._assert_outputs_equal([one, nan], [one.clone(), nan.clone()])
    Tester._assert_outputs_equal([one], [one + 2.0**-12])
    with pytest.raises(AssertionError):
        Tester._assert_outputs_equal([nan], [one[0, :2]], atol=3)
    assert apart[:3] == [0.0, 0.0, 2.0**-12]
    assert apart[3] > 1e300
    watch_comparisons(None, apart)  # a suite of another make
    watch_comparisons(SimpleNamespace(), apart)


def test_the_installed_wheel_has_what_is_watched() -> None:
    """Else nothing would be said about any test, and nobody would notice."""
    pytest.importorskip("torch")
    from executorch.backends.test.harness.tester import Tester

    assert callable(Tester._assert_outputs_equal)
