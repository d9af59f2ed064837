"""A small network of the kind of Ronneberger et al. 2015 (arXiv:1505.04597): down, up, and joined
with what was there before, for ``hil bench npu``. Weights are drawn with a fixed seed."""

from __future__ import annotations

import torch
from torch import nn

_SHAPE = (3, 128, 128)
_DEPTHS = (16, 32, 64, 128)


def _twice(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        *(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs)),
        nn.ReLU(),
        *(nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs)),
        nn.ReLU(),
    )


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        pairs = list(zip((3, *_DEPTHS), _DEPTHS, strict=False))
        self.down = nn.ModuleList(_twice(*pair) for pair in pairs)
        self.up = nn.ModuleList(
            _twice(low + high, high)
            for high, low in zip(_DEPTHS[-2::-1], _DEPTHS[:0:-1], strict=True)
        )
        self.pool, self.grow = nn.MaxPool2d(2), nn.Upsample(scale_factor=2, mode="nearest")
        self.head = nn.Conv2d(_DEPTHS[0], 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen = []
        for level, layer in enumerate(self.down):
            x = layer(x if level == 0 else self.pool(x))
            seen.append(x)
        for layer, before in zip(self.up, seen[-2::-1], strict=True):
            x = layer(torch.cat([self.grow(x), before], 1))
        result: torch.Tensor = self.head(x)
        return result


def _alive() -> UNet:
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        model = UNet().train()
        for layer in model.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.momentum = None  # the average of what it sees
        model(torch.rand(4, *_SHAPE) * 2 - 1)
        return model.eval()


def _images(count: int) -> list[tuple[torch.Tensor]]:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return [(torch.rand(1, *_SHAPE) * 2 - 1,) for _ in range(count)]


ModelUnderTest = _alive()
CalibrationInputs = _images(1)
ModelInputs = CalibrationInputs[0]
