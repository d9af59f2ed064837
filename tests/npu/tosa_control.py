"""Families of random TOSA control flow: COND_IF and WHILE_LOOP, which only the U85 has."""

from __future__ import annotations

import numpy as np

from tests.npu.tosa_graph import BOOL, INT8, INT32, Graph, Value, attributes
from tests.npu.tosa_layers import Draw, chance, scale, zero_point
from tests.npu.tosa_maths import small_shape


def _positive(graph: Graph, number: Value) -> Value:
    parts = (number, graph.const([0], INT32))
    return graph.op("GREATER", parts, (1,), BOOL, attributes("Greater"))


def _changed(g: Draw, graph: Graph, value: Value) -> Value:
    """Something that a wrong branch or a missing turn of a loop would show in."""
    if chance(g):
        zeros = zero_point(g, INT8), zero_point(g, INT8)
        return graph.rescale(value, INT8, [scale(g, 0.9)], zeros)
    entries = graph.const(g.integers(-128, 128, 256), INT8)
    return graph.op("TABLE", (value, entries), value.shape, INT8, attributes("Table"))


def choice(g: Draw, graph: Graph, target: str) -> None:
    """The number decides; in a third of the cases the first branch decides once more."""
    shape = small_shape(g)
    x = graph.input(shape, INT8)
    numbers = [graph.input((1,), INT32, g.integers(-1, 3, 1)) for _ in range(2)]
    names = {"then_graph": "yes", "else_graph": "no"}
    parts = (_positive(graph, numbers[0]), x, numbers[1])
    graph.output(graph.op("COND_IF", parts, shape, INT8, attributes("CondIf", **names)))
    nested = chance(g, 0.35)
    graph.region("yes")
    inner = graph.input(shape, INT8), graph.input((1,), INT32)
    if nested:
        names = {"then_graph": "deeper", "else_graph": "no2"}
        parts = (_positive(graph, inner[1]), inner[0])
        graph.output(graph.op("COND_IF", parts, shape, INT8, attributes("CondIf", **names)))
    else:
        graph.output(_changed(g, graph, inner[0]))
    graph.region("no")
    inner = graph.input(shape, INT8), graph.input((1,), INT32)
    graph.output(_changed(g, graph, inner[0]))
    for name in ("deeper", "no2") if nested else ():
        graph.region(name)
        graph.output(_changed(g, graph, graph.input(shape, INT8)))


def loop(g: Draw, graph: Graph, target: str) -> None:
    """Counts down from 0 to 4, and changes the data at every turn."""
    shape = small_shape(g)
    x, count = graph.input(shape, INT8), graph.input((1,), INT32, g.integers(0, 5, 1))
    names = {"cond_graph": "goes_on", "body_graph": "turn"}
    results = graph.ops(
        "WHILE_LOOP", (x, count), [(shape, INT8), ((1,), INT32)], attributes("WhileLoop", **names)
    )
    for result in results:
        graph.output(result)
    graph.region("goes_on")
    _, inner = graph.input(shape, INT8), graph.input((1,), INT32)
    graph.output(_positive(graph, inner))
    graph.region("turn")
    data, inner = graph.input(shape, INT8), graph.input((1,), INT32)
    graph.output(_changed(g, graph, data))
    parts = (inner, graph.const(np.ones(1), INT32))
    graph.output(graph.op("SUB", parts, (1,), INT32, attributes("Sub")))


U85_ONLY = {f.__name__: f for f in (choice, loop)}
