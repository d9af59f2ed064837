"""The tables of a ``.pte``: names of operators, calls, elements."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from harness.core.errors import MalformedFile
from harness.export.program import Program
from harness.formats.pte import calls_of, element_of, operator_names, place_of, plans_of
from tests.export.conftest import exported

__all__ = ["exported"]


def test_what_a_method_calls(exported: Callable[..., Program]) -> None:
    program = exported("deep_autoencoder")
    (plan,) = plans_of(program.pte_path.read_bytes())
    names = operator_names(plan)
    called = [names[c.get("op_index")] for c in calls_of(plan) if c and c.name == "KernelCall"]
    assert set(called) == set(names) == set(program.operators)
    values = [value.get("val") for value in plan.items("values")]
    tensors = [value for value in values if value is not None and value.name == "Tensor"]
    assert {element_of(tensor) for tensor in tensors} >= {(1, "int8"), (4, "float32")}
    assert None in map(place_of, tensors), "a constant has none"
    assert len({place_of(tensor) for tensor in tensors}) > 2


def test_an_element_of_a_type_that_is_not_known_has_the_most_bytes() -> None:
    """What is laid out for it is then never too small."""
    schema = SimpleNamespace(enums={"ScalarType": {7: "NEWER"}})
    tensor: Any = SimpleNamespace(buffer=SimpleNamespace(schema=schema), get=lambda _: 7)
    assert element_of(tensor) == (8, "newer")


def test_what_is_not_a_program_is_malformed() -> None:
    with pytest.raises(MalformedFile):
        plans_of(b"\0" * 64)
