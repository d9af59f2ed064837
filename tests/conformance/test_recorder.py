"""What the plugin in the suite's process watches."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harness.conformance.recorder import watch_comparisons


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
