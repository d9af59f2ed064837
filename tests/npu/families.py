"""Random single operators, a family at a time: shapes, strides, padding, dilation, scales."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.late import Late

torch = Late("torch")
nn = Late("torch.nn")
F = Late("torch.nn.functional")

Draw = np.random.Generator


@dataclass(frozen=True)
class Case:
    module: nn.Module
    inputs: tuple[torch.Tensor, ...]
    bits: int = 8
    per_channel: bool = True
    quantised: bool = True


def _call(function: Callable[..., torch.Tensor]) -> nn.Module:
    """A function as a module, which torch.export asks for."""

    class Call(nn.Module):
        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            return function(*inputs)

    return Call()


def _pick(g: Draw, *options: int) -> int:
    return int(g.choice(options))


def _tensor(g: Draw, *shape: int) -> torch.Tensor:
    width = float(g.uniform(0.2, 6.0))
    centre = float(g.uniform(-2.0, 2.0))
    return torch.from_numpy(g.uniform(centre - width, centre + width, shape)).float()


def _seeded(g: Draw) -> None:
    torch.manual_seed(int(g.integers(1 << 30)))


def _bits(g: Draw) -> int:
    return _pick(g, 8, 8, 16)


def _with_activation(g: Draw, layer: nn.Module) -> nn.Module:
    after = (nn.Identity(), nn.ReLU(), nn.ReLU6(), nn.Hardtanh(-0.5, 0.7))[_pick(g, 0, 1, 2, 3)]
    return nn.Sequential(layer, after)


def convolution(g: Draw) -> Case:
    _seeded(g)
    kernel = (_pick(g, 1, 2, 3, 4, 5, 7), _pick(g, 1, 2, 3, 5, 9))
    dilation = (_pick(g, 1, 1, 2), _pick(g, 1, 1, 2))
    inputs, outputs = _pick(g, 1, 2, 3, 8, 15, 17, 33, 70), _pick(g, 1, 3, 8, 12, 16, 24, 40, 65)
    size = [dilation[n] * (kernel[n] - 1) + 1 + _pick(g, 0, 1, 3, 6, 11) for n in (0, 1)]
    pads = (_pick(g, 0, kernel[0] // 2), _pick(g, 0, kernel[1] // 2))
    layer = nn.Conv2d(
        inputs,
        outputs,
        kernel,
        (_pick(g, 1, 2, 3), _pick(g, 1, 2, 3)),
        pads,
        dilation,
        bias=bool(_pick(g, 0, 1)),
    )
    shape = (1, inputs, size[0], size[1])
    return Case(_with_activation(g, layer), (_tensor(g, *shape),), _bits(g), bool(_pick(g, 0, 1)))


def pointwise(g: Draw) -> Case:
    _seeded(g)
    inputs, outputs = _pick(g, 1, 7, 16, 48, 130, 300), _pick(g, 1, 5, 16, 96, 140, 260)
    layer = nn.Conv2d(inputs, outputs, 1, bias=bool(_pick(g, 0, 1)))
    data = _tensor(g, 1, inputs, _pick(g, 1, 5, 9), _pick(g, 1, 4, 13))
    return Case(_with_activation(g, layer), (data,), _bits(g), bool(_pick(g, 0, 1)))


def depthwise(g: Draw) -> Case:
    _seeded(g)
    kernel = (_pick(g, 1, 2, 3, 5, 7), _pick(g, 1, 3, 4, 5))
    channels, dilation = _pick(g, 2, 3, 8, 16, 20, 48, 67), _pick(g, 1, 1, 2)
    size = [dilation * (kernel[n] - 1) + 1 + _pick(g, 0, 1, 4, 9) for n in (0, 1)]
    layer = nn.Conv2d(
        channels,
        channels,
        kernel,
        _pick(g, 1, 2),
        (kernel[0] // 2 * _pick(g, 0, 1), kernel[1] // 2 * _pick(g, 0, 1)),
        dilation,
        groups=channels,
    )
    data = _tensor(g, 1, channels, size[0], size[1])
    return Case(_with_activation(g, layer), (data,), _bits(g), bool(_pick(g, 0, 1)))


def transposed(g: Draw) -> Case:
    _seeded(g)
    inputs, outputs, kernel = _pick(g, 1, 4, 16), _pick(g, 1, 5, 16), _pick(g, 2, 3, 4)
    layer = nn.ConvTranspose2d(inputs, outputs, kernel, 2, _pick(g, 0, 1))
    data = _tensor(g, 1, inputs, _pick(g, 2, 5, 8), _pick(g, 2, 3, 7))
    return Case(layer, (data,), 8, False)


def linear(g: Draw) -> Case:
    _seeded(g)
    inputs, outputs = _pick(g, 1, 5, 16, 100, 400), _pick(g, 1, 3, 16, 37, 200)
    data = _tensor(g, _pick(g, 1, 1, 3), inputs)
    return Case(_with_activation(g, nn.Linear(inputs, outputs)), (data,), _bits(g))


def pooling(g: Draw) -> Case:
    kernel = (_pick(g, 1, 2, 3, 5), _pick(g, 1, 2, 3, 4))
    stride = (_pick(g, 1, 2, 3), _pick(g, 1, 2, 3))
    pads = (_pick(g, 0, kernel[0] // 2), _pick(g, 0, kernel[1] // 2))
    size = (kernel[0] + _pick(g, 0, 3, 8), kernel[1] + _pick(g, 0, 2, 9))
    shape = (1, _pick(g, 1, 3, 16, 21), *size)
    layer: nn.Module = nn.MaxPool2d(kernel, stride, pads)
    if _pick(g, 0, 1):
        layer = nn.AvgPool2d(kernel, stride, pads, count_include_pad=bool(_pick(g, 0, 1)))
    return Case(layer, (_tensor(g, *shape),), _bits(g))


def _broadcast_pair(g: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    shape = [1, _pick(g, 1, 3, 16, 19), _pick(g, 1, 4, 7), _pick(g, 1, 2, 9)]
    other = [1 if _pick(g, 0, 0, 1) else size for size in shape]
    pair = [_tensor(g, *shape), _tensor(g, *other)]
    if _pick(g, 0, 1):
        pair.reverse()
    return pair[0], pair[1]


def arithmetic(g: Draw) -> Case:
    functions = (torch.add, torch.sub, torch.mul, torch.minimum, torch.maximum)
    return Case(_call(functions[_pick(g, *range(5))]), _broadcast_pair(g), _bits(g))


def activation(g: Draw) -> Case:
    functions: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
        torch.sigmoid,
        torch.tanh,
        F.relu,
        F.hardswish,
        F.silu,
        F.gelu,
        F.hardsigmoid,
        F.elu,
        F.leaky_relu,
        torch.abs,
        torch.exp,
        torch.neg,
    )
    shape = (1, _pick(g, 1, 5, 16), _pick(g, 1, 6), _pick(g, 1, 3, 8))
    function = functions[_pick(g, *range(len(functions)))]
    return Case(_call(function), (_tensor(g, *shape),), _bits(g))


def reduction(g: Draw) -> Case:
    axis, keep = _pick(g, 1, 2, 3), bool(_pick(g, 0, 1))
    functions = (
        lambda x: torch.mean(x, axis, keep),
        lambda x: torch.sum(x, axis, keep),
        lambda x: torch.amax(x, axis, keep),
        lambda x: torch.amin(x, axis, keep),
        lambda x: torch.softmax(x, axis),
    )
    shape = (1, _pick(g, 1, 4, 16), _pick(g, 1, 3, 10), _pick(g, 2, 5, 17))
    return Case(_call(functions[_pick(g, *range(5))]), (_tensor(g, *shape),), _pick(g, 8, 8, 16))


def movement(g: Draw) -> Case:
    shape = (1, _pick(g, 2, 5, 16), _pick(g, 2, 4, 9), _pick(g, 3, 8, 11))
    order = tuple(int(n) for n in (0, *(1 + g.permutation(3))))
    axis = _pick(g, 1, 2, 3)
    functions = (
        lambda x: torch.permute(x, order).contiguous(),
        lambda x: torch.cat([x, x], axis),
        lambda x: x.narrow(axis, 1, 1),
        lambda x: F.pad(x, (1, 2, 0, 1)),
        lambda x: x.reshape(1, -1, shape[1]),
        lambda x: x.repeat(1, 2, 1, 2),
        lambda x: torch.flip(x, (axis,)),
        lambda x: x.transpose(1, 2).contiguous() + 1.0,
    )
    return Case(_call(functions[_pick(g, *range(8))]), (_tensor(g, *shape),), _bits(g))


def matrix(g: Draw) -> Case:
    rows, inner, columns = _pick(g, 1, 4, 9), _pick(g, 1, 5, 16, 33), _pick(g, 1, 3, 16, 20)
    batch = _pick(g, 1, 1, 2, 3)
    pair = (_tensor(g, batch, rows, inner), _tensor(g, batch, inner, columns))
    return Case(_call(torch.bmm), pair, 8)


def resizing(g: Draw) -> Case:
    mode = ("nearest", "bilinear")[_pick(g, 0, 1)]
    factor = _pick(g, 2, 2, 4)
    corners = None if mode == "nearest" else bool(_pick(g, 0, 1))

    def enlarge(x: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x, scale_factor=factor, mode=mode, align_corners=corners)

    shape = (1, _pick(g, 1, 3, 16), _pick(g, 2, 3, 7), _pick(g, 2, 5))
    return Case(_call(enlarge), (_tensor(g, *shape),), 8)


def comparison(g: Draw) -> Case:
    """U85: comparisons feed a where, so that the output is a number."""
    compare = (torch.eq, torch.ge, torch.gt, torch.lt, torch.le)[_pick(g, *range(5))]

    def choose(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.where(compare(a, b), a, b)

    shape = (1, _pick(g, 1, 3, 16), _pick(g, 1, 4), _pick(g, 2, 9))
    return Case(_call(choose), (_tensor(g, *shape), _tensor(g, *shape)), 8)


def integers(g: Draw) -> Case:
    """U85: 32-bit integers without quantisation."""
    functions = (
        torch.bitwise_and,
        torch.bitwise_or,
        torch.bitwise_xor,
        lambda a, b: torch.bitwise_right_shift(a, b & 15),
        lambda a, b: torch.bitwise_xor(torch.bitwise_not(a), b),
        lambda a, b: torch.bitwise_not(a) & b,
    )
    shape = (1, _pick(g, 1, 3, 16), _pick(g, 1, 4), _pick(g, 2, 9))
    pair = tuple(
        torch.from_numpy(g.integers(-100, 100, shape)).to((torch.int8, torch.int16, torch.int32)[k])
        for k in [_pick(g, 0, 1, 2)] * 2
    )
    return Case(_call(functions[_pick(g, *range(6))]), pair, quantised=False)


def indexing(g: Draw) -> Case:
    """U85: gather along rows."""
    rows, width, count = _pick(g, 2, 5, 9), _pick(g, 1, 4, 16), _pick(g, 1, 3, 6)
    index = torch.from_numpy(g.integers(0, rows, (count,))).to(torch.int32)

    def gather(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        return x[places]

    return Case(_call(gather), (_tensor(g, rows, width), index), 8)


COMMON = {
    f.__name__: f
    for f in (
        convolution,
        pointwise,
        depthwise,
        transposed,
        linear,
        pooling,
        arithmetic,
        activation,
        reduction,
        movement,
        matrix,
        resizing,
    )
}
U85_ONLY = {f.__name__: f for f in (comparison, integers, indexing)}


def padded_average(g: Draw) -> Case:
    layer = nn.AvgPool2d((3, 3), 2, 1, count_include_pad=False)
    return Case(layer, (_tensor(g, 1, 5, 9, 8),))


def wide_table(g: Draw) -> Case:
    return Case(_call(torch.tanh), (_tensor(g, 1, 4, 6, 8),), 16)


def bilinear(g: Draw) -> Case:
    def enlarge(x: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)

    return Case(_call(enlarge), (_tensor(g, 1, 3, 5, 4),))


# rules that random draws may miss: always recorded
PINNED = {f.__name__: f for f in (padded_average, wide_table, bilinear)}
