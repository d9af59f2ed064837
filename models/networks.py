"""The *full* tier of the catalogue: networks that people deploy, in plain PyTorch.

Shapes and widths are those of the papers, and of torchvision where it has the network. The weights
are untrained; the exporter makes them live (``harness.export.child.sensitivity``).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

_IMAGE = (1, 3, 224, 224)
_CLASSES = 1000
_KEYWORDS = 12
_FRAMES, _FEATURES = 49, 10  # of a second of speech, as ds_cnn has them


class Network(nn.Sequential):
    """With an example input of ``shape``, between -1 and 1."""

    def __init__(self, shape: Sequence[int], *layers: nn.Module) -> None:
        super().__init__(*layers)
        self.example_input = (torch.rand(shape) * 2 - 1,)


class Residual(nn.Module):
    """The sum of a branch and of another one, or the input; then an activation."""

    def __init__(
        self, branch: nn.Module, other: nn.Module | None = None, last: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.branch, self.other = branch, other or nn.Identity()
        self.last = last or nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.branch(x) + self.other(x))


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


class Gated(nn.Module):
    """The input times a gate that the whole image opens: squeeze and excite (arXiv:1709.01507)."""

    def __init__(self, *gate: nn.Module) -> None:
        super().__init__()
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), *gate)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gate(x)


def _inverted_residual(
    ins: int, hidden: int, outs: int, middle: Sequence[nn.Module], activation: type[nn.Module]
) -> nn.Module:
    """Widen to ``hidden``, filter each channel (the ``middle``), narrow."""
    widen = [] if hidden == ins else [_conv(ins, hidden, activation=activation)]
    branch = nn.Sequential(*widen, *middle, _conv(hidden, outs, activation=None))
    strides = {layer.stride for layer in branch.modules() if isinstance(layer, nn.Conv2d)}
    return Residual(branch) if ins == outs and strides == {(1, 1)} else branch


# Expansion, width, repeats, stride and kernel of a stage.
Stage = tuple[int, int, int, int, int]


def _stages(
    ins: int, rows: Sequence[Stage], activation: type[nn.Module], *, excite: bool = False
) -> list[nn.Module]:
    """Stages of inverted residuals (arXiv:1801.04381); ``excite``: with a gate that has a quarter
    of the block's inputs inside, as EfficientNet has them."""
    blocks = []
    for expansion, outs, repeats, stride, kernel in rows:
        for n in range(repeats):
            hidden, step = ins * expansion, stride if n == 0 else 1
            middle = [_conv(hidden, hidden, kernel, step, hidden, activation)]
            if excite:
                inner = nn.Conv2d(hidden, ins // 4, 1), nn.Conv2d(ins // 4, hidden, 1)
                middle.append(Gated(inner[0], activation(), inner[1], nn.Sigmoid()))
            blocks.append(_inverted_residual(ins, hidden, outs, middle, activation))
            ins = outs
    return blocks


def _classifier(features: int, *layers: nn.Module) -> list[nn.Module]:
    """Of an image; ``layers`` end in the scores, or are one that makes them."""
    last = layers or (nn.Linear(features, _CLASSES),)
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), *last]


def mobilenet_v2() -> Network:
    """arXiv:1801.04381, table 2."""
    rows = [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3)]
    rows += [(6, 96, 3, 1, 3), (6, 160, 3, 2, 3), (6, 320, 1, 1, 3)]
    relu6 = nn.ReLU6
    first, last = _conv(3, 32, 3, 2, activation=relu6), _conv(320, 1280, activation=relu6)
    return Network(_IMAGE, first, *_stages(32, rows, relu6), last, *_classifier(1280))


def mnasnet() -> Network:
    """MnasNet-B1 (arXiv:1807.11626), as torchvision's mnasnet1_0."""
    rows = [(3, 24, 3, 2, 3), (3, 40, 3, 2, 5), (6, 80, 3, 2, 5), (6, 96, 2, 1, 3)]
    rows += [(6, 192, 4, 2, 5), (6, 320, 1, 1, 3)]
    first = [_conv(3, 32, 3, 2), _conv(32, 32, 3, 1, 32), _conv(32, 16, activation=None)]
    return Network(
        _IMAGE, *first, *_stages(16, rows, nn.ReLU), _conv(320, 1280), *_classifier(1280)
    )


def efficientnet_b0() -> Network:
    """arXiv:1905.11946, table 1."""
    rows = [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3)]
    rows += [(6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)]
    silu = nn.SiLU
    first, last = _conv(3, 32, 3, 2, activation=silu), _conv(320, 1280, activation=silu)
    blocks = _stages(32, rows, silu, excite=True)
    return Network(_IMAGE, first, *blocks, last, *_classifier(1280))


# Kernel, hidden width, width, gate's width (0: no gate), hard swish, stride (arXiv:1905.02244,
# table 2).
_MOBILENET_V3_SMALL = (
    (3, 16, 16, 8, False, 2),
    (3, 72, 24, 0, False, 2),
    (3, 88, 24, 0, False, 1),
    (5, 96, 40, 24, True, 2),
    (5, 240, 40, 64, True, 1),
    (5, 240, 40, 64, True, 1),
    (5, 120, 48, 32, True, 1),
    (5, 144, 48, 40, True, 1),
    (5, 288, 96, 72, True, 2),
    (5, 576, 96, 144, True, 1),
    (5, 576, 96, 144, True, 1),
)


def mobilenet_v3_small() -> Network:
    """arXiv:1905.02244, table 2."""
    swish = nn.Hardswish
    blocks, ins = [_conv(3, 16, 3, 2, activation=swish)], 16
    for kernel, hidden, outs, gate, hard, stride in _MOBILENET_V3_SMALL:
        activation = swish if hard else nn.ReLU
        middle = [_conv(hidden, hidden, kernel, stride, hidden, activation)]
        if gate:
            inner = nn.Conv2d(hidden, gate, 1), nn.Conv2d(gate, hidden, 1)
            middle.append(Gated(inner[0], nn.ReLU(), inner[1], nn.Hardsigmoid()))
        blocks.append(_inverted_residual(ins, hidden, outs, middle, activation))
        ins = outs
    scores = nn.Linear(576, 1024), swish(), nn.Linear(1024, _CLASSES)
    last = _conv(96, 576, activation=swish)
    return Network(_IMAGE, *blocks, last, *_classifier(576, *scores))


def _resnet(repeats: Sequence[int], expansion: int) -> Network:
    """arXiv:1512.03385, table 1; three convolutions in a block that expands."""
    layers: list[nn.Module] = [_conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    ins = 64
    for stage, count in enumerate(repeats):
        width = 64 << stage
        outs = width * expansion
        for n in range(count):
            stride = 2 if stage and n == 0 else 1
            if expansion == 1:
                first = [_conv(ins, width, 3, stride), _conv(width, outs, 3, activation=None)]
            else:
                first = [_conv(ins, width), _conv(width, width, 3, stride)]
                first.append(_conv(width, outs, activation=None))
            other = None if ins == outs else _conv(ins, outs, 1, stride, activation=None)
            layers.append(Residual(nn.Sequential(*first), other, nn.ReLU()))
            ins = outs
    return Network(_IMAGE, *layers, *_classifier(ins))


def resnet18() -> Network:
    return _resnet((2, 2, 2, 2), 1)


def resnet50() -> Network:
    return _resnet((3, 4, 6, 3), 4)


def squeezenet() -> Network:
    """SqueezeNet 1.1 (arXiv:1602.07360)."""

    def plain(ins: int, outs: int, kernel: int, stride: int = 1) -> nn.Sequential:
        padding = kernel // 2 if stride == 1 else 0
        return nn.Sequential(nn.Conv2d(ins, outs, kernel, stride, padding), nn.ReLU())

    def fire(ins: int, squeezed: int, outs: int) -> nn.Sequential:
        half = outs // 2
        return nn.Sequential(
            plain(ins, squeezed, 1), Joined(plain(squeezed, half, 1), plain(squeezed, half, 3))
        )

    def pool() -> nn.Module:
        return nn.MaxPool2d(3, 2, ceil_mode=True)

    return Network(
        _IMAGE,
        *(plain(3, 64, 3, 2), pool(), fire(64, 16, 128), fire(128, 16, 128), pool()),
        *(fire(128, 32, 256), fire(256, 32, 256), pool(), fire(256, 48, 384)),
        *(fire(384, 48, 384), fire(384, 64, 512), fire(512, 64, 512)),
        *(plain(512, _CLASSES, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
    )


class Shuffle(nn.Module):
    """Channels of two groups take turns (arXiv:1707.01083)."""

    def forward(self, x: Tensor) -> Tensor:
        batch, channels, height, width = x.shape
        return (
            x.view(batch, 2, channels // 2, height, width)
            .transpose(1, 2)
            .reshape(batch, channels, height, width)
        )


class HalfKept(nn.Module):
    """The first half of the channels beside what a branch makes of the second."""

    def __init__(self, branch: nn.Module) -> None:
        super().__init__()
        self.branch = branch

    def forward(self, x: Tensor) -> Tensor:
        kept, changed = x.chunk(2, 1)
        return torch.cat([kept, self.branch(changed)], 1)


def shufflenet_v2() -> Network:
    """Of width 0.5 (arXiv:1807.11164, table 5)."""

    def branch(ins: int, outs: int, stride: int) -> nn.Sequential:
        filtered = _conv(outs, outs, 3, stride, outs, None)
        return nn.Sequential(_conv(ins, outs), filtered, _conv(outs, outs))

    layers: list[nn.Module] = [_conv(3, 24, 3, 2), nn.MaxPool2d(3, 2, 1)]
    ins = 24
    for outs, repeats in ((48, 4), (96, 8), (192, 4)):
        half = outs // 2
        beside = nn.Sequential(_conv(ins, ins, 3, 2, ins, None), _conv(ins, half))
        layers += [Joined(beside, branch(ins, half, 2)), Shuffle()]
        for _ in range(repeats - 1):
            layers += [HalfKept(branch(half, half, 1)), Shuffle()]
        ins = outs
    return Network(_IMAGE, *layers, _conv(192, 1024), *_classifier(1024))


class Level(nn.Module):
    """One level of a U-Net: what is computed at half the size, beside the input's features."""

    def __init__(self, ins: int, width: int, below: nn.Module) -> None:
        super().__init__()
        self.down = nn.Sequential(_conv(ins, width, 3), _conv(width, width, 3))
        self.below = nn.Sequential(nn.MaxPool2d(2), below, nn.Upsample(scale_factor=2))
        self.up = nn.Sequential(_conv(3 * width, width, 3), _conv(width, width, 3))

    def forward(self, x: Tensor) -> Tensor:
        features = self.down(x)
        return self.up(torch.cat([features, self.below(features)], 1))


def unet() -> Network:
    """A small U-Net (arXiv:1505.04597): three levels, two classes."""
    bottom = nn.Sequential(_conv(32, 64, 3), _conv(64, 64, 3))
    return Network((1, 3, 96, 96), Level(3, 16, Level(16, 32, bottom)), nn.Conv2d(16, 2, 1))


class LastState(nn.Module):
    """What a recurrence says after the last frame."""

    def __init__(self, recurrence: nn.RNNBase) -> None:
        super().__init__()
        self.recurrence = recurrence

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.recurrence(x)
        return states[:, -1]


def _keywords(recurrence: type[nn.RNNBase]) -> Network:
    """Keyword spotting (arXiv:1711.07128, of the smallest size)."""
    layer = LastState(recurrence(_FEATURES, 64, batch_first=True))
    return Network((1, _FRAMES, _FEATURES), layer, nn.Linear(64, _KEYWORDS))


def kws_gru() -> Network:
    return _keywords(nn.GRU)


def kws_lstm() -> Network:
    return _keywords(nn.LSTM)


class Mean(nn.Module):
    """Over one dimension."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        return x.mean(self.dim)


def tcn() -> Network:
    """Temporal convolutions of growing dilation (arXiv:1803.01271) over 100 frames."""
    layers: list[nn.Module] = []
    for n, ins in enumerate((_FEATURES, 32, 32, 32)):
        layers += [nn.Conv1d(ins, 32, 3, padding=1 << n, dilation=1 << n), nn.ReLU()]
    return Network((1, _FEATURES, 100), *layers, Mean(2), nn.Linear(32, _KEYWORDS))


def transformer_layer() -> Network:
    """One layer of an encoder (arXiv:1706.03762): 16 tokens of 64 features, 4 heads."""
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    return Network((1, 16, 64), layer, Mean(1), nn.Linear(64, _KEYWORDS))


def wav2letter() -> Network:
    """The small one of Arm's ML zoo (arXiv:1609.03193): 296 frames of 39 features to 29 letters."""
    rows = [(39, 250, 48, 2), *[(250, 250, 7, 1)] * 7, (250, 2000, 32, 1), (2000, 2000, 1, 1)]
    layers: list[nn.Module] = []
    for ins, outs, kernel, stride in rows:
        layers += [nn.Conv1d(ins, outs, kernel, stride, kernel // 2), nn.ReLU()]
    return Network((1, 39, 296), *layers, nn.Conv1d(2000, 29, 1))


def audio_autoencoder() -> Network:
    """Of spectrograms, for anomalies: convolutions down to 1/8 of the size and up again."""
    widths = (1, 16, 32, 64)
    layers: list[nn.Module] = []
    for ins, outs in pairwise(widths):
        layers += [nn.Conv2d(ins, outs, 3, 2, 1), nn.ReLU()]
    for ins, outs in pairwise(widths[::-1]):
        layers += [nn.ConvTranspose2d(ins, outs, 2, 2), nn.ReLU()]
    return Network((1, 1, 64, 64), *layers[:-1])
