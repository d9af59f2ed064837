"""Protects the search for who else could define a symbol, in sources that are not linked."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.link.why.tree import Tree


@pytest.mark.parametrize(
    ("text", "weak"),
    [
        ("__attribute__((weak)) void hook(void *to,\n    int n) {\n}\n", True),
        ('extern "C" int hook(int a) noexcept { return a; }\n', None),
        ("ET_WEAK int hook(int a) {\n return a; }\n", True),
        ("int hook(int a)\n{\n return a; }\n", False),
        ("int hook(int a);\nint x(void) { return hook(1); }\n", None),
        ("int hook[4] = {1};\n", False),
    ],
)
def test_definitions_are_told_from_calls(tmp_path: Path, text: str, weak: bool | None) -> None:
    (tmp_path / "a.c").write_text(text)
    found = Tree(tmp_path).in_sources("hook")
    if weak is None:
        assert all(not f.weak for f in found)
        return
    assert [f.weak for f in found] == [weak]
