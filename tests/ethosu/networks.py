"""MobileNetV2 as in Sandler et al. 2018 (arXiv:1801.04381), table 2, for the speed figures."""

from __future__ import annotations

import torch
from torch import nn

_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def _unit(inputs: int, outputs: int, kernel: int, stride: int, groups: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU6(),
    )


class _Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        layers = [_unit(inputs, hidden, 1, 1)] if expansion != 1 else []
        layers.append(_unit(hidden, hidden, 3, stride, hidden))
        layers.append(nn.Sequential(nn.Conv2d(hidden, outputs, 1, bias=False)))
        layers.append(nn.Sequential(nn.BatchNorm2d(outputs)))
        self.body = nn.Sequential(*layers)
        self.shortcut = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.shortcut else self.body(x)


class MobileNetV2(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [_unit(3, 32, 3, 2)]
        inputs = 32
        for expansion, outputs, count, stride in _STAGES:
            for index in range(count):
                layers.append(_Block(inputs, outputs, stride if index == 0 else 1, expansion))
                inputs = outputs
        layers += [_unit(inputs, 1280, 1, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        self.body = nn.Sequential(*layers, nn.Linear(1280, 1000))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.body(x)
        return result
