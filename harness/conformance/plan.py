"""Which tests of a selection are run, which are simulated from what is remembered, and which are
left out: a test of which nothing is known is run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.conformance.model import Selection
from harness.conformance.notes import Note
from harness.conformance.remembered import Remembered
from harness.conformance.selecting import choose

_EXPORT_ONLY = (
    "nothing that exports them has changed since they came to their result, and they simulate "
    "nothing"
)
_ALL_THE_SAME = "nothing that exports or simulates them has changed since they came to their result"


@dataclass(frozen=True)
class Plan:
    """``earlier``: events of an interrupted run. ``notes``: of tests to simulate again. ``chosen``:
    all of the selection; None where only pytest can tell. ``by``: what simulates now.
    ``each_apart``: no test takes over what another prepared."""

    by: str
    earlier: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    chosen: tuple[str, ...] | None = None
    left_out_tests: frozenset[str] = frozenset()
    left_out: Mapping[str, int] = field(default_factory=dict)
    replayed: set[str] = field(default_factory=set)  # what came to the same, when that is known
    each_apart: bool = False

    @property
    def nothing_left(self) -> bool:
        if self.chosen is None:
            return False
        done = {json.loads(line)["test"] for line in self.earlier}
        return set(self.chosen) <= done | self.replayed | self.left_out_tests


def make_plan(
    valid: Remembered, selection: Selection, earlier: Sequence[str], by: str, *, changed: bool
) -> Plan:
    """``changed``: leave out what nothing that changed can affect."""
    ids = valid.collected(selection.keyword)
    part = selection.shard is not None or selection.sample is not None
    if ids is None or (valid.changed and part):
        return Plan(by, tuple(earlier))
    shard = selection.shard or (1, 1)
    chosen = choose(ids, shard, selection.sample or 0, selection.seed)
    done = {json.loads(line)["test"] for line in earlier}
    known = [note for one in chosen if one not in done and (note := valid.note(one)) is not None]
    why = {note.test: _why_not(note, by) for note in known} if changed else {}
    left = {test: reason for test, reason in why.items() if reason}
    return Plan(
        by,
        tuple(earlier),
        tuple(note for note in known if note.test not in left),
        None if valid.changed else tuple(chosen),
        frozenset(left),
        Counter(left.values()),
    )


def _why_not(note: Note, by: str) -> str:
    """Why it need not be run; "" where it has to be."""
    if not note.simulations:
        return _EXPORT_ONLY
    return _ALL_THE_SAME if by in note.by else ""
