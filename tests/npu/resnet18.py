"""ResNet-18 as in He et al. 2015 (arXiv:1512.03385), table 1, on smaller images: for ``hil bench
npu``. Weights are drawn with a fixed seed; batch norms measure a few random images."""

from __future__ import annotations

import torch
from torch import nn

_SHAPE = (3, 128, 128)
_STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))


def _unit(inputs: int, outputs: int, kernel: int, stride: int) -> nn.Sequential:
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs))


class _Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = _unit(inputs, outputs, 3, stride)
        self.second = _unit(outputs, outputs, 3, 1)
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else _unit(inputs, outputs, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.shortcut(x) + self.second(torch.relu(self.first(x))))


class ResNet18(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [_unit(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        inputs = 64
        for outputs, stride in _STAGES:
            layers += [_Block(inputs, outputs, stride), _Block(outputs, outputs, 1)]
            inputs = outputs
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)]
        self.body = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.body(x)
        return result


def _alive() -> ResNet18:
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        model = ResNet18().train()
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
