"""Makes the networks of ``networks.yaml``, with seeded weights that keep their outputs alive."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from torch import nn

SEED = 46
_BATCH = 8
Sample = tuple[torch.Tensor, ...]
Draw = Callable[[np.random.Generator], Sample]
LISTED = Path(__file__).with_name("networks.yaml")
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def network(name: str) -> tuple[nn.Module, Sample, list[Sample]]:
    """A model file's ModelUnderTest, ModelInputs and CalibrationInputs."""
    listed = yaml.safe_load(LISTED.read_text("utf-8"))
    torch.manual_seed(SEED)
    if name in listed["timm"]:
        import timm

        size = listed["timm"][name]
        module = timm.create_model(name, pretrained=False, num_classes=10)
        return live(module, floats((1, 3, size, size)))
    home = "transformer" if name in listed["transformers"] else "own"
    module, draw = getattr(import_module(f"tools.zoo.{home}"), name)()
    return live(module, draw)


def floats(*shapes: tuple[int, ...]) -> Draw:
    def draw(generator: np.random.Generator) -> Sample:
        return tuple(
            torch.from_numpy(generator.uniform(-1, 1, s).astype(np.float32)) for s in shapes
        )

    return draw


def tokens(vocabulary: int, *shape: int) -> Draw:
    return lambda generator: (torch.from_numpy(generator.integers(0, vocabulary, shape)),)


def live(module: nn.Module, draw: Draw) -> tuple[nn.Module, Sample, list[Sample]]:
    """With weights of numpy's, the same on each machine, and statistics from data."""
    generator = np.random.default_rng(SEED)
    with torch.no_grad():
        for name, weight in sorted(module.named_parameters()):
            weight.copy_(torch.from_numpy(_drawn(generator, name, weight)))
        module.eval()
        norms: list[Any] = [m for m in module.modules() if isinstance(m, _NORMS)]
        for norm in norms:
            norm.momentum = None
            norm.reset_running_stats()
            norm.train()
        if norms:  # of several samples at once: a channel may have one value in each
            module(*map(torch.cat, zip(*(draw(generator) for _ in range(_BATCH)), strict=True)))
        module.eval()
    samples = [draw(generator) for _ in range(4)]
    return module, samples[0], samples


def _drawn(generator: np.random.Generator, name: str, weight: torch.Tensor) -> Any:
    shape = tuple(weight.shape)
    if weight.dim() >= 2:
        drawn = generator.normal(0, (1.5 / weight[0].numel()) ** 0.5, shape)
    elif name.endswith("bias"):
        drawn = generator.uniform(-0.1, 0.1, shape)
    else:
        drawn = generator.uniform(0.6, 1.2, shape)
    return drawn.astype(np.float32)
