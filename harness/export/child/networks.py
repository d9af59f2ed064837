"""The *full* tier of the catalogue: networks that people deploy, in plain PyTorch.

Shapes and widths are those of the papers, and of torchvision where it has the network. Weights are
untrained; ``sensitivity`` makes them live.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

_IMAGE = (1, 3, 224, 224)
_CLASSES = 1000
_KEYWORDS = 12
_SOUND = (1, 49, 10)  # frames and features of a second of speech, as ds_cnn has them


class Network(nn.Sequential):
    """With an example input of ``shape``, between -1 and 1."""

    def __init__(self, shape: Sequence[int], *layers: nn.Module) -> None:
        super().__init__(*layers)
        self.example_input = (torch.rand(shape) * 2 - 1,)


class Residual(nn.Module):
    """The sum of two branches; without a second one, of the input."""

    def __init__(self, branch: nn.Module, other: nn.Module | None = None) -> None:
        super().__init__()
        self.branch, self.other = branch, other or nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.branch(x) + self.other(x)


class Joined(nn.Module):
    """The channels of several branches, side by side."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


def _conv(
    ins: int,
    outs: int,
    kernel: int = 1,
    stride: int = 1,
    groups: int = 1,
    activation: type[nn.Module] | None = nn.ReLU,
) -> nn.Sequential:
    """With batch norm and activation, as large as its input."""
    layers = [
        nn.Conv2d(ins, outs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outs),
    ]
    return nn.Sequential(*layers, *([activation()] if activation else []))


def _scores(features: int, classes: int = _CLASSES) -> tuple[nn.Module, ...]:
    return nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(features, classes)


class SqueezeExcite(nn.Module):
    """Scales each channel by what the whole image says of it (arXiv:1709.01507)."""

    def __init__(
        self, channels: int, inner: int, activation: type[nn.Module], gate: type[nn.Module]
    ) -> None:
        super().__init__()
        self.scale = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, inner, 1),
            activation(),
            nn.Conv2d(inner, channels, 1),
            gate(),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale(x)


def _inverted_residual(
    ins: int,
    hidden: int,
    outs: int,
    kernel: int,
    stride: int,
    activation: type[nn.Module],
    excite: nn.Module | None = None,
) -> nn.Module:
    """Widen, filter each channel, narrow (arXiv:1801.04381)."""
    widen = [] if hidden == ins else [_conv(ins, hidden, activation=activation)]
    branch = nn.Sequential(
        *widen,
        _conv(hidden, hidden, kernel, stride, hidden, activation),
        *([excite] if excite else []),
        _conv(hidden, outs, activation=None),
    )
    return Residual(branch) if stride == 1 and ins == outs else branch


def _stages(
    ins: int, rows: Sequence[tuple[int, int, int, int, int]], activation: type[nn.Module]
) -> list[nn.Module]:
    """Inverted residuals; rows of expansion, width, repeats, stride, kernel."""
    blocks = []
    for expansion, outs, repeats, stride, kernel in rows:
        for n in range(repeats):
            step = stride if n == 0 else 1
            blocks.append(_inverted_residual(ins, ins * expansion, outs, kernel, step, activation))
            ins = outs
    return blocks


def mobilenet_v2() -> Network:
    """arXiv:1801.04381, table 2."""
    rows = [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3)]
    rows += [(6, 96, 3, 1, 3), (6, 160, 3, 2, 3), (6, 320, 1, 1, 3)]
    relu6 = nn.ReLU6
    return Network(
        _IMAGE,
        _conv(3, 32, 3, 2, activation=relu6),
        *_stages(32, rows, relu6),
        _conv(320, 1280, activation=relu6),
        *_scores(1280),
    )
