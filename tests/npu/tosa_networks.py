"""Random TOSA graphs of several operators: what one operator alone does not show.

``python -m tests.npu.tosa_networks TARGET FIRST LAST [OPTION-OF-VELA...]`` compiles and runs
graphs by number, and prints for those that are not what TOSA computes the smallest part that still
is not, and the known defect (``targets/npu/defects.yaml``) that it is.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tosa_serializer as ts

from harness.core.errors import ExportError
from harness.export.child.tosa_graph import read_graph
from tests.late import Late
from tests.npu.tosa_graph import BOOL, INT8, INT32, Array, Graph, Value, attributes, compile_tosa
from tests.npu.tosa_layers import Draw, _weighted, chance, pick, scale, zero_point
from tests.npu.tosa_maths import _CAMEL, PROPAGATE, _same, choose

localise = Late("harness.export.child.localise")
SEED = 13
Step = Callable[[Draw, Graph, "list[Value]"], Value]
_MOST = 1 << 13  # elements of a value


@dataclass(frozen=True)
class Network:
    number: int
    target: str
    tosa: bytes
    inputs: tuple[Array, ...]


def make(number: int, target: str) -> Network:
    g, graph = np.random.default_rng([SEED, number, *target.encode()]), Graph()
    shape = (1, pick(g, 1, 4, 6, 9), pick(g, 1, 3, 8), pick(g, 1, 3, 8, 16, 20))
    values = [graph.input(shape, INT8)]
    if chance(g, 0.4):
        values.append(graph.input(shape, INT8))
    steps = {**COMMON, **(U85_ONLY if "u85" in target else {})}
    used: set[str] = set()
    for _ in range(pick(g, 2, 3, 4, 6, 9)):
        value = _step(g, graph, values, steps, used)
        values.append(value)
    inputs = {value.name for value in graph.inputs}
    for value in values[:2]:
        if value.name in inputs - used:  # Vela drops an input that nothing reads
            values.append(rescaled(g, graph, [value]))
    for value in values:
        if value.name not in inputs and (value.name not in used or chance(g, 0.08)):
            graph.output(value)
    return Network(number, target, graph.serialise(), tuple(graph.sample(g)))


def _step(
    g: Draw, graph: Graph, values: list[Value], steps: dict[str, Step], used: set[str]
) -> Value:
    recent = values[-3:]
    x = recent[int(g.integers(len(recent)))]
    used.add(x.name)
    others = [v for v in values if v.shape == x.shape and v is not x]
    second = others[int(g.integers(len(others)))] if others else x
    names = list(steps)
    name = names[int(g.integers(len(names)))]
    if name in _BINARY:
        used.add(second.name)
    return steps[name](g, graph, [x, second])


def convolution(g: Draw, graph: Graph, values: list[Value]) -> Value:
    return _convolved(g, graph, values[0], depthwise=False)


def depthwise(g: Draw, graph: Graph, values: list[Value]) -> Value:
    return _convolved(g, graph, values[0], depthwise=True)


def _convolved(g: Draw, graph: Graph, x: Value, *, depthwise: bool) -> Value:
    """Padding and stride are found for the size at hand; where there are none, pointwise."""
    depth = x.shape[3]
    for _ in range(20):
        kernel = pick(g, 1, 2, 3, 5), pick(g, 1, 2, 3)
        dilation = pick(g, 1, 1, 2), pick(g, 1, 1, 2)
        stride = pick(g, 1, 1, 2, 3), pick(g, 1, 1, 2)
        pads = [int(v) for v in g.integers(0, 3, 4)]
        out = []
        for axis in (0, 1):
            reach = dilation[axis] * (kernel[axis] - 1) + 1
            before, after = pads[2 * axis : 2 * axis + 2]
            rest = x.shape[1 + axis] + before + after - reach
            fits = rest >= 0 and rest % stride[axis] == 0 and max(before, after) < reach
            out.append(rest // stride[axis] + 1 if fits else 0)
        if all(out):
            break
    else:
        kernel, dilation, stride, pads = (1, 1), (1, 1), (1, 1), [0] * 4
        out = list(x.shape[1:3])
    facts: dict[str, object] = {"pad": pads, "stride": list(stride), "dilation": list(dilation)}
    if depthwise:
        weights, shape = (*kernel, depth, 1), (1, *out, depth)
        return _weighted(g, graph, "DepthwiseConv2d", x, weights, shape, facts, kernel[0])
    outputs = pick(g, 1, 3, 8, 16, 20)
    weights = (outputs, *kernel, depth)
    elements = kernel[0] * kernel[1] * depth
    return _weighted(g, graph, "Conv2d", x, weights, (1, *out, outputs), facts, elements)


def transposed_convolution(g: Draw, graph: Graph, values: list[Value]) -> Value:
    x, kernel, outputs = values[0], pick(g, 2, 3, 4), pick(g, 1, 5, 16)
    if x.shape[1] * x.shape[2] > 100:
        return rescaled(g, graph, values)
    cut = pick(g, 0, 1)
    out = tuple((n - 1) * 2 + kernel - 2 * cut for n in x.shape[1:3])
    if min(out) < 1:
        return rescaled(g, graph, values)
    facts: dict[str, object] = {"out_pad": [-cut] * 4, "stride": [2, 2]}
    weights, elements = (outputs, kernel, kernel, x.shape[3]), kernel * kernel * x.shape[3] // 4
    shape = (1, *out, outputs)
    return _weighted(g, graph, "TransposeConv2d", x, weights, shape, facts, elements)


def pooled(g: Draw, graph: Graph, values: list[Value]) -> Value:
    x = values[0]
    kernel = [pick(g, *range(1, min(n, 4) + 1)) for n in x.shape[1:3]]
    stride = [pick(g, 1, 1, 2), pick(g, 1, 1, 2)]
    pads = []
    for axis in (0, 1):
        before = int(g.integers(0, kernel[axis]))
        rest = x.shape[1 + axis] + before - kernel[axis]
        after = -rest % stride[axis]
        pads += [before, after if after < kernel[axis] else 0]
        if (rest + pads[-1]) % stride[axis]:
            stride[axis] = 1
    out = [
        (x.shape[1 + a] + pads[2 * a] + pads[2 * a + 1] - kernel[a]) // stride[a] + 1
        for a in (0, 1)
    ]
    facts = {"kernel": kernel, "stride": stride, "pad": pads}
    shape = (1, *out, x.shape[3])
    if chance(g):
        attr = attributes("MaxPool2d", nan_mode=ts.NanPropagationMode.PROPAGATE, **facts)
        return graph.op("MAX_POOL2D", [x], shape, INT8, attr)
    zero = zero_point(g, INT8)
    parts = (x, graph.const([zero], INT8), graph.const([zero], INT8))
    attr = attributes("AvgPool2d", acc_type=INT32, **facts)
    return graph.op("AVG_POOL2D", parts, shape, INT8, attr)


def cut(g: Draw, graph: Graph, values: list[Value]) -> Value:
    x = values[0]
    start = [0] + [int(g.integers(0, n)) for n in x.shape[1:]]
    size = [1] + [
        int(g.integers(1, n - s + 1)) for n, s in zip(x.shape[1:], start[1:], strict=True)
    ]
    parts = (x, graph.shape(start), graph.shape(size))
    return graph.op("SLICE", parts, size, INT8, attributes("Slice"))


def padded(g: Draw, graph: Graph, values: list[Value]) -> Value:
    x = values[0]
    pads = [0, 0, *(int(n) for n in g.integers(0, 3, 4)), 0, 0]
    out = [n + pads[2 * i] + pads[2 * i + 1] for i, n in enumerate(x.shape)]
    if int(np.prod(out)) > _MOST:
        return rescaled(g, graph, values)
    parts = (x, graph.shape(pads), graph.const([zero_point(g, INT8)], INT8))
    return graph.op("PAD", parts, out, INT8, attributes("Pad"))


def reduced(g: Draw, graph: Graph, values: list[Value]) -> Value:
    x, axis = values[0], pick(g, 1, 2, 3)
    out = tuple(1 if n == axis else size for n, size in enumerate(x.shape))
    if chance(g):
        kind = choose(g, "REDUCE_MAX", "REDUCE_MIN")
        attr = attributes(_CAMEL[kind], axis=axis, nan_mode=PROPAGATE)
        return graph.op(kind, [x], out, INT8, attr)
    wide = _same(x, graph, zero_point(g, INT8))
    total = graph.op("REDUCE_SUM", [wide], out, INT32, attributes("ReduceSum", axis=axis))
    factor = scale(g, 1 / x.shape[axis])
    return graph.rescale(total, INT8, [factor], (0, zero_point(g, INT8)))


def rescaled(g: Draw, graph: Graph, values: list[Value]) -> Value:
    zeros = zero_point(g, INT8), zero_point(g, INT8)
    return graph.rescale(values[0], INT8, [scale(g, 0.9)], zeros)


def looked_up(g: Draw, graph: Graph, values: list[Value]) -> Value:
    entries = graph.const(g.integers(-128, 128, 256), INT8)
    x = values[0]
    return graph.op("TABLE", (x, entries), x.shape, INT8, attributes("Table"))


def combined(g: Draw, graph: Graph, values: list[Value]) -> Value:
    wide = [_same(value, graph, zero_point(g, INT8)) for value in values]
    kind = choose(g, "ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM")
    more = {"nan_mode": PROPAGATE} if kind in ("MAXIMUM", "MINIMUM") else {}
    parts = (*wide, graph.const([0], INT8)) if kind == "MUL" else wide
    total = graph.op(kind, parts, values[0].shape, INT32, attributes(_CAMEL[kind], **more))
    factor = scale(g, 1 / 100 if kind == "MUL" else 0.6)
    return graph.rescale(total, INT8, [factor], (0, zero_point(g, INT8)))


def joined(g: Draw, graph: Graph, values: list[Value]) -> Value:
    axis, shape = pick(g, 1, 2, 3), list(values[0].shape)
    shape[axis] *= 2
    if int(np.prod(shape)) > _MOST:
        return rescaled(g, graph, values)
    return graph.op("CONCAT", values, shape, INT8, attributes("Concat", axis=axis))


def turned(g: Draw, graph: Graph, values: list[Value]) -> Value:
    x = values[0]
    order = [0, *(int(n) for n in 1 + g.permutation(3))]
    out = [x.shape[n] for n in order]
    return graph.op("TRANSPOSE", [x], out, INT8, attributes("Transpose", perms=order))


def reshaped(g: Draw, graph: Graph, values: list[Value]) -> Value:
    x = values[0]
    shapes = [(1, x.shape[2], x.shape[1], x.shape[3]), (1, 1, x.shape[1] * x.shape[2], x.shape[3])]
    shape = shapes[pick(g, 0, 1)]
    return graph.op("RESHAPE", (x, graph.shape(shape)), shape, INT8, attributes("Reshape"))


def multiplied(g: Draw, graph: Graph, values: list[Value]) -> Value:
    """A matrix product of a value with another one of its shape, turned."""
    _, h, w, c = values[0].shape
    if w * w * h > _MOST:
        return rescaled(g, graph, values)
    a, b = (
        graph.op("RESHAPE", (v, graph.shape((h, w, c))), (h, w, c), INT8, attributes("Reshape"))
        for v in values
    )
    b = graph.op("TRANSPOSE", [b], (h, c, w), INT8, attributes("Transpose", perms=[0, 2, 1]))
    zeros = [graph.const([zero_point(g, INT8)], INT8) for _ in (a, b)]
    sums = graph.op("MATMUL", (a, b, *zeros), (h, w, w), INT32, attributes("MatMul"))
    factor = scale(g, 60.0 / (100 * 100 * c**0.5))
    value = graph.rescale(sums, INT8, [factor], (0, zero_point(g, INT8)))
    shape = (1, h, w, w)
    return graph.op("RESHAPE", (value, graph.shape(shape)), shape, INT8, attributes("Reshape"))


def selected(g: Draw, graph: Graph, values: list[Value]) -> Value:
    """A comparison chooses between the values, or between one of them and a constant."""
    a, b = values
    wide = [_same(value, graph, zero_point(g, INT8)) for value in values]
    if chance(g, 0.3):
        wide[1] = graph.const(g.integers(-90, 90, (1, 1, 1, 1)), INT32)
    kind = choose(g, "EQUAL", "GREATER", "GREATER_EQUAL")
    flags = graph.op(kind, wide, a.shape, BOOL, attributes(_CAMEL[kind]))
    if chance(g, 0.2):
        flags = graph.op("LOGICAL_NOT", [flags], a.shape, BOOL, attributes("LogicalNot"))
    if chance(g, 0.3):
        b = graph.const(g.integers(-128, 128, (1, 1, 1, 1)), INT8)
    both = [a, b]
    if chance(g):
        both.reverse()
    return graph.op("SELECT", (flags, *both), a.shape, INT8, attributes("Select"))


def reversed_(g: Draw, graph: Graph, values: list[Value]) -> Value:
    x, axis = values[0], pick(g, 1, 2, 3)
    return graph.op("REVERSE", [x], x.shape, INT8, attributes("Reverse", axis=axis))


def enlarged(g: Draw, graph: Graph, values: list[Value]) -> Value:
    x, bilinear = values[0], chance(g)
    out = (1, 2 * x.shape[1], 2 * x.shape[2], x.shape[3])
    if int(np.prod(out)) > _MOST:
        return rescaled(g, graph, values)
    offset = [-1, -1] if bilinear else [0, 0]
    border = [1, 1] if bilinear else [2, 2]
    mode = ts.ResizeMode.BILINEAR if bilinear else ts.ResizeMode.NEAREST
    parts = (x, graph.shape([4, 2, 4, 2]), graph.shape(offset), graph.shape(border))
    kind = INT32 if bilinear else INT8
    value = graph.op("RESIZE", parts, out, kind, attributes("Resize", mode=mode))
    return graph.rescale(value, INT8, [scale(g, 1 / 16)]) if bilinear else value


COMMON: dict[str, Step] = {
    f.__name__: f
    for f in (
        convolution,
        depthwise,
        transposed_convolution,
        pooled,
        cut,
        padded,
        reduced,
        rescaled,
        looked_up,
        combined,
        joined,
        turned,
        reshaped,
        multiplied,
    )
}
U85_ONLY: dict[str, Step] = {f.__name__: f for f in (selected, reversed_, enlarged)}
_BINARY = frozenset({"combined", "joined", "multiplied", "selected"})


def smallest(network: Network, options: Sequence[str] = ()) -> tuple[Any, str] | None:
    """What is wrong with it, and the known defect that it is; None when nothing is."""

    def compiled(tosa: bytes) -> bytes:
        try:
            return compile_tosa(tosa, network.target, options)
        except (Exception, SystemExit) as error:
            raise ExportError(str(error)) from error

    found = localise.reduce(network.tosa, network.inputs, localise.npu_trial(compiled))
    if found is None:
        return None
    _, product, macs = network.target.split("-")
    return found, localise.known_vela_defect(
        read_graph(found.tosa), product, int(macs), found.trouble
    )


def named(found: Any, defect: str) -> str:
    """The defect, or that the model refuses it; "" for what should not be."""
    return defect or ("unverified" if found.trouble is localise.WrongResult.UNVERIFIED else "")


def main(arguments: Sequence[str]) -> int:
    target, first, last, *options = arguments
    seen: Counter[str] = Counter()
    for number in range(int(first), int(last)):
        found = smallest(make(number, target), options)
        name = "right" if found is None else named(*found)
        seen[name or "unknown"] += 1
        if found is not None:
            print(number, found[0].trouble, *found[0].operators, "->", name or "UNKNOWN")
    print(target, *options, dict(seen))
    return 1 if seen["unknown"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
