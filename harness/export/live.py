"""Is a model worth running? Its outputs must depend on its inputs, at every depth.

ds_cnn and mobilenet_v1_025 as the ExecuTorch 1.5.1 wheel ships them give one output for every
input: whatever a target computes for such a model, a PASS says nothing. So a shipped network,
which is untrained, is made live, and every model must show that it is.

He initialisation keeps the size of the signal from layer to layer (He et al. 2015,
arXiv:1502.01852), and batch-norm statistics that come from data keep it centred. Without them
the shipped definitions fade to a constant before the last layer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from harness.export.exported import RawSet
from harness.export.failures import DeadModelError
from harness.export.samples import InputRange, draw

BATCH = 64  # samples that the batch-norm statistics are taken over
_GRID = 4096.0  # statistics are rounded to 1/4096

_WEIGHTED = (nn.Conv1d, nn.Conv2d, nn.Linear)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)


def make_live(
    module: nn.Module, ranges: Sequence[InputRange], generator: np.random.Generator
) -> None:
    """Re-initialise ``module`` in place; one without weights stays as it is."""
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
        samples = [draw(ranges, generator, full=index == 0) for index in range(BATCH)]
        _measure(module, norms, [torch.cat(same) for same in zip(*samples, strict=True)])


def _measure(
    module: nn.Module, norms: Sequence[nn.BatchNorm1d | nn.BatchNorm2d], batch: list[torch.Tensor]
) -> None:
    """Give each batch-norm layer the statistics of what really reaches it.

    In double precision and rounded, so that the last bit of some CPU's vector unit, which
    would decide the bytes of the program, does not show.
    """
    module.double()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a cumulative average: after one pass, that pass's statistics
        norm.train()
    with torch.no_grad():
        module(*[t.double() if t.is_floating_point() else t for t in batch])
    for norm in norms:
        norm.eval()
        assert norm.running_mean is not None
        assert norm.running_var is not None
        norm.running_mean.mul_(_GRID).round_().div_(_GRID)
        norm.running_var.mul_(_GRID).round_().clamp_(min=1.0).div_(_GRID)
    module.float()


def _fill(parameter: torch.Tensor, values: object) -> None:
    with torch.no_grad():
        parameter.copy_(torch.from_numpy(np.asarray(values)))


def require_life(model: str, sets: Sequence[RawSet]) -> None:
    """Raises DeadModelError when no two sets with different inputs differ in an output."""
    if len({s.expected for s in sets}) < 2:
        raise DeadModelError(model, sets)
