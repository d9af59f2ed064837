"""A model whose outputs ignore its inputs is refused: a PASS of it would prove nothing."""

from __future__ import annotations

import pytest

from harness.export.failures import DeadModelError, DeadOutputError
from tests.late import Late

exported = Late("harness.export.child.exported")
sensitivity = Late("harness.export.child.sensitivity")


def raw(i: bytes, *o: bytes) -> exported.RawSet:
    return exported.RawSet((i,), o)


def test_one_differing_output_is_life_of_that_output_alone() -> None:
    sets = [raw(b"a", b"1", b"7"), raw(b"b", b"1", b"8")]
    with pytest.raises(DeadOutputError, match="output 0 of model 'm' is the same for 2") as caught:
        sensitivity.require_sensitivity("m", sets)
    assert (caught.value.kind, caught.value.outputs) == ("dead_output", (0,))
    assert sensitivity.require_sensitivity("m", sets, [0]) == (0,)


def test_equal_outputs_are_death_with_facts() -> None:
    with pytest.raises(DeadModelError, match="2 different inputs give the same") as caught:
        sensitivity.require_sensitivity("m", [raw(b"a", b"17"), raw(b"b", b"17")])
    assert caught.value.first_output_bytes == "3137"
    assert caught.value.facts["different_outputs"] == 1
    assert caught.value.kind == "dead_model"
    assert caught.value.verdict == "EXPORT_ERROR"


def test_equal_inputs_prove_nothing() -> None:
    with pytest.raises(DeadModelError, match="cannot be given two different inputs"):
        sensitivity.require_sensitivity("m", [raw(b"a", b"1"), raw(b"a", b"1")])
