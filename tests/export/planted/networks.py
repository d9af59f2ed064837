"""Small networks in which each planted fault changes an output."""

import torch
from torch import nn


class Residual(nn.Module):
    """Convolutions, one of them depthwise, additions, pooling and a linear layer."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.deep = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.point = nn.Conv2d(8, 8, 1)
        self.last = nn.Linear(8, 5)

    def forward(self, x):
        kept = torch.relu(self.first(x))
        x = self.point(torch.relu(self.deep(kept))) + kept
        return self.last(x.mean(dim=(2, 3)))


class Elementwise(nn.Module):
    """A product, a pad, bounds, a function and another order of dimensions."""

    def forward(self, x, y):
        x = torch.nn.functional.pad(x * y + 0.5, (1, 1, 1, 1), value=0.25)
        x = torch.clamp(x, -0.5, 0.75) - torch.relu(x)
        return torch.sigmoid(x).permute(0, 1, 3, 2)


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(12, 16)

    def forward(self, x):
        return torch.tanh(self.first(x)) * torch.sigmoid(x[:, :1])


class Rewritten(nn.Module):
    """Operators that a quantiser replaces by others before it quantises."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(12, 16)
        self.norm = nn.LayerNorm(16)

    def forward(self, x):
        x = torch.nn.functional.hardswish(self.first(x))
        x = self.norm(x) / (x.mean(-1, keepdim=True).abs() + 1.5)
        return torch.softmax(x, -1) * 3.0 - x


def rewritten():
    return Rewritten(), (torch.randn(1, 6, 12),)


def residual():
    return Residual(), (torch.randn(1, 3, 8, 8),)


def elementwise():
    return Elementwise(), (torch.randn(1, 4, 6, 5), torch.randn(1, 4, 6, 5))


def wide():
    return Wide(), (torch.randn(1, 12),)


class Uneven(nn.Module):
    """The weights of the first feature are as small as its values are large."""

    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(16, 24)
        self.scores = nn.Linear(24, 6)
        with torch.no_grad():
            self.hidden.weight[:, 0] /= FURTHER

    def forward(self, x):
        return self.scores(torch.relu(self.hidden(x)))


FURTHER = 200  # times the range of the other features


def uneven():
    """With inputs to calibrate, and others to evaluate."""
    samples = torch.rand(64, 1, 16) * 2 - 1
    samples[..., 0] *= FURTHER
    drawn = [(sample,) for sample in samples]
    return Uneven(), drawn[0], drawn[:24], drawn[25:]
