"""Many messages about one thing are one failure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from harness.link.failure import Failure

_T = TypeVar("_T")
_COMPANION = "object attributes"  # "failed to merge target specific data" follows the reason


def merged(failures: Sequence[Failure]) -> tuple[Failure, ...]:
    """In order of first mention."""
    found: dict[tuple[object, ...], Failure] = {}
    for failure in _without_companions(failures):
        key = _key(failure)
        found[key] = _joined(found[key], failure) if key in found else failure
    return tuple(found.values())


def _key(failure: Failure) -> tuple[object, ...]:
    if failure.kind == "region_overflow":
        return (failure.kind, failure.region, failure.attribute)
    if failure.kind in ("undefined_symbol", "duplicate_symbol", "discarded_section"):
        return (failure.kind, failure.symbol)
    if failure.kind == "wrong_architecture":
        others = failure.files[1:] if failure.attribute else _archive(failure.files[:1])
        return (failure.kind, failure.attribute, others)
    if failure.kind == "relocation_out_of_range":
        return (failure.kind, failure.symbol, failure.attribute)
    if failure.kind == "orphan_section":
        return (failure.kind,)
    return (failure.kind, failure.symbol, failure.region, failure.sections, failure.files,
            failure.attribute)  # fmt: skip


def _archive(files: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.split("(")[0] for name in files)


def _joined(one: Failure, other: Failure) -> Failure:
    return replace(
        one,
        bytes=max((n for n in (one.bytes, other.bytes) if n is not None), default=None),
        sections=_union(one.sections, other.sections),
        files=_union(one.files, other.files),
        places=_union(one.places, other.places),
    )


def _union(one: Iterable[_T], other: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys((*one, *other)))


def _without_companions(failures: Sequence[Failure]) -> list[Failure]:
    """Drop what only repeats another message in other words."""
    reasons = [f for f in failures if f.kind == "wrong_architecture" and f.attribute != _COMPANION]
    explained = {name for f in reasons for name in f.files}
    kept = []
    for failure in failures:
        repeats = failure.attribute == _COMPANION and explained & set(failure.files)
        as_script = failure.kind == "script_error" and explained & set(failure.files)
        if not repeats and not as_script:
            kept.append(failure)
    return kept
