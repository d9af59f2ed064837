"""Shortcuts through torch: they change no result, and give way when something new is registered."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from harness.conformance.shortcuts import (
    OBSERVERS,
    AnyCallable,
    Once,
    _after,
    quicken_search,
    range_of_histogram,
)


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


def test_another_search_is_left_as_it_is() -> None:
    """What is done in its place was proven for one source only."""

    class Another:
        def _non_linear_param_search(self) -> str:
            return "theirs"

    assert not quicken_search(SimpleNamespace(HistogramObserver=Another))
    assert Another()._non_linear_param_search() == "theirs"
    assert not quicken_search(None)


def test_the_installed_torchao_has_the_search_that_was_looked_at() -> None:
    """Else a test with 16-bit activations costs four times as much, and nobody would notice."""
    observers = pytest.importorskip(OBSERVERS)
    original = observers.HistogramObserver._non_linear_param_search
    try:
        assert quicken_search(observers)
    finally:
        observers.HistogramObserver._non_linear_param_search = original
