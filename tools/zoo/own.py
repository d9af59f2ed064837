"""Networks as people deploy them that neither timm nor transformers has."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tools.zoo.live import Draw, floats, tokens


class DsTcn(nn.Module):
    """A keyword spotter of dilated depthwise convolutions along the time."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(16, 24, 1)
        self.depthwise = nn.ModuleList(
            nn.Conv2d(24, 24, (1, 3), padding=(0, d), dilation=(1, d), groups=24) for d in (1, 2, 4)
        )
        self.pointwise = nn.ModuleList(nn.Conv2d(24, 24, 1) for _ in range(3))
        self.last = nn.Linear(24, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.first(x))
        for deep, wide in zip(self.depthwise, self.pointwise, strict=True):
            x = x + F.relu(wide(deep(x)))
        return self.last(x.mean((2, 3)))


def ds_tcn() -> tuple[nn.Module, Draw]:
    return DsTcn(), floats((1, 16, 1, 32))


class StftDetector(nn.Module):
    """A short-time Fourier transform as two convolutions with fixed weights, then a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.real = nn.Conv1d(1, 17, 32, stride=16, bias=False)
        self.imaginary = nn.Conv1d(1, 17, 32, stride=16, bias=False)
        self.classify = nn.Sequential(nn.Conv1d(17, 16, 3, padding=1), nn.ReLU(), nn.Flatten())
        self.last = nn.Linear(16 * 15, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        power = self.real(x) ** 2 + self.imaginary(x) ** 2
        return self.last(self.classify(torch.log1p(power)))


def stft_detector() -> tuple[nn.Module, Draw]:
    return StftDetector(), floats((1, 1, 256))


class Siamese(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *(nn.Conv2d(1, 8, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 12, 3), nn.ReLU()),
            *(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12 * 25, 32)),
        )
        self.last = nn.Linear(32, 1)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.last((self.features(x) - self.features(y)).abs()))


def siamese() -> tuple[nn.Module, Draw]:
    return Siamese(), floats((1, 1, 28, 28), (1, 1, 28, 28))


class MultiHead(nn.Module):
    """A detector: boxes and scores of two scales, joined."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU6(), nn.Conv2d(16, 24, 3, 2, 1), nn.ReLU6()
        )
        self.down = nn.Sequential(nn.Conv2d(24, 32, 3, 2, 1), nn.ReLU6())
        self.boxes = nn.ModuleList(nn.Conv2d(n, 8, 1) for n in (24, 32))
        self.scores = nn.ModuleList(nn.Conv2d(n, 6, 1) for n in (24, 32))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        near = self.stem(x)
        scales = (near, self.down(near))
        boxes = [head(y).flatten(2) for head, y in zip(self.boxes, scales, strict=True)]
        scores = [head(y).flatten(2) for head, y in zip(self.scores, scales, strict=True)]
        return torch.cat(boxes, 2), torch.sigmoid(torch.cat(scores, 2))


def multi_head() -> tuple[nn.Module, Draw]:
    return MultiHead(), floats((1, 3, 32, 32))


def conv3d() -> tuple[nn.Module, Draw]:
    network = nn.Sequential(
        *(nn.Conv3d(3, 8, 3, (1, 2, 2), 1), nn.ReLU(), nn.MaxPool3d((1, 2, 2))),
        *(nn.Conv3d(8, 8, 3, 2, 1), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(8, 4)),
    )
    return network, floats((1, 3, 4, 16, 16))


class GruState(nn.Module):
    """One step; the caller passes the state from call to call."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.cell = nn.Linear(22, 24), nn.GRUCell(24, 24)
        self.last = nn.Linear(24, 8)

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        state = self.cell(torch.tanh(self.first(x)), state)
        return torch.sigmoid(self.last(state)), state


def gru_state() -> tuple[nn.Module, Draw]:
    return GruState(), floats((1, 22), (1, 24))


class EmbeddingGather(nn.Module):
    """Words to vectors, and the vector of the largest value of each."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.last = nn.Embedding(60, 16), nn.Linear(16, 5)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        vectors = self.embedding(words)
        best = vectors.sum(-1).argmax(1)
        chosen = torch.gather(vectors, 1, best.view(1, 1, 1).expand(1, 1, 16))
        return self.last(vectors.mean(1) + chosen[:, 0])


def embedding_gather() -> tuple[nn.Module, Draw]:
    return EmbeddingGather(), tokens(60, 1, 12)


def group_norm() -> tuple[nn.Module, Draw]:
    network = nn.Sequential(
        *(nn.Conv2d(3, 16, 3, 2, 1), nn.GroupNorm(4, 16), nn.SiLU(), nn.Conv2d(16, 16, 3, 2, 1)),
        *(nn.GroupNorm(2, 16), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 6)),
    )
    return network, floats((1, 3, 32, 32))


class UnetSkip(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU6())
        self.deep = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU6())
        self.up = nn.ConvTranspose2d(16, 8, 2, 2)
        self.last = nn.Conv2d(16, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        near = self.first(x)
        return self.last(torch.cat((near, self.up(self.deep(near))), 1))


def unet_skip() -> tuple[nn.Module, Draw]:
    return UnetSkip(), floats((1, 1, 16, 16))


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.recurrent, self.last = nn.LSTM(8, 12, batch_first=True), nn.Linear(12, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.recurrent(x)[0][:, -1])


def lstm() -> tuple[nn.Module, Draw]:
    return Lstm(), floats((1, 5, 8))


class AttentionByHand(nn.Module):
    """As papers write it, with two matrix products and a softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.three, self.last = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.three(x).chunk(3, -1)
        return self.last(torch.softmax(q @ k.transpose(-1, -2) / 4.0, -1) @ v)


def attention_by_hand() -> tuple[nn.Module, Draw]:
    return AttentionByHand(), floats((1, 8, 16))


def autoencoder_1d() -> tuple[nn.Module, Draw]:
    network = nn.Sequential(
        *(nn.Conv1d(1, 8, 5, 2, 2), nn.ReLU(), nn.Conv1d(8, 4, 5, 2, 2), nn.ReLU()),
        *(nn.ConvTranspose1d(4, 8, 4, 2, 1), nn.ReLU(), nn.ConvTranspose1d(8, 1, 4, 2, 1)),
    )
    return network, floats((1, 1, 64))
