"""Families of random TOSA operators without windows: element by element, tables, reductions."""

from __future__ import annotations

import numpy as np
import tosa_serializer as ts

from tests.npu.tosa_graph import BOOL, INT8, INT16, INT32, Graph, Value, attributes
from tests.npu.tosa_layers import Draw, chance, pick, scale, zero_point

PROPAGATE = ts.NanPropagationMode.PROPAGATE
_CAMEL = {
    "ADD": "Add",
    "SUB": "Sub",
    "MUL": "Mul",
    "MAXIMUM": "Maximum",
    "MINIMUM": "Minimum",
    "EQUAL": "Equal",
    "GREATER": "Greater",
    "GREATER_EQUAL": "GreaterEqual",
    "BITWISE_AND": "BitwiseAnd",
    "BITWISE_OR": "BitwiseOr",
    "BITWISE_XOR": "BitwiseXor",
    "LOGICAL_LEFT_SHIFT": "LogicalLeftShift",
    "LOGICAL_RIGHT_SHIFT": "LogicalRightShift",
    "ABS": "Abs",
    "CLZ": "Clz",
    "REDUCE_MAX": "ReduceMax",
    "REDUCE_MIN": "ReduceMin",
}


def choose(g: Draw, *options: str) -> str:
    return str(g.choice(options))


def small_shape(g: Draw) -> tuple[int, int, int, int]:
    return 1, pick(g, 1, 4, 7), pick(g, 1, 2, 9), pick(g, 1, 3, 16, 19)


def _pair(g: Draw, graph: Graph, dtype: object) -> tuple[Value, Value, tuple[int, ...]]:
    """Two inputs of which one may be broadcast, in either order."""
    shape = small_shape(g)
    other = tuple(1 if chance(g, 0.25) else n for n in shape)
    shapes = [shape, other]
    if chance(g):
        shapes.reverse()
    return graph.input(shapes[0], dtype), graph.input(shapes[1], dtype), shape


def _types(g: Draw) -> object:
    return INT16 if chance(g, 0.3) else INT8


def _same(value: Value, graph: Graph, zero: int) -> Value:
    """To 32 bits without a change of scale."""
    return graph.rescale(value, INT32, [(1 << 30, 30)], (zero, 0))


def sum_or_difference(g: Draw, graph: Graph, target: str) -> None:
    """As ExecuTorch lowers them: scales relative to the larger one, and bits to spare."""
    dtype = _types(g)
    a, b, shape = _pair(g, graph, dtype)
    zeros = [zero_point(g, dtype) for _ in range(3)]
    extra = 20 if dtype == INT8 else 12
    factors = [1.0, float(g.uniform(0.05, 1.0))]
    if chance(g):
        factors.reverse()
    wide = []
    for value, zero, factor in zip((a, b), zeros, factors, strict=False):
        mantissa, exponent = np.frexp(factor * 2.0**extra)
        multiplier = min(round(float(mantissa) * (1 << 31)), (1 << 31) - 1)
        wide.append(graph.rescale(value, INT32, [(multiplier, 31 - int(exponent))], (zero, 0)))
    kind = choose(g, "ADD", "SUB")
    total = graph.op(kind, wide, shape, INT32, attributes(_CAMEL[kind]))
    graph.output(graph.rescale(total, dtype, [scale(g, 2.0**-extra)], (0, zeros[2])))


def product(g: Draw, graph: Graph, target: str) -> None:
    dtype = _types(g)
    a, b, shape = _pair(g, graph, dtype)
    wide = [_same(value, graph, zero_point(g, dtype)) for value in (a, b)]
    parts = (*wide, graph.const([0], INT8))
    total = graph.op("MUL", parts, shape, INT32, attributes("Mul"))
    factor = 1 / 100 if dtype == INT8 else 1 / 30000
    graph.output(graph.rescale(total, dtype, [scale(g, factor)], (0, zero_point(g, dtype))))


def extreme(g: Draw, graph: Graph, target: str) -> None:
    dtype = _types(g)
    a, b, shape = _pair(g, graph, dtype)
    wide = [_same(value, graph, zero_point(g, dtype)) for value in (a, b)]
    kind = choose(g, "MAXIMUM", "MINIMUM")
    total = graph.op(kind, wide, shape, INT32, attributes(_CAMEL[kind], nan_mode=PROPAGATE))
    graph.output(graph.rescale(total, dtype, [scale(g, 0.8)], (0, zero_point(g, dtype))))


def requantisation(g: Draw, graph: Graph, target: str) -> None:
    """RESCALE by itself, between all pairs of 8 and 16 bits."""
    source, target = _types(g), _types(g)
    x = graph.input(small_shape(g), source)
    widths = {INT8: 8, INT16: 16}
    factor = 2.0 ** (widths[target] - widths[source])
    zeros = (zero_point(g, source), zero_point(g, target))
    graph.output(graph.rescale(x, target, [scale(g, factor)], zeros))


def table(g: Draw, graph: Graph, target: str) -> None:
    x = graph.input(small_shape(g), _types(g))
    if x.dtype == INT8:
        entries = graph.const(g.integers(-128, 128, 256), INT8)
        graph.output(graph.op("TABLE", (x, entries), x.shape, INT8, attributes("Table")))
        return
    smooth = np.cumsum(g.integers(-200, 201, 513)).clip(-32768, 32767)
    entries = graph.const(smooth, INT16)
    value = graph.op("TABLE", (x, entries), x.shape, INT32, attributes("Table"))
    graph.output(graph.rescale(value, INT16, [scale(g, 1 / 128)]))


def magnitude(g: Draw, graph: Graph, target: str) -> None:
    dtype = _types(g)
    x = graph.input(small_shape(g), dtype)
    value = graph.op(
        "ABS", [_same(x, graph, zero_point(g, dtype))], x.shape, INT32, attributes("Abs")
    )
    graph.output(graph.rescale(value, dtype, [scale(g, 0.8)], (0, zero_point(g, dtype))))


def reduction(g: Draw, graph: Graph, target: str) -> None:
    shape, axis = small_shape(g), pick(g, 1, 2, 3)
    out = tuple(1 if n == axis else size for n, size in enumerate(shape))
    x = graph.input(shape, INT8)
    if chance(g):
        kind = choose(g, "REDUCE_MAX", "REDUCE_MIN")
        attr = attributes(_CAMEL[kind], axis=axis, nan_mode=PROPAGATE)
        graph.output(graph.op(kind, [x], out, INT8, attr))
        return
    wide = _same(x, graph, zero_point(g, INT8))
    total = graph.op("REDUCE_SUM", [wide], out, INT32, attributes("ReduceSum", axis=axis))
    graph.output(graph.rescale(total, INT8, [scale(g, 1 / shape[axis])], (0, zero_point(g, INT8))))


def shift(g: Draw, graph: Graph, target: str) -> None:
    """32-bit values by an amount per element, as softmax does it."""
    shape = small_shape(g)
    x, amounts = graph.input(shape, INT32), graph.const(g.integers(0, 20, shape), INT32)
    kind = choose(g, "ARITHMETIC_RIGHT_SHIFT", "LOGICAL_LEFT_SHIFT")
    attr = attributes("LogicalLeftShift")
    if kind == "ARITHMETIC_RIGHT_SHIFT":
        attr = attributes("ArithmeticRightShift", round=True)
    graph.output(graph.op(kind, (x, amounts), shape, INT32, attr))


def leading_zeros(g: Draw, graph: Graph, target: str) -> None:
    x = graph.input(small_shape(g), INT32)
    graph.output(graph.op("CLZ", [x], x.shape, INT32, attributes("Clz")))


def comparison(g: Draw, graph: Graph, target: str) -> None:
    """A comparison that chooses between two values."""
    a, b, shape = _pair(g, graph, INT32)
    kind = choose(g, "EQUAL", "GREATER", "GREATER_EQUAL")
    flags = graph.op(kind, (a, b), shape, BOOL, attributes(_CAMEL[kind]))
    values = [graph.input(shape, INT8) for _ in range(2)]
    graph.output(graph.op("SELECT", (flags, *values), shape, INT8, attributes("Select")))


def bits(g: Draw, graph: Graph, target: str) -> None:
    dtype = (INT8, INT16, INT32)[pick(g, 0, 1, 2)]
    a, b, shape = _pair(g, graph, dtype)
    kind = choose(g, "BITWISE_AND", "BITWISE_OR", "BITWISE_XOR")
    value = graph.op(kind, (a, b), shape, dtype, attributes(_CAMEL[kind]))
    if chance(g, 0.3):
        value = graph.op("BITWISE_NOT", [value], shape, dtype, attributes("BitwiseNot"))
    graph.output(value)


def division(g: Draw, graph: Graph, target: str) -> None:
    """The divisors are constants, so that none is 0."""
    shape = small_shape(g)
    x = graph.input(shape, INT32)
    values = g.integers(1, 2000, shape) * g.choice([-1, 1], shape)
    parts = (x, graph.const(values, INT32))
    graph.output(graph.op("INTDIV", parts, shape, INT32, attributes("IntDiv")))


COMMON = {
    f.__name__: f
    for f in (
        sum_or_difference,
        product,
        extreme,
        requantisation,
        table,
        magnitude,
        reduction,
        shift,
        leading_zeros,
    )
}
U85_ONLY = {f.__name__: f for f in (comparison, bits, division)}
