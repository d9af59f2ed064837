"""Small networks, exported and computed by the wheel's own portable runtime."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer
from torch import nn


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(4, 4, 3, padding=1) for _ in range(4))

    def forward(self, x: torch.Tensor) -> Any:
        for layer in self.layers:
            x = torch.relu(layer(x)) + x
        first, second = x.split(2, 1)
        values, indices = torch.max(x.flatten(1), 1)
        return first + second, values, indices


class State(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.register_buffer("state", torch.zeros(1, 8))

    def forward(self, x: torch.Tensor) -> Any:
        self.state.copy_(torch.tanh(self.layer(x) + self.state))
        return self.layer(self.state) * x


class Branches(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        y = torch.relu(x)
        chosen = torch.cond(x.sum() > 0, lambda x, y: (x + 1) * y, lambda x, y: x.sin() - y, (x, y))
        return chosen + x


class Loop(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        from torch._higher_order_ops.scan import scan

        def combine(carry: torch.Tensor, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            carry = carry + row
            return carry.clone(), carry * 2

        doubled = x * 2
        carry, rows = scan(combine, doubled[0] - 1, doubled)
        return carry + x[0], rows


class Views(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        a = torch.relu(x)
        b = torch.sigmoid(a.view(8, 2))
        return a.view(4, 4) + b.view(4, 4), a.view(2, 8), torch.cat([a, x])


class Delegated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> Any:
        first = torch.relu(self.one(x))
        second = torch.sigmoid(self.other(first))
        outside = torch.erf(first)
        return self.one(second + outside), outside * second, first


NETWORKS: dict[str, tuple[type[nn.Module], tuple[int, ...]]] = {
    "residual": (Residual, (1, 4, 8, 8)),
    "state": (State, (1, 8)),
    "branches": (Branches, (4, 4)),
    "loop": (Loop, (5, 4)),
    "views": (Views, (4, 4)),
    "delegated": (Delegated, (1, 8)),
}


@cache
def exported(name: str) -> bytes:
    network, shape = NETWORKS[name]
    torch.manual_seed(1)
    model = network().eval().requires_grad_(False)
    partitioner = None
    if name == "delegated":
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

        partitioner = [XnnpackPartitioner()]
    with torch.no_grad():
        program = torch.export.export(model, (torch.randn(shape),))
        return bytes(
            to_edge_transform_and_lower(program, partitioner=partitioner).to_executorch().buffer
        )


def outputs(pte: bytes) -> list[bytes]:
    """Of two runs, one after the other, on the same input."""
    module = _load_for_executorch_from_buffer(pte)
    shape = module.method_meta("forward").input_tensor_meta(0).sizes()
    x = torch.randn(tuple(shape), generator=torch.Generator().manual_seed(2))
    found = [*module.run_method("forward", (x,)), *module.run_method("forward", (-x,))]
    return [tensor.numpy().tobytes() for tensor in found]
