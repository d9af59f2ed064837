"""A user's model is run once as it is, so that what is wrong with it is said in its own terms.

Deep in ExecuTorch a model that returns a number, or gives the same for every input, ends in an
assertion about something else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch.utils import _pytree as pytree

from harness.export.exported import RawSet
from harness.export.failures import NotFinite, UnsupportedTensor
from harness.export.live import require_life
from harness.export.samples import Sample


def try_out(name: str, module: torch.nn.Module, sets: Sequence[Sample]) -> tuple[int, ...]:
    """The outputs, by number, that are the same for every input set.

    Raises UnsupportedTensor, NotFinite, DeadModelError, and whatever the model raises.
    """
    with torch.no_grad(), torch.random.fork_rng(devices=[]), _as_it_was(module):
        outputs = [_tensors(module(*(value.clone() for value in inputs))) for inputs in sets]
    for number, values in enumerate(outputs):
        for index, value in enumerate(values):
            if value.is_floating_point() and not value.isfinite().all():
                raise NotFinite(name, index, number)
    raw = [RawSet(_raw(i), _raw(o)) for i, o in zip(sets, outputs, strict=True)]
    require_life(name, raw)
    same = zip(*(one.expected for one in raw), strict=True)
    return tuple(index for index, values in enumerate(same) if len(set(values)) == 1)


def _tensors(result: object) -> Sample:
    leaves = pytree.tree_leaves(result)
    for index, leaf in enumerate(leaves):
        if not isinstance(leaf, torch.Tensor):
            raise UnsupportedTensor(f"output{index}", type(leaf).__name__)
    return tuple(leaves)


def _raw(sample: Sample) -> tuple[bytes, ...]:
    return tuple(value.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
                 for value in sample)  # fmt: skip


@contextmanager
def _as_it_was(module: torch.nn.Module) -> Iterator[None]:
    """A buffer that ``forward`` writes to (a cache, a counter) is put back afterwards."""
    kept = [
        (owner, name, buffer, buffer.clone())
        for owner in module.modules()
        for name, buffer in owner._buffers.items()
        if buffer is not None
    ]
    try:
        yield
    finally:
        for owner, name, buffer, before in kept:
            buffer.copy_(before)
            owner._buffers[name] = buffer
