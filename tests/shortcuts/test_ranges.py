"""The range of a 16-bit activation is torchao's, to the last bit."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from harness.shortcuts.ranges import OBSERVERS, patches, range_of_histogram


def histogram(torch: Any, observers: ModuleType, seed: int) -> Any:
    """An observer of one to three samples: many values, few, one, outliers, integers, zeros."""
    generator = torch.Generator().manual_seed(seed)
    observer = observers.HistogramObserver(
        dtype=torch.int16, qscheme=torch.per_tensor_symmetric, bins=(2048, 256, 7)[seed % 3]
    )
    for number in range(1 + seed % 2):
        values = torch.randn(1 + 41 * seed, generator=generator)
        kind = (seed + number) % 6
        observer(
            (
                values,
                values**3 * 1e3,
                torch.cat([values, torch.tensor([1e6])]),
                values.round(),
                values * 0 + seed,
                torch.linspace(-seed, 7, 33),
            )[kind]
        )
    return observer


@pytest.mark.parametrize("seed", range(12))
def test_the_range_of_a_histogram_is_torchaos_to_the_last_bit(seed: int) -> None:
    torch = pytest.importorskip("torch")
    observers = pytest.importorskip(OBSERVERS)
    observer = histogram(torch, observers, seed)
    search = observers.HistogramObserver._non_linear_param_search
    theirs = getattr(search, "__wrapped__", search)(observer)
    ours = range_of_histogram(observer)
    if ours is None:  # a histogram of one value, which is left to torchao
        assert observer.min_val == observer.max_val
        return
    for a, b in zip(theirs, ours, strict=True):
        assert a.dtype == b.dtype
        assert a.numpy().tobytes() == b.numpy().tobytes()


def test_another_search_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done in its place was proven for one source only."""

    class Another:
        def _non_linear_param_search(self) -> str:
            return "theirs"

    module = ModuleType(OBSERVERS)
    monkeypatch.setattr(module, "HistogramObserver", Another, raising=False)
    monkeypatch.setitem(sys.modules, OBSERVERS, module)
    assert not list(patches())


def test_where_nobody_quantises_nothing_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, OBSERVERS, raising=False)
    assert not list(patches())
    assert OBSERVERS not in sys.modules
