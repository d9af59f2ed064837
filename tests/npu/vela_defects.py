"""The smallest program for each defect of Vela in ``targets/npu/defects.yaml``, by its name.

``test_vela_defects`` compiles each, and runs it on every kind of product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import tosa_serializer as ts

from tests.npu import tosa_layers
from tests.npu.tosa_graph import BOOL, INT8, INT32, Array, Graph, Value, attributes

Draw = np.random.Generator
Program = Callable[[Draw, Graph], None]
SEED = 5


@dataclass(frozen=True)
class Small:
    tosa: bytes
    inputs: tuple[Array, ...]


def make(name: str, program: Program | None = None) -> Small:
    generator, graph = np.random.default_rng([SEED, *name.encode()]), Graph()
    (program or PROGRAMS[name])(generator, graph)
    return Small(graph.serialise(), tuple(graph.sample(generator)))


def _slice(graph: Graph, x: Value, start: list[int], size: list[int]) -> Value:
    parts = (x, graph.shape(start), graph.shape(size))
    return graph.op("SLICE", parts, size, x.dtype, attributes("Slice"))


def _matmul(graph: Graph, a: Value, b: Value) -> Value:
    zeros = [graph.const([0], INT8) for _ in "ab"]
    shape = (a.shape[0], a.shape[1], b.shape[2])
    sums = graph.op("MATMUL", (a, b, *zeros), shape, INT32, attributes("MatMul"))
    return graph.rescale(sums, INT8, [(1 << 30, 40)])


def _pad(graph: Graph, x: Value, pads: list[int], fill: int = 0) -> Value:
    out = [n + pads[2 * i] + pads[2 * i + 1] for i, n in enumerate(x.shape)]
    parts = (x, graph.shape(pads), graph.const([fill], INT8))
    return graph.op("PAD", parts, out, INT8, attributes("Pad"))


def _reduce(graph: Graph, kind: str, x: Value, axis: int) -> Value:
    shape = [1 if n == axis else size for n, size in enumerate(x.shape)]
    name = kind.title().replace("_", "")
    attr = attributes(name, axis=axis, nan_mode=ts.NanPropagationMode.PROPAGATE)
    return graph.op(kind, [x], shape, INT8, attr)


def _reshape(graph: Graph, x: Value, shape: list[int]) -> Value:
    return graph.op("RESHAPE", (x, graph.shape(shape)), shape, x.dtype, attributes("Reshape"))


def slice_before_matmul(g: Draw, graph: Graph) -> None:
    a, b = graph.input((1, 4, 8), INT8), graph.input((1, 8, 4), INT8)
    graph.output(_matmul(graph, _slice(graph, a, [0, 1, 0], [1, 2, 8]), b))


def matmul_into_part(g: Draw, graph: Graph) -> None:
    a, b = graph.input((4, 3, 1), INT8), graph.input((4, 1, 3), INT8)
    x = _reshape(graph, _matmul(graph, a, b), [1, 4, 3, 3])
    graph.output(_pad(graph, x, [0, 0, 2, 1, 1, 1, 0, 0]))


def transpose_into_part(g: Draw, graph: Graph) -> None:
    order = attributes("Transpose", perms=[0, 3, 1, 2])
    x = graph.op("TRANSPOSE", [graph.input((1, 6, 8, 8), INT8)], (1, 8, 6, 8), INT8, order)
    entries = graph.const(g.integers(-128, 128, 256), INT8)
    x = graph.op("TABLE", (x, entries), x.shape, INT8, attributes("Table"))
    graph.output(_pad(graph, x, [0, 0, 1, 1, 2, 2, 0, 0]))


def slice_before_transpose_conv(g: Draw, graph: Graph) -> None:
    x = _slice(graph, graph.input((1, 4, 4, 2), INT8), [0, 1, 1, 0], [1, 3, 3, 2])
    parts = (
        x,
        graph.const(g.integers(-99, 99, (3, 2, 2, 2)), INT8),
        graph.const(np.zeros(3, int), INT32),
        graph.const([0], INT8),
        graph.const([0], INT8),
    )
    attr = attributes(
        "TransposeConv2d", out_pad=[0] * 4, stride=[2, 2], local_bound=False, acc_type=INT32
    )
    total = graph.op("TRANSPOSE_CONV2D", parts, (1, 6, 6, 3), INT32, attr)
    graph.output(graph.rescale(total, INT8, [(1 << 30, 38)]))


def slice_before_reduce(g: Draw, graph: Graph) -> None:
    x = _slice(graph, graph.input((1, 3, 4, 5), INT8), [0, 0, 1, 1], [1, 3, 3, 3])
    graph.output(_reduce(graph, "REDUCE_MAX", x, 3))


def reduce_into_part(g: Draw, graph: Graph) -> None:
    x = _reduce(graph, "REDUCE_MAX", graph.input((1, 2, 1, 3), INT8), 3)
    graph.output(_pad(graph, x, [0, 0, 1, 1, 2, 2, 0, 0]))


def reduce_min_of_reshaped(g: Draw, graph: Graph) -> None:
    x = graph.input((1, 4, 3, 5), INT8)
    graph.output(_reduce(graph, "REDUCE_MIN", x, 2))
    graph.output(_reshape(graph, x, [1, 12, 1, 5]))


def select_of_reshaped(g: Draw, graph: Graph) -> None:
    flags = graph.input((1, 4, 3, 2), BOOL, g.random((1, 4, 3, 2)) < 0.5)
    x = graph.input((1, 4, 3, 2), INT8)
    other = graph.input((1, 4, 3, 2), INT8)
    graph.output(graph.op("SELECT", (flags, x, other), x.shape, INT8, attributes("Select")))
    graph.output(_reshape(graph, x, [1, 12, 1, 2]))


def slice_before_padded(g: Draw, graph: Graph) -> None:
    sliced_convolution(g, graph, "DepthwiseConv2d", (3, 3, 8, 2))


def dilated(g: Draw, graph: Graph) -> None:
    tosa_layers.sliced_dilated_by_three(g, graph, "")


def long_steps(g: Draw, graph: Graph) -> None:
    sliced_convolution(g, graph, "Conv2d", (4, 3, 3, 8), step=5)


def averaged(g: Draw, graph: Graph) -> None:
    x = _slice(graph, graph.input((1, 14, 14, 3), INT8), [0, 1, 1, 0], [1, 12, 12, 3])
    parts = (x, graph.const([0], INT8), graph.const([0], INT8))
    facts: dict[str, object] = {"kernel": [9, 9], "stride": [1, 1], "pad": [4] * 4}
    attr = attributes("AvgPool2d", acc_type=INT32, **facts)
    graph.output(graph.op("AVG_POOL2D", parts, (1, 12, 12, 3), INT8, attr))


def sliced_convolution(
    g: Draw, graph: Graph, kind: str, weights: tuple[int, ...], *, step: int = 1
) -> None:
    """3 x 3, padded by 1, behind a centre crop of 11 x 11 x 8."""
    x = _slice(graph, graph.input((1, 13, 13, 8), INT8), [0, 1, 1, 0], [1, 11, 11, 8])
    depth, rows = (weights[0], 10 // step + 1) if kind == "Conv2d" else (16, 11)
    parts = (
        x,
        graph.const(g.integers(-99, 99, weights), INT8),
        graph.const(np.zeros(depth, int), INT32),
        graph.const([0], INT8),
        graph.const([0], INT8),
    )
    facts: dict[str, object] = {"pad": [1] * 4, "stride": [step] * 2, "dilation": [1, 1]}
    attr = attributes(kind, local_bound=False, acc_type=INT32, **facts)
    name = {"Conv2d": "CONV2D", "DepthwiseConv2d": "DEPTHWISE_CONV2D"}[kind]
    total = graph.op(name, parts, (1, rows, rows, depth), INT32, attr)
    graph.output(graph.rescale(total, INT8, [(1 << 30, 39)]))


def pad_before_convolution(g: Draw, graph: Graph) -> None:
    x = _pad(graph, graph.input((1, 4, 4, 2), INT8), [0, 0, 1, 1, 1, 1, 0, 0], fill=0)
    parts = (
        x,
        graph.const(g.integers(-99, 99, (3, 3, 3, 2)), INT8),
        graph.const(np.zeros(3, int), INT32),
        graph.const([-100], INT8),
        graph.const([0], INT8),
    )
    facts: dict[str, object] = {"pad": [0] * 4, "stride": [1, 1], "dilation": [1, 1]}
    attr = attributes("Conv2d", local_bound=False, acc_type=INT32, **facts)
    total = graph.op("CONV2D", parts, (1, 4, 4, 3), INT32, attr)
    graph.output(graph.rescale(total, INT8, [(1 << 30, 39)]))


def table_beyond_shram(g: Draw, graph: Graph) -> None:
    x = graph.input((1, 5, 4, 3), INT8)
    order = attributes("Transpose", perms=[0, 2, 1, 3])
    x = graph.op("TRANSPOSE", [x], (1, 4, 5, 3), INT8, order)
    entries = graph.const(g.integers(-128, 128, 256), INT8)
    graph.output(graph.op("TABLE", (x, entries), x.shape, INT8, attributes("Table")))


def _table(g: Draw, graph: Graph, x: Value) -> Value:
    entries = graph.const(g.integers(-128, 128, 256), INT8)
    return graph.op("TABLE", (x, entries), x.shape, INT8, attributes("Table"))


def _clamp(graph: Graph, x: Value, low: int, high: int) -> Value:
    bounds = {
        name: list(value.to_bytes(1, "little", signed=True))
        for name, value in (("min_val", low), ("max_val", high))
    }
    attr = attributes("Clamp", nan_mode=ts.NanPropagationMode.PROPAGATE, **bounds)
    return graph.op("CLAMP", [x], x.shape, INT8, attr)


def _transpose(graph: Graph, x: Value, order: list[int]) -> Value:
    shape = [x.shape[n] for n in order]
    return graph.op("TRANSPOSE", [x], shape, INT8, attributes("Transpose", perms=order))


def second_activation_lost(g: Draw, graph: Graph) -> None:
    x = _clamp(graph, graph.input((1, 4, 6, 8), INT8), -60, 70)
    graph.output(_table(g, graph, _transpose(graph, x, [0, 2, 1, 3])))


def clamp_lost(g: Draw, graph: Graph) -> None:
    x = _table(g, graph, graph.input((1, 4, 6, 8), INT8))
    x = _reshape(graph, _transpose(graph, x, [0, 3, 1, 2]), [1, 1, 32, 6])
    graph.output(_clamp(graph, x, -60, 70))


def reversed_between(g: Draw, graph: Graph) -> None:
    x = _clamp(graph, graph.input((1, 3, 5, 20), INT8), -60, 70)
    x = graph.op("REVERSE", [x], x.shape, INT8, attributes("Reverse", axis=2))
    graph.output(_clamp(graph, x, -20, 90))


def reordered_before_activation(g: Draw, graph: Graph) -> None:
    x = _transpose(graph, graph.input((1, 16, 4, 2, 4, 2), INT8), [0, 3, 5, 2, 4, 1])
    graph.output(_table(g, graph, x))


def batches_exchanged(g: Draw, graph: Graph) -> None:
    x = _transpose(graph, graph.input((2, 3, 4, 8), INT8), [1, 0, 2, 3])
    graph.output(_clamp(graph, x, -60, 70))


def steps(g: Draw, graph: Graph, *, steps: str) -> None:
    """By the letters of ``test_vela_defects.NAMES``."""
    x = graph.input((2, 3, 2, 4) if "w" in steps else (1, 4, 6, 8), INT8)
    for step in steps:
        if step == "c":
            x = _clamp(graph, x, -60, 70)
        elif step == "T":
            x = _table(g, graph, x)
        elif step == "t":
            x = _transpose(graph, x, [0, 2, 1, 3])
        elif step == "w":
            x = _transpose(graph, x, [1, 0, 3, 2])
        elif step == "r":
            x = _reshape(graph, x, [1, x.shape[2], x.shape[1], x.shape[3]])
        else:
            x = graph.rescale(x, INT8, [(1 << 30, 30)], (3, -7))
    graph.output(x)


def flags_reshaped(g: Draw, graph: Graph) -> None:
    flags = graph.input((1, 4, 3, 2), BOOL, g.random((1, 4, 3, 2)) < 0.5)
    x, other = graph.input((1, 4, 3, 2), INT8), graph.input((1, 4, 3, 2), INT8)
    graph.output(graph.op("SELECT", (flags, x, other), x.shape, INT8, attributes("Select")))
    graph.output(_reshape(graph, flags, [1, 1, 1, 24]))


def output_dropped(g: Draw, graph: Graph) -> None:
    x = _reshape(graph, graph.input((4, 3, 3), INT8), [1, 4, 3, 3])
    graph.output(x)
    order = attributes("Transpose", perms=[0, 1, 3, 2])
    graph.output(graph.op("TRANSPOSE", [x], (1, 4, 3, 3), INT8, order))


PROGRAMS: dict[str, Program] = {
    f.__name__.replace("_", "-"): f
    for f in (
        slice_before_matmul,
        matmul_into_part,
        transpose_into_part,
        slice_before_transpose_conv,
        slice_before_reduce,
        reduce_into_part,
        reduce_min_of_reshaped,
        select_of_reshaped,
        slice_before_padded,
        pad_before_convolution,
        table_beyond_shram,
        second_activation_lost,
        reordered_before_activation,
        output_dropped,
    )
}
