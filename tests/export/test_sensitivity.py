"""A model whose outputs ignore its inputs is refused: a PASS of it would prove nothing."""

from __future__ import annotations

from typing import Any

import pytest

from harness.export.failures import DeadModelError, DeadOutputError
from tests.late import Late

exported = Late("harness.export.child.exported")
sensitivity = Late("harness.export.child.sensitivity")
torch = Late("torch")


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


def test_a_batch_that_is_convolved_in_parts_gives_the_same_values() -> None:
    """But for last bits, which the statistics lose. Unfolding a whole batch took 1.7 GB more for a
    U-Net of 96x96."""
    torch.manual_seed(5)
    layers = [torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv1d(1, 1, 3)]
    images = torch.randn(64, 3, 9, 9, dtype=torch.float64)
    module = torch.nn.Sequential(*layers[:2], torch.nn.Conv2d(8, 4, 3, groups=4)).double()
    series, line = layers[2].double(), torch.randn(64, 1, 30, dtype=torch.float64)
    sizes = set()

    class Recorded(torch.overrides.TorchFunctionMode):  # what is called below the parts
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
            if function in (torch.conv1d, torch.conv2d):
                sizes.add(len(args[0]))
            return function(*args, **(kwargs or {}))

    with torch.no_grad():
        whole, whole_line = module(images), series(line)
        with Recorded(), sensitivity._InParts():
            torch.testing.assert_close(module(images), whole, rtol=0, atol=1e-13)
            torch.testing.assert_close(series(line), whole_line, rtol=0, atol=1e-13)
    assert sizes == {8}
