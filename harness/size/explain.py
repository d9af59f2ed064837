"""One sentence for each cause of growth."""

from __future__ import annotations

from collections.abc import Iterable

from harness.size.anatomy import Path, shown
from harness.size.difference import Change, Difference, GrowthCause, causes

# The first row whose words are all in a path describes it.
_SUBJECTS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("program", "operators"), "the operator name {name}"),
    (("program", "instructions"), "the calls of {name}"),
    (("program", "tensors"), "the descriptions of tensors that are {name}"),
    (("program", "strings"), "the string {name}"),
    (("program", "names"), "the name {name}"),
    (("program", "debug"), "debug information ({name}), which no run needs"),
    (("program", "compile specs"), "the compile spec {name}"),
    (("program", "named data keys"), "the key {name} of named data"),
    (("program", "values"), "the values of type {name}"),
    (("constants",), "the constant tensor {name}"),
    (("delegates", "weights"), "the encoded weights of {parent}"),
    (("delegates", "scales"), "the scales of {parent}"),
    (("delegates", "command stream"), "the command stream of {parent}"),
    (("delegates",), "{name} of {parent}"),
    (("named data",), "the named data {name}"),
    (("padding",), "alignment padding ({name})"),
    (("unreferenced",), "data that nothing refers to ({name})"),
)


def reasons(difference: Difference, enough: int) -> list[str]:
    """Sentences, largest cause first, until they explain ``enough`` bytes of the change: first
    for the file, then for the memory it asks for."""
    return [
        *sentences(causes(difference.parts), enough),
        *sentences(causes(difference.memory), enough),
    ]


def sentences(growth: Iterable[GrowthCause], enough: int) -> list[str]:
    lines, explained = [], 0
    for cause in growth:
        if explained >= enough:
            break
        lines.append(sentence(cause))
        explained += abs(cause.delta)
    return lines


def sentence(cause: GrowthCause) -> str:
    """``+312 B: added the constant tensor int8[64].``"""
    if cause.change is None:
        return (
            f"{cause.delta:+d} B: {cause.things} changes in {shown(cause.path)}, "
            "none of them large by itself."
        )
    return f"{cause.delta:+d} B: {_describe(cause.change)}."


def subject(path: Path) -> str:
    name, parent = path[-1], path[-2] if len(path) > 1 else "the file"
    for words, phrase in _SUBJECTS:
        if path[0] == words[0] and all(word in path for word in words):
            return phrase.format(name=name, parent=parent)
    where = shown(path[:-1])
    return f"{name} in {where}" if where else name


def _describe(change: Change) -> str:
    thing = subject(change.path)
    if change.old_path is not None:
        old = change.old_path[-1]
        origin = f"{old} to" if old != change.path[-1] else f"{shown(change.old_path[:-1])} to"
        return f"renamed {origin} {thing} ({change.old} -> {change.new} B)"
    if change.kind in ("added", "removed"):
        return f"{change.kind} {thing}"
    return f"{thing} {change.kind} from {change.old} to {change.new} B"
