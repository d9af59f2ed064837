"""Families of random TOSA operators that move data, and the two that index it."""

from __future__ import annotations

import numpy as np

from tests.npu.tosa_graph import INT8, INT16, INT32, Graph, Value, attributes
from tests.npu.tosa_layers import Draw, chance, pick
from tests.npu.tosa_maths import small_shape


def _type(g: Draw) -> object:
    return (INT8, INT16, INT32)[pick(g, 0, 0, 1, 2)]


def transpose(g: Draw, graph: Graph, target: str) -> None:
    shape = small_shape(g)
    order = [0, *(int(n) for n in 1 + g.permutation(3))]
    x = graph.input(shape, _type(g))
    out = [shape[n] for n in order]
    graph.output(graph.op("TRANSPOSE", [x], out, x.dtype, attributes("Transpose", perms=order)))


def concatenation(g: Draw, graph: Graph, target: str) -> None:
    shape, axis, dtype = list(small_shape(g)), pick(g, 1, 2, 3), _type(g)
    parts, total = [], 0
    for _ in range(pick(g, 2, 3)):
        shape[axis] = pick(g, 1, 2, 5, 16)
        total += shape[axis]
        parts.append(graph.input(shape, dtype))
    shape[axis] = total
    graph.output(graph.op("CONCAT", parts, shape, dtype, attributes("Concat", axis=axis)))


def cut(g: Draw, graph: Graph, target: str) -> None:
    shape = small_shape(g)
    start = [int(g.integers(0, n)) for n in shape]
    size = [int(g.integers(1, n - s + 1)) for n, s in zip(shape, start, strict=True)]
    x = graph.input(shape, _type(g))
    parts = (x, graph.shape(start), graph.shape(size))
    graph.output(graph.op("SLICE", parts, size, x.dtype, attributes("Slice")))


def padding(g: Draw, graph: Graph, target: str) -> None:
    shape, dtype = small_shape(g), INT8 if chance(g, 0.7) else INT16
    pads = [0, 0, *(int(n) for n in g.integers(0, 3, 6))]
    x = graph.input(shape, dtype)
    out = [n + pads[2 * i] + pads[2 * i + 1] for i, n in enumerate(shape)]
    parts = (x, graph.shape(pads), graph.const([int(g.integers(-100, 100))], dtype))
    graph.output(graph.op("PAD", parts, out, dtype, attributes("Pad")))


def tiling(g: Draw, graph: Graph, target: str) -> None:
    shape = small_shape(g)
    times = [1, *(pick(g, 1, 2, 3) for _ in range(3))]
    x = graph.input(shape, _type(g))
    out = [n * t for n, t in zip(shape, times, strict=True)]
    graph.output(graph.op("TILE", (x, graph.shape(times)), out, x.dtype, attributes("Tile")))


def reversal(g: Draw, graph: Graph, target: str) -> None:
    x, axis = graph.input(small_shape(g), _type(g)), pick(g, 1, 2, 3)
    graph.output(graph.op("REVERSE", [x], x.shape, x.dtype, attributes("Reverse", axis=axis)))


def _indices(g: Draw, graph: Graph, values: np.ndarray) -> Value:
    if chance(g, 0.3):
        return graph.const(values, INT32)
    return graph.input(values.shape, INT32, values)


def gather(g: Draw, graph: Graph, target: str) -> None:
    """Rows by index, the indices constant or an input."""
    batch, rows = pick(g, 1, 1, 2, 3), pick(g, 1, 2, 5, 9)
    width, count = pick(g, 1, 4, 16, 40), pick(g, 1, 3, 6)
    x = graph.input((batch, rows, width), _type(g))
    places = _indices(g, graph, g.integers(0, rows, (batch, count)))
    out = (batch, count, width)
    graph.output(graph.op("GATHER", (x, places), out, x.dtype, attributes("Gather")))


def scatter(g: Draw, graph: Graph, target: str) -> None:
    """No row is written twice: TOSA leaves open what would come of it."""
    batch, rows = pick(g, 1, 1, 2, 3), pick(g, 3, 5, 9)
    width, count = pick(g, 1, 4, 16, 40), pick(g, 1, 3)
    dtype = _type(g)
    x, news = graph.input((batch, rows, width), dtype), graph.input((batch, count, width), dtype)
    order = np.stack([g.permutation(rows)[:count] for _ in range(batch)])
    places = _indices(g, graph, order)
    out = (batch, rows, width)
    graph.output(graph.op("SCATTER", (x, places, news), out, dtype, attributes("Scatter")))


COMMON = {f.__name__: f for f in (transpose, concatenation, cut, padding, tiling)}
U85_ONLY = {f.__name__: f for f in (reversal, gather, scatter)}
