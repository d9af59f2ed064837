"""Code that is compiled once is the code that Python compiles, but for its name."""

from __future__ import annotations

from typing import Any

import pytest

from harness.shortcuts.code import compile_once, patches

SOURCE = """
def forward(self, x):
    def inner(y):
        return y + x
    return [inner(one) for one in self]
"""


def test_it_does_the_same_and_says_where_it_is_from() -> None:
    short = compile_once()
    for name in ("<eval_with_key>.0", "<eval_with_key>.1"):
        ours = short(SOURCE, name, "exec", dont_inherit=True)
        assert ours == compile(SOURCE, name, "exec", dont_inherit=True)
        known: dict[str, Any] = {}
        exec(ours, known)
        forward = known["forward"]
        assert forward([1, 2], 3) == [4, 5]
        assert forward.__code__.co_filename == name
        inner = next(one for one in forward.__code__.co_consts if hasattr(one, "co_filename"))
        assert inner.co_filename == name


def test_an_error_names_the_file_that_was_asked_for() -> None:
    with pytest.raises(SyntaxError) as raised:
        compile_once()("def (", "<eval_with_key>.7", "exec", dont_inherit=True)
    assert raised.value.filename == "<eval_with_key>.7"


def test_a_graph_of_torch_runs_by_it() -> None:
    """And the installed torch is the one that was looked at."""
    torch = pytest.importorskip("torch")
    from torch.fx import graph_module

    from harness.shortcuts.patch import put

    (patch,) = patches()
    assert "compile" not in vars(graph_module)
    with put(patch):
        traced = torch.fx.symbolic_trace(torch.nn.ReLU())
        traced.recompile()
    assert traced(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]
    assert "compile" not in vars(graph_module)
