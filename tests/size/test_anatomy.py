"""A folded anatomy is small, sums up to the same, and still compares."""

from __future__ import annotations

from harness.size.anatomy import Anatomy, FoldedAnatomy, Part, difference


def many(extra: int = 0) -> Anatomy:
    parts = [Part(("R", "code", ".text", f"f{n}"), n + 1) for n in range(2000)]
    parts += [Part(("R", "code", ".text", "more"), extra)] if extra else []
    return Anatomy("elf", sum(p.bytes for p in parts), tuple(parts))


def test_folding_keeps_the_sum() -> None:
    """A compact anatomy still compares: what is folded on both sides cancels out."""
    whole = many()
    small = FoldedAnatomy.of(whole)
    assert len(small.anatomy.parts) < 700
    assert sum(p.bytes for p in small.anatomy.parts) == whole.total == small.anatomy.total
    assert difference(small.anatomy, small.fold(whole)).parts == ()
    (grown,) = difference(small.anatomy, small.fold(many(5000))).parts
    assert (grown.path[-1], grown.delta) == ("more", 5000)


def test_a_small_anatomy_is_kept_whole() -> None:
    parts = (Part(("constants", "a/b"), 1), Part(("constants", "c"), 5, 2))
    memory = (Part(("planned buffer", "x"), 3), Part(("planned buffer", "x"), 4))
    small = FoldedAnatomy.of(Anatomy("pte", 6, parts, memory, (Part(("d",), 9),), ("a note",)))
    assert small.threshold == 1
    assert [(p.path, p.bytes) for p in small.anatomy.parts] == [(p.path, p.bytes) for p in parts]
    assert small.anatomy.memory == (Part(("planned buffer", "x"), 7),)
    assert FoldedAnatomy.from_fields(small.to_fields()) == small
