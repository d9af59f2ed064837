"""Families of random TOSA operators with windows or weights: convolutions, pools, products."""

from __future__ import annotations

import numpy as np
import tosa_serializer as ts

from tests.npu.tosa_graph import (
    INT8,
    INT16,
    INT32,
    INT48,
    LIMITS,
    Array,
    Graph,
    Value,
    attributes,
)

Draw = np.random.Generator


def pick(g: Draw, *options: int) -> int:
    return int(g.choice(options))


def chance(g: Draw, share: float = 0.5) -> bool:
    return bool(g.random() < share)


def scale(g: Draw, factor: float) -> tuple[int, int]:
    """A multiplier and shift near ``factor``, as quantisation makes them."""
    wanted = factor * float(g.uniform(0.3, 1.5))
    mantissa, exponent = np.frexp(wanted)
    multiplier, shift = round(float(mantissa) * (1 << 31)), 31 - int(exponent)
    return min(multiplier, (1 << 31) - 1), min(max(shift, 2), 62)


def short_scale(g: Draw, factor: float) -> tuple[int, int]:
    """The same with 15 bits, for 48-bit accumulators."""
    multiplier, shift = scale(g, factor)
    return min((multiplier >> 16) + 1, 32767), shift - 16


def zero_point(g: Draw, dtype: object) -> int:
    return int(g.integers(-128, 128)) if dtype == INT8 else 0


def _conv_scales(g: Draw, count: int, elements: int, wide: bool) -> list[tuple[int, int]]:
    """Outputs fill their range: the sum's deviation is about 50 * 70 * sqrt(elements)."""
    factor = 60.0 / (50 * 70 * max(1.0, elements**0.5))
    make = short_scale if wide else scale
    channels = count if chance(g) else 1
    return [make(g, factor) for _ in range(channels)]


def _clamped(g: Draw, graph: Graph, value: Value) -> Value:
    if chance(g, 0.7):
        return value
    low, high = LIMITS[value.dtype]
    bounds = sorted(int(v) for v in g.integers(low, high + 1, 2))
    size = 1 if value.dtype == INT8 else 2
    attr = attributes(
        "Clamp",
        min_val=list(bounds[0].to_bytes(size, "little", signed=True)),
        max_val=list(bounds[1].to_bytes(size, "little", signed=True)),
        nan_mode=ts.NanPropagationMode.PROPAGATE,
    )
    return graph.op("CLAMP", [value], value.shape, value.dtype, attr)


def _weighted(
    g: Draw,
    graph: Graph,
    kind: str,
    x: Value,
    weights: tuple[int, ...],
    out: tuple[int, ...],
    facts: dict[str, object],
    elements: int,
) -> Value:
    """A convolution of some kind with bias, rescaled to the input's type."""
    values = g.integers(-127, 128, weights)
    if chance(g, 0.2):
        values = values * (g.random(weights) < 0.2)
    return _with_weights(g, graph, kind, x, values, out, facts, elements)


def _with_weights(
    g: Draw,
    graph: Graph,
    kind: str,
    x: Value,
    values: Array,
    out: tuple[int, ...],
    facts: dict[str, object],
    elements: int,
) -> Value:
    wide = x.dtype == INT16
    sums = INT48 if wide else INT32
    attr = attributes(kind, local_bound=False, acc_type=sums, **facts)
    parts = (
        x,
        graph.const(values, INT8),
        graph.const(g.integers(-3000, 3000, out[3]), sums),
        graph.const([zero_point(g, x.dtype)], x.dtype),
        graph.const([0], INT8),
    )
    operator = {"Conv2d": "CONV2D", "DepthwiseConv2d": "DEPTHWISE_CONV2D"}
    total = graph.op(operator.get(kind, "TRANSPOSE_CONV2D"), parts, out, sums, attr)
    scales = _conv_scales(g, out[3], elements * (200 if wide else 1), wide)
    result = graph.rescale(total, x.dtype, scales, (0, zero_point(g, x.dtype)))
    return _clamped(g, graph, result)


def _window(
    g: Draw, kernel: tuple[int, int], dilations: tuple[int, int]
) -> tuple[tuple[int, int], tuple[int, int], list[int], tuple[int, int]]:
    """Input size, stride, padding (top, bottom, left, right), output size: they fit exactly."""
    size, out, stride, pads = [], [], [], []
    counts = (50,) if chance(g, 0.08) else (1, 2, 3, 5, 8)  # large maps go in several steps
    for axis in (0, 1):
        reach = dilations[axis] * (kernel[axis] - 1) + 1
        step = pick(g, 1, 1, 2, 3)
        before, after = (int(v) for v in g.integers(0, min(reach, 4), 2))
        count = pick(g, *counts)
        while (count - 1) * step + reach - before - after < 1:
            count += 1
        size.append((count - 1) * step + reach - before - after)
        out.append(count)
        stride.append(step)
        pads += [before, after]
    return (size[0], size[1]), (stride[0], stride[1]), pads, (out[0], out[1])


def _dilations(g: Draw) -> tuple[int, int]:
    return pick(g, 1, 1, 2), pick(g, 1, 1, 2)


def _input_type(g: Draw) -> object:
    return INT16 if chance(g, 0.3) else INT8


def convolution(g: Draw, graph: Graph, target: str) -> None:
    kernel = (pick(g, 1, 2, 3, 4, 5, 7), pick(g, 1, 2, 3, 5, 9))
    dilations = _dilations(g)
    size, stride, pads, out = _window(g, kernel, dilations)
    inputs, outputs = pick(g, 1, 2, 3, 8, 15, 17, 33, 70), pick(g, 1, 3, 8, 12, 16, 24, 40, 65)
    x = graph.input((1, *size, inputs), _input_type(g))
    facts = {"pad": pads, "stride": list(stride), "dilation": list(dilations)}
    weights = (outputs, *kernel, inputs)
    elements = kernel[0] * kernel[1] * inputs
    graph.output(_weighted(g, graph, "Conv2d", x, weights, (1, *out, outputs), facts, elements))


def sliced_convolution(g: Draw, graph: Graph, target: str) -> None:
    """As ExecuTorch lowers what a stride does not divide; Vela makes one operation of the two."""
    _sliced(g, graph, _dilations(g), (pick(g, 2, 3, 4), pick(g, 2, 3, 5)))


def sliced_dilated_by_three(g: Draw, graph: Graph, target: str) -> None:
    """What Vela 5.1.0 compiles wrongly: the same with padding and a dilation of 3."""
    _sliced(g, graph, (3, 3), (3, 2))


def _sliced(
    g: Draw, graph: Graph, dilations: tuple[int, int], kernel: tuple[int, int], kind: object = INT8
) -> None:
    stride, pads, out, depth = 3, [1, 0, 1, 0], (3, 6), pick(g, 3, 4, 16)
    size = [(n - 1) * stride + d * (k - 1) for n, d, k in zip(out, dilations, kernel, strict=True)]
    rest = (pick(g, 0, 1, 2), pick(g, 1, 2))
    x = graph.input((1, size[0] + rest[0], size[1] + rest[1], depth), kind)
    cut = (1, *size, depth)
    parts = (x, graph.shape([0] * 4), graph.shape(cut))
    x = graph.op("SLICE", parts, cut, kind, attributes("Slice"))
    facts = {"pad": pads, "stride": [stride, stride], "dilation": list(dilations)}
    weights, elements = (6, *kernel, depth), kernel[0] * kernel[1] * depth
    graph.output(_weighted(g, graph, "Conv2d", x, weights, (1, *out, 6), facts, elements))


def pointwise(g: Draw, graph: Graph, target: str) -> None:
    """As ExecuTorch lowers linear layers too."""
    inputs, outputs = pick(g, 1, 7, 16, 48, 130, 300), pick(g, 1, 5, 16, 96, 140, 260)
    size = (pick(g, 1, 5, 9), pick(g, 1, 4, 13))
    x = graph.input((1, *size, inputs), _input_type(g))
    facts = {"pad": [0] * 4, "stride": [1, 1], "dilation": [1, 1]}
    out = (1, *size, outputs)
    graph.output(_weighted(g, graph, "Conv2d", x, (outputs, 1, 1, inputs), out, facts, inputs))


def sparse(g: Draw, graph: Graph, target: str) -> None:
    """Two of every four weights along the input channels are 0: Vela stores only the others."""
    kernel = pick(g, 1, 1, 3)
    inputs, outputs = pick(g, 16, 64, 128, 200), pick(g, 16, 33, 64, 128)
    size, step = (pick(g, 1, 3, 8), pick(g, 2, 5, 8)), pick(g, 1, 2) if kernel > 1 else 1
    values = g.integers(-127, 128, (outputs, kernel, kernel, inputs // 4, 4))
    order = np.argsort(g.random(values.shape), axis=-1)
    values = np.where(order < 2, 0, values).reshape(outputs, kernel, kernel, inputs)
    x = graph.input((1, *((n - 1) * step + kernel for n in size), inputs), _input_type(g))
    facts = {"pad": [0] * 4, "stride": [step, step], "dilation": [1, 1]}
    out, elements = (1, *size, outputs), kernel * kernel * inputs
    graph.output(_with_weights(g, graph, "Conv2d", x, values, out, facts, elements))


def depthwise(g: Draw, graph: Graph, target: str) -> None:
    kernel = (pick(g, 1, 2, 3, 5, 7), pick(g, 1, 3, 4, 5))
    dilations = _dilations(g)
    size, stride, pads, out = _window(g, kernel, dilations)
    channels = pick(g, 1, 2, 3, 8, 16, 20, 48, 67)
    x = graph.input((1, *size, channels), _input_type(g))
    facts = {"pad": pads, "stride": list(stride), "dilation": list(dilations)}
    weights, elements = (*kernel, channels, 1), kernel[0] * kernel[1]
    graph.output(
        _weighted(g, graph, "DepthwiseConv2d", x, weights, (1, *out, channels), facts, elements)
    )


def transposed(g: Draw, graph: Graph, target: str) -> None:
    inputs, outputs, kernel = pick(g, 1, 4, 16), pick(g, 1, 5, 16), pick(g, 2, 3, 4)
    size, cut = (pick(g, 2, 5, 8), pick(g, 2, 3, 7)), pick(g, 0, 1)
    x = graph.input((1, *size, inputs), INT8)
    out = tuple((n - 1) * 2 + kernel - 2 * cut for n in size)
    facts = {"out_pad": [-cut] * 4, "stride": [2, 2]}
    weights, elements = (outputs, kernel, kernel, inputs), kernel * kernel * inputs // 4
    graph.output(
        _weighted(g, graph, "TransposeConv2d", x, weights, (1, *out, outputs), facts, elements)
    )


def _pool_window(g: Draw) -> tuple[dict[str, object], tuple[int, int], tuple[int, int]]:
    kernel = (pick(g, 1, 2, 3, 5), pick(g, 1, 2, 3, 4))
    size, stride, pads, out = _window(g, kernel, (1, 1))
    limit = [min(p, kernel[n // 2] - 1) for n, p in enumerate(pads)]
    size = (size[0] + sum(pads[:2]) - sum(limit[:2]), size[1] + sum(pads[2:]) - sum(limit[2:]))
    return {"kernel": list(kernel), "stride": list(stride), "pad": limit}, size, out


def maximum_pool(g: Draw, graph: Graph, target: str) -> None:
    facts, size, out = _pool_window(g)
    depth = pick(g, 1, 3, 16, 21)
    x = graph.input((1, *size, depth), _input_type(g))
    attr = attributes("MaxPool2d", nan_mode=ts.NanPropagationMode.PROPAGATE, **facts)
    graph.output(graph.op("MAX_POOL2D", [x], (1, *out, depth), x.dtype, attr))


def average_pool(g: Draw, graph: Graph, target: str) -> None:
    facts, size, out = _pool_window(g)
    depth = pick(g, 1, 3, 16, 21)
    x = graph.input((1, *size, depth), _input_type(g))
    zero = zero_point(g, x.dtype)
    parts = (x, graph.const([zero], x.dtype), graph.const([zero], x.dtype))
    attr = attributes("AvgPool2d", acc_type=INT32, **facts)
    graph.output(graph.op("AVG_POOL2D", parts, (1, *out, depth), x.dtype, attr))


def matrix_product(g: Draw, graph: Graph, target: str) -> None:
    """int8 only: Vela 5.1.0 has no 16-bit MATMUL."""
    batch, rows = pick(g, 1, 1, 2, 3), pick(g, 1, 4, 9)
    inner, columns = pick(g, 1, 5, 16, 33), pick(g, 1, 3, 16, 20)
    a, b = graph.input((batch, rows, inner), INT8), graph.input((batch, inner, columns), INT8)
    zeros = [graph.const([zero_point(g, INT8)], INT8) for _ in (a, b)]
    sums = graph.op("MATMUL", (a, b, *zeros), (batch, rows, columns), INT32, attributes("MatMul"))
    factor = 60.0 / (100 * 100 * inner**0.5)
    graph.output(graph.rescale(sums, INT8, [scale(g, factor)], (0, zero_point(g, INT8))))


def resize(g: Draw, graph: Graph, target: str) -> None:
    """Factors 2 and 4, with and without aligned corners, as ExecuTorch's upsampling gives them."""
    factor, aligned = pick(g, 2, 2, 4), chance(g)
    bilinear = chance(g)
    size, depth = (pick(g, 2, 3, 7), pick(g, 2, 5)), pick(g, 1, 3, 16)
    x = graph.input((1, *size, depth), INT8)
    out = tuple(n * factor for n in size)
    if aligned:
        ratio = [v for n, o in zip(size, out, strict=True) for v in (2 * (o - 1), 2 * (n - 1))]
        offset, border = [0, 0], [0, 0]
    else:
        ratio = [2 * factor, 2] * 2
        offset = [1 - factor] * 2 if bilinear else [0, 0]
        border = [factor - 1] * 2 if bilinear else [2 * factor - 2] * 2
    mode = ts.ResizeMode.BILINEAR if bilinear else ts.ResizeMode.NEAREST
    parts = (x, graph.shape(ratio), graph.shape(offset), graph.shape(border))
    kind = INT32 if bilinear else INT8
    value = graph.op("RESIZE", parts, (1, *out, depth), kind, attributes("Resize", mode=mode))
    if bilinear:
        value = graph.rescale(value, INT8, [scale(g, 1 / (ratio[0] * ratio[2]))])
    graph.output(value)


COMMON = {
    f.__name__: f
    for f in (
        convolution,
        sliced_convolution,
        pointwise,
        depthwise,
        transposed,
        maximum_pool,
        average_pool,
        matrix_product,
    )
}
U85_ONLY = {f.__name__: f for f in (sparse, resize)}
FAULTS = {"sliced_dilated_by_three": sliced_dilated_by_three}
