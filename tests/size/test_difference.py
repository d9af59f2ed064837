"""What differences protect: growth is found under its cause's name, and said in a sentence."""

from __future__ import annotations

import io
from collections.abc import Mapping

from rich.console import Console

from harness.report.size import markdown, print_anatomy, print_difference
from harness.size.anatomy import Anatomy, Part, changes, difference, join, reasons, sentences, split


def anatomy(parts: Mapping[str, int], memory: Mapping[str, int] | None = None) -> Anatomy:
    def listed(found: Mapping[str, int]) -> tuple[Part, ...]:
        return tuple(Part(split(path), size) for path, size in found.items())

    return Anatomy("pte", sum(parts.values()), listed(parts), listed(memory or {}))


def kinds(old: Mapping[str, int], new: Mapping[str, int]) -> list[tuple[str, str, int]]:
    found = changes(anatomy(old).parts, anatomy(new).parts)
    return [(c.kind, join(c.path), c.delta) for c in found]


def test_each_kind_of_change_most_first() -> None:
    old = {"a/same": 5, "a/gone": 7, "a/more": 10, "a/less": 10}
    new = {"a/same": 5, "b/come": 100, "a/more": 12, "a/less": 9}
    assert kinds(old, new) == [
        ("added", "b/come", 100),
        ("removed", "a/gone", -7),
        ("grew", "a/more", 2),
        ("shrank", "a/less", -1),
    ]


def test_renamed_next_to_and_moved_elsewhere() -> None:
    """A longer operator name is one change, not a removal and an addition."""
    old = {"ops/aten::add.out": 40, "libx/y.o/f()": 300}
    new = {"ops/aten::add_relu.out": 45, "libz/y.o/f()": 300}
    assert kinds(old, new) == [
        ("renamed", "ops/aten::add_relu.out", 5),
        ("renamed", "libz/y.o/f()", 0),
    ]


def test_other_tensors_are_not_renames() -> None:
    assert {k for k, _, _ in kinds({"c/int8[64]": 64}, {"c/int8[65]": 65})} == {"added", "removed"}


def test_one_more_of_the_same_is_one_addition() -> None:
    old = {"c/int8[8]": 8, "c/int8[8] #2": 8}
    assert kinds(old, {**old, "c/int8[8] #3": 8}) == [("added", "c/int8[8] #3", 8)]


def test_scattered_growth_has_one_cause() -> None:
    """An iostream include adds hundreds of functions: the library is the cause."""
    new = {f"ITCM/code/.text/libstdc++.a/{n}.o/f{n}": 100 + n for n in range(200)}
    new["ITCM/code/.text/main.o/main"] = 900
    scattered, main = sentences(changes((), anatomy(new).parts))
    total = sum(new.values()) - 900
    where = "ITCM > code > .text > libstdc++.a"
    assert scattered == f"+{total} B: 200 changes in {where}, none of them large by itself."
    assert main.startswith("+900 B: added main")


def test_sentences() -> None:
    old = {"program/forward/operators/a::b": 20}
    new = {
        "program/forward/operators/a::bcd": 22,
        "constants/int8[9]": 9,
        "delegates/EthosUBackend/weights": 640,
        "program/forward/debug/stack traces": 50,
    }
    said = reasons(difference(anatomy(old), anatomy(new, {"planned buffer 1/int8[4]": 4})), 10_000)
    assert said == [
        "+640 B: added the encoded weights of EthosUBackend.",
        "+50 B: added debug information (stack traces), which no run needs.",
        "+9 B: added the constant tensor int8[9].",
        "+2 B: renamed a::b to the operator name a::bcd (20 -> 22 B).",
        "+4 B: added int8[4] in planned buffer 1.",
    ]


def test_why_stops_when_enough_is_explained() -> None:
    new = {"constants/int8[900]": 900, "constants/int8[9]": 9}
    assert len(reasons(difference(anatomy({}), anatomy(new)), 500)) == 1


def test_scattered_changes_have_a_sentence() -> None:
    (found,) = sentences(changes((), anatomy({f"a/b/{n}": 10 for n in range(9)}).parts))
    assert found == "+90 B: 9 changes in a > b, none of them large by itself."


def test_markdown_cannot_be_broken_by_a_name() -> None:
    text = markdown("t", difference(anatomy({}), anatomy({"a|b<script>`x`": 3})), 10)
    assert "| +3 | 0 | 3 | added | a\\|b&lt;script&gt;\\`x\\` |" in text


def test_tables_for_a_terminal() -> None:
    """Totals, the largest parts, and how many more there are."""
    out = io.StringIO()
    console = Console(file=out, width=100)
    new = anatomy({f"a/p{n}": 10 + n for n in range(9)}, {"planned buffer 1/x": 8})
    print_anatomy(console, "file.pte", new, depth=2, top=3)
    print_difference(console, difference(anatomy({}), new), top=3)
    text = out.getvalue()
    assert "file.pte: 126 bytes, 0 unknown" in text
    assert "6 more (--top)" in text
    assert "+126" in text
    assert "planned buffer 1" in text


def test_paths_survive_json() -> None:
    assert split(join(("a/b", "100%2F", "c"))) == ("a/b", "100%2F", "c")
