"""MobileNetV2 as in Sandler et al. 2018 (arXiv:1801.04381), table 2: ``hil bench npu`` runs it.

A model file like a user's. Its weights are drawn with a fixed seed, and its batch norms measure
a few random images, without which the signal would fade.
"""

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


_SHAPE = (3, 224, 224)


def _alive() -> MobileNetV2:
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        model = MobileNetV2().train()
        for layer in model.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_in")
            elif isinstance(layer, nn.BatchNorm2d):
                layer.momentum = None  # the average of what it sees
        model(torch.rand(8, *_SHAPE) * 2 - 1)
        return model.eval()


def _images(count: int) -> list[tuple[torch.Tensor]]:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return [(torch.rand(1, *_SHAPE) * 2 - 1,) for _ in range(count)]


ModelUnderTest = _alive()
CalibrationInputs = _images(2)
ModelInputs = CalibrationInputs[0]
