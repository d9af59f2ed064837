"""What is read from the serialised program, and what no runner can be given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harness.export.failures import UnsupportedTensor
from tests.late import Late

exported = Late("harness.export.child.exported")


def test_an_input_that_is_not_a_tensor_is_refused() -> None:
    """A method may take a number; the runner only loads files of tensors."""
    plan: Any = SimpleNamespace(values=[SimpleNamespace(val=3)])
    with pytest.raises(UnsupportedTensor, match="'x' is a int; the runner passes plain") as caught:
        exported._tensor_spec(plan, 0, "x", None)
    assert caught.value.facts == {"tensor": "x", "type": "int"}
    assert caught.value.kind == "export"
