"""The text of a guard depends on nothing but what it is made of."""

from __future__ import annotations

from harness.shortcuts.guards import build_once, patches
from tests.late import Late

guards = Late("torch._dynamo.guards")


def test_a_text_is_built_once_for_each_question() -> None:
    built = []

    def build(expressions: list[str], arguments: str) -> tuple[str, str]:
        built.append((expressions, arguments))
        return " and ".join(expressions), arguments

    once = build_once(build)
    assert once(["a", "b"], "c") == once(["a", "b"], "c") == ("a and b", "c")
    assert once(["b", "a"], "c") == ("b and a", "c")
    assert once(["a", "b"], "d") == ("a and b", "d")
    assert built == [(["a", "b"], "c"), (["b", "a"], "c"), (["a", "b"], "d")]


def test_it_is_torchs_text() -> None:
    """And the installed torch is the one that was looked at."""
    (patch,) = patches()
    expressions = ["L['x'].size()[0] == 3", "2 <= L['x'].size()[1]"]
    for _ in range(2):
        assert patch.instead(expressions, "L") == guards.build_guard_function(expressions, "L")
