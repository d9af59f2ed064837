"""Hints (see portable_hints) for operators that pick elements, reduce or normalise them, and for
products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.kernels.portable_draw import Draw
from tests.kernels.portable_program import Given
from tests.late import Late

torch = Late("torch")


def whole_shape(draw: Draw, low: int = 1, high: int = 5) -> tuple[int, ...]:
    """A shape without an empty dimension."""
    return tuple(max(size, 1) for size in draw.shape(low, high))


def counted(draw: Draw, dim: int, rank: int) -> int:
    """The dimension from either end."""
    return dim - rank if draw.chance(0.3) else dim


def _part(draw: Draw, shape: Sequence[int], dim: int) -> list[int]:
    """A shape within another one, but for one dimension."""
    part = [draw.between(1, size) for size in shape]
    part[dim] = draw.between(0 if draw.chance(0.1) else 1, 4)
    return part


def gather(draw: Draw) -> dict[str, Any]:
    draw.inner = draw.is_wild()
    shape = whole_shape(draw)
    dim = draw.between(0, len(shape) - 1)
    index = draw.index(_part(draw, shape, dim), shape[dim])
    given = {"self": draw.tensor(shape), "dim": counted(draw, dim, len(shape)), "index": index}
    return {**given, "out": (index.tensor.shape, draw.dtype)}


def scatter(draw: Draw) -> dict[str, Any]:
    draw.inner = draw.is_wild()
    shape = whole_shape(draw)
    dim = draw.between(0, len(shape) - 1)
    part = _part(draw, shape, dim)
    source = [size + draw.random.choice([0, 0, 1]) for size in part]
    given = {"self": draw.tensor(shape), "dim": counted(draw, dim, len(shape))}
    index = draw.index(part, shape[dim])
    return {**given, "index": index, "src": draw.tensor(source), "out": (shape, draw.dtype)}


def _indices(draw: Draw, shape: Sequence[int]) -> list[Any]:
    """Of some dimensions: all of one shape, or of shapes that broadcast; masks now and then."""
    common = whole_shape(draw, 1, 2)
    chosen: list[Any] = []
    for size in shape[: draw.between(1, len(shape))]:
        if draw.chance(0.3):
            chosen.append(None)
        elif draw.chance(0.15) and not any(isinstance(c, Given) for c in chosen):
            mask = torch.zeros(size, dtype=torch.bool)
            mask[: min(size, common[-1])] = True
            kind = torch.uint8 if draw.chance(0.2) else torch.bool
            chosen.append(draw.plain(mask.to(kind)))
        else:
            own = [n if draw.chance(0.7) else 1 for n in common]
            chosen.append(draw.index(own, size, negative=True))
    return chosen


def index(draw: Draw) -> dict[str, Any]:
    draw.inner = False
    shape = whole_shape(draw, 1, 4)
    return {"self": draw.tensor(shape), "indices": _indices(draw, shape)}


def index_put(draw: Draw) -> dict[str, Any]:
    given = index(draw)
    chosen = [None if c is None else c.tensor for c in given["indices"]]
    chosen = [None if c is None else c.long() if c.dtype == torch.int32 else c for c in chosen]
    try:
        made = torch.ops.aten.index.Tensor(given["self"].tensor, chosen).shape
    except (RuntimeError, IndexError):
        made = (1,)
    values = draw.tensor(draw.broadcast(made))
    out = {"out": (given["self"].tensor.shape, draw.dtype)}
    return {**given, "values": values, "accumulate": draw.chance(0.4), **out}


def index_put_into(draw: Draw) -> dict[str, Any]:
    """Of one dimension: ExecuTorch's has no other in place."""
    draw.inner = False
    shape = list(whole_shape(draw, 1, 4))
    dim = draw.between(0, len(shape) - 1)
    chosen = draw.index([draw.between(0, 3)], shape[dim])
    target = draw.tensor(shape)
    shape[dim] = len(chosen.tensor) + draw.is_wild()
    indices = [*[None] * dim, chosen]
    return {
        "self": target,
        "indices": indices,
        "values": draw.tensor(shape),
        "accumulate": draw.is_wild(),
    }


def index_select(draw: Draw) -> dict[str, Any]:
    draw.inner = draw.is_wild()
    shape = whole_shape(draw)
    dim = draw.between(0, len(shape) - 1)
    chosen = draw.index([draw.between(0, 4)] if draw.chance(0.9) else [], shape[dim])
    return {"shape": shape, "dim": counted(draw, dim, len(shape)), "index": chosen}


def embedding(draw: Draw) -> dict[str, Any]:
    draw.inner = False
    rows, width = draw.between(1, 6), draw.between(1, 5)
    chosen = draw.index(draw.shape(0, 3), rows)
    weight = draw.tensor([rows, width])
    out = ([*chosen.tensor.shape, width], draw.dtype)
    return {"weight": weight, "indices": chosen, "padding_idx": -1, "out": out}


def repeat_interleave(draw: Draw) -> dict[str, Any]:
    kind = torch.int32 if draw.chance(0.4) else torch.int64
    repeats = torch.randint(0, 4, [draw.between(0, 5)], generator=draw.torch).to(kind)
    if draw.is_wild() and len(repeats):
        repeats[0] = -1
    total = max(int(repeats.sum()), 0)
    size = draw.random.choice([None, total, total + draw.is_wild()])
    return {"repeats": draw.plain(repeats), "output_size": size, "out": ([total], kind)}


def topk(draw: Draw) -> dict[str, Any]:
    """Plain: ExecuTorch takes other orders for plain ones, and ranks a part of them."""
    draw.inner = None
    if draw.dtype == torch.bool:
        draw.dtype = torch.int16
    shape = whole_shape(draw)
    dim = draw.between(0, len(shape) - 1)
    k = draw.between(0, shape[dim] + draw.is_wild())
    made = [*shape[:dim], k, *shape[dim + 1 :]]
    given = {"shape": shape, "k": k, "dim": counted(draw, dim, len(shape))}
    return {**given, "values": (made, draw.dtype), "indices": (made, torch.int64)}


def reduced(
    draw: Draw, shape: Sequence[int], dims: Sequence[int] | None, *, keep: bool
) -> list[int]:
    """The shape that is left."""
    gone = {d % max(len(shape), 1) for d in dims or range(len(shape))}
    if keep:
        return [1 if d in gone else size for d, size in enumerate(shape)]
    return [size for d, size in enumerate(shape) if d not in gone]


def whole_dims(draw: Draw) -> dict[str, Any]:
    """Of shapes without an empty dimension: nothing is the largest of none."""
    shape = whole_shape(draw, 0)
    if draw.dtype == torch.bool and draw.chance(0.5):
        draw.dtype = torch.float32
    return {"shape": shape}


def variance(draw: Draw) -> dict[str, Any]:
    draw.dtype = draw.floats()
    draw.typed = True  # ExecuTorch writes the second output as if it had the first one's type
    shape = whole_shape(draw, 0)
    dims = draw.dims(len(shape)) if draw.chance(0.8) else None
    keep = draw.chance(0.5)
    made = (reduced(draw, shape, dims, keep=keep), draw.dtype)
    given = {"shape": shape, "dim": dims, "keepdim": keep}
    return {
        **given,
        "correction": draw.random.choice([None, 0, 1, 2, 0.5]),
        "out0": made,
        "out1": made,
    }


def summed(draw: Draw) -> dict[str, Any]:
    """Of one dimension or more: the wheel's optimised kernel ends the process otherwise."""
    return {"shape": draw.shape(1), "dtype": None if draw.chance(0.7) else draw.any_dtype()}


def mean(draw: Draw) -> dict[str, Any]:
    draw.dtype = draw.floats() if not draw.is_wild() else draw.any_dtype()
    return {"dtype": None if draw.chance(0.7) else draw.floats()}


def cumulated(draw: Draw) -> dict[str, Any]:
    kind = None if draw.chance(0.6) else draw.floats()
    shape = draw.shape(1)
    return {"shape": shape, "dtype": kind, "out": (shape, kind or draw.dtype)}


def _no_double(draw: Draw) -> torch.dtype:
    return draw.random.choice([torch.float32, torch.float32, torch.float16, torch.bfloat16])


def softmax(draw: Draw) -> dict[str, Any]:
    """No doubles, which the wheel's optimised log_softmax refuses."""
    draw.dtype = _no_double(draw) if not draw.is_wild() else draw.wholes()
    draw.inner = None  # nor is a channels-last image what the optimised ones take it for
    shape = whole_shape(draw, 0)
    return {"shape": shape, "out": (shape, draw.dtype)}


def _parameter(draw: Draw, shape: Sequence[int], *, needed: bool = False) -> Any:
    return None if not needed and draw.chance(0.3) else draw.tensor(shape)


def batch_norm(draw: Draw) -> dict[str, Any]:
    draw.dtype = draw.floats()
    draw.inner = None  # which ExecuTorch refuses
    shape = whole_shape(draw, 2, 5)
    channels = [shape[1] + draw.is_wild()]
    kind = draw.dtype
    mean, variances = draw.tensor(channels), draw.tensor(channels)
    variances = Given(variances.tensor.double().abs().to(kind), variances.order)
    given = {"input": draw.tensor(shape), "running_mean": mean, "running_var": variances}
    outs = {"out": (shape, kind), "out0": (shape, kind), "save_mean": ([0], kind)}
    outs |= {"out1": ([0], kind), "out2": ([0], kind), "save_invstd": ([0], kind)}
    more = {"training": draw.is_wild(), "momentum": 0.1, "eps": draw.random.choice([1e-5, 0.1])}
    parameters = {name: _parameter(draw, channels) for name in ("weight", "bias")}
    return {**given, **parameters, **more, **outs}


def batch_statistics(draw: Draw) -> dict[str, Any]:
    given = batch_norm(draw)
    channels = [given["input"].tensor.shape[1]]
    made = (channels, draw.dtype)
    return {**given, "training": not draw.is_wild(), "save_mean": made, "save_invstd": made}


def group_norm(draw: Draw) -> dict[str, Any]:
    draw.dtype = draw.floats()
    draw.inner = False
    groups = draw.between(1, 3)
    shape = list(whole_shape(draw, 2, 4))
    shape[1] = groups * draw.between(1, 2)
    spread = 1
    for size in shape[2:]:
        spread *= size
    sizes = {"N": shape[0], "C": shape[1] + draw.is_wild(), "HxW": spread, "group": groups}
    statistics = ([shape[0], groups], draw.dtype)
    outs = {"out0": (shape, draw.dtype), "out1": statistics, "out2": statistics}
    parameters = {name: _parameter(draw, [shape[1]]) for name in ("weight", "bias")}
    return {"input": draw.tensor(shape), **sizes, **parameters, "eps": 1e-5, **outs}


def layer_norm(draw: Draw) -> dict[str, Any]:
    """Small, of float32: the wheel's optimised kernel sums other floats in it, too."""
    draw.dtype = torch.float32
    draw.inner = None
    shape = list(whole_shape(draw, 1, 3))
    first = draw.between(0, len(shape) - 1)
    tail = shape[first:]
    statistics = ([*shape[:first], *[1] * len(tail)], draw.dtype)
    outs = {"out0": (shape, draw.dtype), "out1": statistics, "out2": statistics}
    parameters = {name: _parameter(draw, tail) for name in ("weight", "bias")}
    given = {
        "input": draw.tensor(shape),
        "normalized_shape": [*tail[:-1], tail[-1] + draw.is_wild()],
    }
    return {**given, **parameters, "eps": draw.random.choice([1e-5, 0.1]), **outs}


def _no_bool(draw: Draw) -> None:
    draw.inner = False
    if draw.dtype == torch.bool and not draw.is_wild():
        draw.dtype = torch.float32


def mm(draw: Draw) -> dict[str, Any]:
    _no_bool(draw)
    m, k, n = (draw.between(1, 5) for _ in range(3))
    kind = draw.dtype
    given = {"self": draw.tensor([m, k]), "mat2": draw.tensor([k + draw.is_wild(), n])}
    return {**given, "out": ([m, n], kind)}


def bmm(draw: Draw) -> dict[str, Any]:
    _no_bool(draw)
    b, m, k, n = (draw.between(1, 4) for _ in range(4))
    given = {"self": draw.tensor([b, m, k]), "mat2": draw.tensor([b, k, n])}  # which is not checked
    return {**given, "out": ([b, m, n], draw.dtype)}


def addmm(draw: Draw) -> dict[str, Any]:
    _no_bool(draw)
    m, k, n = (draw.between(1, 5) for _ in range(3))
    added = draw.tensor(draw.broadcast([m, n]))
    given = {"self": added, "mat1": draw.tensor([m, k]), "mat2": draw.tensor([k, n])}
    scales = {name: draw.random.choice([1, 1, 2, 0, -1]) for name in ("alpha", "beta")}
    return {**given, **scales, "out": ([m, n], draw.dtype)}


def linear(draw: Draw) -> dict[str, Any]:
    _no_bool(draw)
    leading = whole_shape(draw, 0, 3)
    k, n = draw.between(1, 5), draw.between(1, 5)
    bias = draw.tensor([n + draw.is_wild()]) if draw.chance(0.6) else None
    given = {"input": draw.tensor([*leading, k]), "weight": draw.tensor([n, k]), "bias": bias}
    return {**given, "out": ([*leading, n], draw.dtype)}


def _norm(draw: Draw) -> float:
    return -1.0 if draw.is_wild() else draw.random.choice([0.0, 1.0, 2.0, 3.0, 0.5, float("inf")])


def cdist(draw: Draw) -> dict[str, Any]:
    draw.dtype = draw.floats()
    draw.inner = False
    batch = whole_shape(draw, 0, 2)
    p, r, m = draw.between(0, 4), draw.between(0, 4), draw.between(1, 4)
    given = {"x1": draw.tensor([*draw.broadcast(batch), p, m]), "x2": draw.tensor([*batch, r, m])}
    shape = [*batch, p, r]
    more = {
        "p": _norm(draw),
        "compute_mode": draw.random.choice([None, 0, 1, 2, 3 if draw.is_wild() else 0]),
    }
    return {**given, **more, "out": (shape, draw.dtype)}


def pdist(draw: Draw) -> dict[str, Any]:
    draw.dtype = draw.floats()
    rows = draw.between(0, 5)
    given = {"self": draw.tensor([rows, draw.between(1, 4)]), "p": _norm(draw)}
    return {**given, "out": ([rows * (rows - 1) // 2], draw.dtype)}


HINTS = {
    "aten::_cdist_forward": cdist,
    "aten::_log_softmax": softmax,
    "aten::_native_batch_norm_legit": batch_norm,
    "aten::_native_batch_norm_legit.no_stats_out": batch_statistics,
    "aten::_native_batch_norm_legit_no_training": batch_norm,
    "aten::_pdist_forward": pdist,
    "aten::_softmax": softmax,
    "aten::addmm": addmm,
    "aten::amax": whole_dims,
    "aten::amin": whole_dims,
    "aten::argmax": whole_dims,
    "aten::argmin": whole_dims,
    "aten::bmm": bmm,
    "aten::cumsum": cumulated,
    "aten::embedding": embedding,
    "aten::gather": gather,
    "aten::index": index,
    "aten::index_put": index_put,
    "aten::index_put_": index_put_into,
    "aten::index_select": index_select,
    "aten::linear": linear,
    "aten::max.dim_max": whole_dims,
    "aten::mean": mean,
    "aten::min.dim_min": whole_dims,
    "aten::mm": mm,
    "aten::native_group_norm": group_norm,
    "aten::native_layer_norm": layer_norm,
    "aten::repeat_interleave": repeat_interleave,
    "aten::scatter": scatter,
    "aten::scatter_add": scatter,
    "aten::sum": summed,
    "aten::topk": topk,
    "aten::var": variance,
    "aten::var_mean": variance,
}
