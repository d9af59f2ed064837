"""Shortcuts through torch: they change no result, and give way when something new is registered."""

from __future__ import annotations

from collections.abc import Callable

from harness.conformance.recorder import AnyCallable, Once, _after


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
