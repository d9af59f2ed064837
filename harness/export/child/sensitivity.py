"""Input sensitivity: the outputs of a model must depend on its inputs, at every depth.

ds_cnn and mobilenet_v1_025 as the ExecuTorch 1.5.1 wheel ships them give one output for every
input: whatever a target computes for such a model, a PASS says nothing. So a shipped network, which
is untrained, gets random weights that keep it sensitive, and every model must show that it is. A
user's model is run once before it is exported: deep in ExecuTorch, a model that returns a number or
a constant ends in an unrelated assertion.

He initialisation keeps the size of the signal from layer to layer (He et al. 2015,
arXiv:1502.01852), and batch-norm statistics that come from data keep it centred. Without them
the shipped definitions fade to a constant before the last layer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from harness.core.errors import ExportError
from harness.export.child.samples import InputRange, Sample, draw
from harness.export.failures import DeadModelError, DeadOutputError, UnsupportedTensor
from harness.export.program import RawSet

BATCH = 64  # samples that the batch-norm statistics are taken over
_PART = 8  # of the batch, convolved at once
_GRID = 4096.0  # statistics are rounded to 1/4096

_WEIGHTED = (nn.Conv1d, nn.Conv2d, nn.Linear)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)


def randomise_weights(
    module: nn.Module, ranges: Sequence[InputRange], generator: np.random.Generator
) -> None:
    """Re-initialises ``module`` in place; a module without weights is left unchanged."""
    norms = [m for m in module.modules() if isinstance(m, _NORMS)]
    for layer in module.modules():
        if isinstance(layer, _WEIGHTED):
            fan_in = layer.weight[0].numel()
            _fill(layer.weight, generator.standard_normal(layer.weight.shape) * (2 / fan_in) ** 0.5)
            if layer.bias is not None:
                _fill(layer.bias, generator.uniform(-0.1, 0.1, layer.bias.shape))
    for norm in norms:
        _fill(norm.weight, generator.uniform(0.75, 1.25, norm.weight.shape))
        _fill(norm.bias, generator.normal(0.0, 0.2, norm.bias.shape))
    if norms:
        samples = [draw(ranges, generator, whole_range=index == 0) for index in range(BATCH)]
        _set_norm_statistics(
            module, norms, [torch.cat(values) for values in zip(*samples, strict=True)]
        )


def _set_norm_statistics(
    module: nn.Module, norms: Sequence[nn.BatchNorm1d | nn.BatchNorm2d], batch: list[torch.Tensor]
) -> None:
    """Give each batch-norm layer the statistics of its actual inputs.

    Computes in double precision and rounds: the last bit of a CPU's vector unit would otherwise
    change the bytes of the program."""
    module.double()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a cumulative average: after one pass, that pass's statistics
        norm.train()
    with torch.no_grad(), _InParts():
        module(*[t.double() if t.is_floating_point() else t for t in batch])
    for norm in norms:
        norm.eval()
        assert norm.running_mean is not None
        assert norm.running_var is not None
        norm.running_mean.mul_(_GRID).round_().div_(_GRID)
        norm.running_var.mul_(_GRID).round_().clamp_(min=1.0).div_(_GRID)
    module.float()


class _InParts(TorchFunctionMode):  # type: ignore[misc]
    """Convolves a batch in parts.

    Torch unfolds a whole batch of doubles (``slow_conv2d``), nine times its memory for 3x3."""

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if function not in (torch.conv1d, torch.conv2d):
            return function(*args, **(kwargs or {}))
        batch, *others = args
        parts = batch.split(_PART)
        return torch.cat([function(each, *others, **(kwargs or {})) for each in parts])


def _fill(parameter: torch.Tensor, values: object) -> None:
    with torch.no_grad():
        parameter.copy_(torch.from_numpy(np.asarray(values)))


def require_sensitivity(
    model: str, sets: Sequence[RawSet], declared: Collection[int] = ()
) -> tuple[int, ...]:
    """Return the indices of the outputs that are equal for every input set.

    Raises DeadModelError when these are all, and when one is not ``declared`` to be constant."""
    if len({s.expected for s in sets}) < 2:
        raise DeadModelError(model, sets)
    by_output = zip(*(s.expected for s in sets), strict=True)
    constant = tuple(index for index, values in enumerate(by_output) if len(set(values)) == 1)
    if dead := [index for index in constant if index not in declared]:
        raise DeadOutputError(model, dead, sets)
    return constant


def try_out(
    name: str, module: torch.nn.Module, sets: Sequence[Sample], declared: Collection[int] = ()
) -> tuple[tuple[int, ...], list[Sample]]:
    """Run the model once. Returns what ``require_sensitivity`` does, and the outputs.

    Raises UnsupportedTensor, DeadModelError, ExportError for NaN and infinity, and the model's own
    exceptions."""
    with torch.no_grad(), torch.random.fork_rng(devices=[]), _buffers_restored(module):
        outputs = [_tensors(module(*(value.clone() for value in inputs))) for inputs in sets]
    for number, values in enumerate(outputs):
        for index, value in enumerate(values):
            if value.is_floating_point() and not value.isfinite().all():
                raise ExportError(
                    f"model '{name}' gives NaN or infinity: output {index}, for input set {number}",
                    hint="such values cannot be quantised; check its weights and its ModelInputs",
                    model=name,
                    output=index,
                    set=number,
                )
    raw = [RawSet(_raw(i), _raw(o)) for i, o in zip(sets, outputs, strict=True)]
    return require_sensitivity(name, raw, declared), outputs


def _tensors(result: object) -> Sample:
    leaves = pytree.tree_leaves(result)
    for index, leaf in enumerate(leaves):
        if not isinstance(leaf, torch.Tensor):
            raise UnsupportedTensor(f"output{index}", type(leaf).__name__)
    return tuple(leaves)


def _raw(sample: Sample) -> tuple[bytes, ...]:
    return tuple(
        value.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        for value in sample
    )


@contextmanager
def _buffers_restored(module: torch.nn.Module) -> Iterator[None]:
    """Restores the buffers that ``forward`` writes to (caches, counters)."""
    buffers = [
        (owner, name, buffer, buffer.clone())
        for owner in module.modules()
        for name, buffer in owner._buffers.items()
        if buffer is not None
    ]
    try:
        yield
    finally:
        for owner, name, buffer, before in buffers:
            buffer.copy_(before)
            owner._buffers[name] = buffer
