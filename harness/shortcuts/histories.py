"""torch gives each node a copy of the whole history of the node that it was made of, which is
longer after each of a hundred passes: up to a sixth of an export. Nobody changes a history, so that
it may be the same one."""

from __future__ import annotations

from collections.abc import Iterator

from harness.shortcuts.patch import Patch, is_the_source

# of NodeSource.__init__ (torch 2.13.0)
_MAKES = "99395e7f40a4a0490145b2b1ca70c03cd5b7f2d8037480bd399a2fc195ee152f"


def patches() -> Iterator[Patch]:
    import torch

    history = getattr(torch.fx.traceback, "NodeSource", None)
    if history is None or hasattr(history, "__deepcopy__"):
        return
    if is_the_source(history.__init__, _MAKES):
        yield Patch(history, "__deepcopy__", lambda itself, _memo: itself)
