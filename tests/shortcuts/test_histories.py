"""A node's history is shared by those that are made of it."""

from __future__ import annotations

import copy

from harness.shortcuts.histories import patches
from harness.shortcuts.patch import put
from tests.late import Late

torch = Late("torch")


def test_a_history_is_the_same_one_within_and_a_copy_without() -> None:
    """And the installed torch is the one that was looked at."""
    node = torch.fx.Graph().placeholder("x")
    history = [torch.fx.traceback.NodeSource(node, "a pass")]
    (patch,) = patches()
    with put(patch):
        assert copy.deepcopy(history)[0] is history[0]
        assert not list(patches()), "no second time"
    copied = copy.deepcopy(history)
    assert copied == history
    assert copied[0] is not history[0]
