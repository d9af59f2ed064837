"""What an operator's arguments have to do with each other in a valid call.

Each hint returns arguments by name; ``shape`` is that of the first tensor, and an output that torch
is not asked for is (shape, element type).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.kernels import portable_hints_places as places
from tests.kernels import portable_hints_windows as windows
from tests.kernels.portable_draw import Draw
from tests.kernels.portable_hints_places import whole_shape
from tests.late import Late

torch = Late("torch")

Hint = Callable[[Draw], dict[str, Any]]


def of_type(kind: str, **more: Any) -> Hint:
    """Tensors of floats, or of integers, as a rule."""

    def hint(draw: Draw) -> dict[str, Any]:
        if not draw.is_wild():
            draw.dtype = draw.floats() if kind == "floats" else draw.wholes()
        return dict(more)

    return hint


def nothing(draw: Draw) -> dict[str, Any]:
    return {}


def same_images(draw: Draw) -> dict[str, Any]:
    """Channels-last ones do not broadcast: the optimised kernel takes them for plain ones."""
    shape = draw.shape()
    alpha = draw.random.choice([1, 1, 2, 0])
    if draw.inner and len(shape) > 3:
        return {"self": draw.tensor(shape), "other": draw.tensor(shape), "alpha": alpha}
    draw.inner = None
    return {"shape": shape, "alpha": alpha}


def number_of_kind(draw: Draw) -> dict[str, Any]:
    """Whole for integers: the wheel's optimised kernel takes no other."""
    if draw.dtype == torch.bool:
        draw.dtype = torch.int32
    return (
        {"alpha": 1} if draw.dtype.is_floating_point else {"other": draw.between(0, 9), "alpha": 1}
    )


def exponential(draw: Draw) -> dict[str, Any]:
    """In the type of the result, which is where the wheel's optimised kernel computes."""
    shape = draw.shape()
    kind = draw.dtype if draw.dtype.is_floating_point else torch.float32
    draw.typed = True
    return {"self": draw.tensor(shape), "out": (shape, kind)}


def shift(draw: Draw) -> dict[str, Any]:
    """By fewer bits than the narrowest type has: C++ leaves the others open."""
    draw.dtype = draw.wholes()
    shape = draw.shape()
    by = torch.randint(0, 7, draw.broadcast(shape), generator=draw.torch).to(draw.dtype)
    return {"self": draw.tensor(shape), "other": draw.plain(by)}


def shift_by_number(draw: Draw) -> dict[str, Any]:
    draw.dtype = draw.wholes()
    return {"other": draw.between(0, 6)}


def divisor(draw: Draw) -> dict[str, Any]:
    """Few zeros: a division of integers by one is refused."""
    shape = draw.shape()
    kind = draw.dtype if draw.chance(0.7) else draw.any_dtype()
    if kind == torch.bool and not draw.is_wild():
        kind = torch.int32
    values = draw.values(draw.broadcast(shape), kind)
    if not draw.is_wild() and not kind.is_floating_point:
        values[values == 0] = 3 if kind != torch.bool else True
    if draw.dtype == torch.bool and kind == torch.bool:
        draw.dtype = torch.int8
    first = draw.tensor(shape)
    return {"self": first, "other": type(first)(values, draw.order(values.dim()))}


def mode(hint: Hint) -> Hint:
    def hinted(draw: Draw) -> dict[str, Any]:
        modes = ["ceil"] if draw.is_wild() else [None, "trunc", "floor", "floor"]
        return {**hint(draw), "rounding_mode": draw.random.choice(modes)}

    return hinted


def divisor_number(draw: Draw) -> dict[str, Any]:
    number = draw.number()
    return {"other": number if number or draw.is_wild() else 2}


def power(draw: Draw) -> dict[str, Any]:
    """Small enough for every type: what is beyond one is undefined."""
    shape = draw.shape()
    if draw.dtype == torch.bool:
        draw.dtype = torch.float32
    base = torch.randint(0, 4, shape, generator=draw.torch)
    kind = draw.dtype if draw.chance(0.7) else draw.floats()
    exponent = torch.randint(0, 4, draw.broadcast(shape), generator=draw.torch)
    first = draw.tensor(shape)
    return {
        "self": type(first)(base.to(draw.dtype), first.order),
        "exponent": type(first)(exponent.to(kind), draw.order(exponent.dim())),
    }


def power_by_number(draw: Draw) -> dict[str, Any]:
    given = power(draw)
    return {"self": given["self"], "exponent": draw.random.choice([0, 1, 2, 3, 0.5, 2.0, True])}


def power_of_number(draw: Draw) -> dict[str, Any]:
    given = power(draw)
    return {"exponent": given["self"], "self": draw.random.choice([0, 1, 2, 3, 0.5, 2.0])}


def clamp(draw: Draw) -> dict[str, Any]:
    low = draw.number() if draw.chance(0.8) else None
    high = draw.number() if draw.chance(0.8) else None
    return {"min": low, "max": high}


def masked(draw: Draw) -> dict[str, Any]:
    shape = draw.shape()
    mask = draw.tensor(draw.broadcast(shape), torch.bool)
    return {"self": draw.tensor(shape), "mask": mask}


def masked_scatter(draw: Draw) -> dict[str, Any]:
    given = masked(draw)
    count = given["self"].tensor.numel() + given["mask"].tensor.numel()
    return {**given, "source": draw.tensor([0 if draw.is_wild() else 2 * count + 1])}


def masked_select(draw: Draw) -> dict[str, Any]:
    given = masked(draw)
    try:
        made = torch.masked_select(given["self"].tensor, given["mask"].tensor)
    except RuntimeError:
        made = torch.empty(3)
    return {**given, "out": (made.shape, given["self"].tensor.dtype)}


def nonzero(draw: Draw) -> dict[str, Any]:
    given = draw.tensor(draw.shape())
    return {"self": given, "out": (torch.nonzero(given.tensor).shape, torch.int64)}


def condition(draw: Draw) -> dict[str, Any]:
    shape = draw.shape()
    kind = torch.uint8 if draw.chance(0.2) else torch.bool
    return {"shape": shape, "condition": draw.tensor(draw.broadcast(shape), kind)}


def dropout(draw: Draw) -> dict[str, Any]:
    shape = draw.shape()
    share = draw.random.choice([0.0, 0.5, 1.0, 2.0 if draw.is_wild() else 0.25])
    given = draw.tensor(shape)
    outs = {"out0": (shape, given.tensor.dtype), "out1": (shape, torch.bool)}
    return {"input": given, "p": share, "train": not share, **outs}


def glu(draw: Draw) -> dict[str, Any]:
    draw.dtype = draw.floats()
    shape = list(whole_shape(draw))
    dim = draw.between(0, len(shape) - 1)
    shape[dim] *= 1 if draw.is_wild() else 2
    return {"shape": shape, "dim": dim - len(shape) if draw.chance(0.5) else dim}


def gelu(draw: Draw) -> dict[str, Any]:
    """Of finite floats that are no doubles: the wheel's optimised kernel has its own of others."""
    draw.dtype = draw.random.choice([torch.float32, torch.float32, torch.float16, torch.bfloat16])
    mode = "sigmoid" if draw.is_wild() else draw.random.choice(["none", "tanh"])
    return {"self": windows.finite(draw, draw.shape()), "approximate": mode}


def leaky(draw: Draw) -> dict[str, Any]:
    draw.dtype = draw.floats()
    return {"negative_slope": draw.random.choice([0.01, 0.1, 2, -1.5])}


def hardtanh(draw: Draw) -> dict[str, Any]:
    low, high = sorted([draw.number(), draw.number()])
    return {"min_val": low, "max_val": high}


def elu(draw: Draw) -> dict[str, Any]:
    draw.dtype = draw.floats()
    numbers = [0.5, 1.0, 1, 1.6732632]
    return {name: draw.random.choice(numbers) for name in ("alpha", "scale", "input_scale")}


def logit(draw: Draw) -> dict[str, Any]:
    kind = torch.float64 if draw.chance(0.4) else torch.float32
    shape = draw.shape()
    values = torch.rand(shape, generator=draw.torch).to(draw.dtype)
    first = draw.tensor(shape)
    eps = draw.random.choice([None, 0.1, 1e-5])
    return {"self": type(first)(values, first.order), "eps": eps, "out": (shape, kind)}


def of_size(draw: Draw) -> dict[str, Any]:
    size = list(draw.shape())
    return {"size": size, "out": (size, draw.dtype), "memory_format": None}


def ordered_size(draw: Draw) -> dict[str, Any]:
    size = list(draw.shape())
    draw.inner = False
    return {"size": size, "out": (size, draw.dtype), "dim_order": None}


def full(draw: Draw) -> dict[str, Any]:
    return {**of_size(draw), "fill_value": draw.number()}


def scalar(draw: Draw) -> dict[str, Any]:
    return {"s": draw.number(), "out": ((), draw.dtype)}


def same_as_first(draw: Draw) -> dict[str, Any]:
    given = draw.tensor(draw.shape())
    kind = draw.dtype if draw.chance(0.4) else draw.any_dtype()
    return {"self": given, "out": (given.tensor.shape, kind)}


def full_like(draw: Draw) -> dict[str, Any]:
    draw.inner = None  # ours takes more (docs/reference/operators.md)
    return {**same_as_first(draw), "fill_value": draw.number(), "memory_format": None}


def fill_tensor(draw: Draw) -> dict[str, Any]:
    draw.inner = False  # a scalar has no channels
    shape = [1] if draw.is_wild() else []
    kind = draw.dtype if draw.chance(0.6) else draw.any_dtype()
    if kind.is_floating_point and draw.dtype == torch.uint8:
        kind = torch.int32
    value = torch.randint(0, 9, shape, generator=draw.torch).to(kind)
    return {"value": draw.plain(value)}


def arange(draw: Draw) -> dict[str, Any]:
    if draw.dtype == torch.bool and not draw.is_wild():
        draw.dtype = torch.int32
    end = draw.random.choice([0, 3, 7, 4.5, 2.0, -1 if draw.is_wild() else 5])
    count = max(0, -int(-float(end) // 1))
    return {"end": end, "out": ([count], draw.dtype)}


def arange_start(draw: Draw) -> dict[str, Any]:
    if draw.dtype in (torch.bool, torch.uint8) and not draw.is_wild():
        draw.dtype = torch.int32
    start, step = draw.random.choice([0, -2, 1.5, 3]), draw.random.choice([1, 2, 0.5, -1, -0.75])
    end = start + step * draw.random.choice([0, 1, 3, 4.5])
    if draw.is_wild():
        step = -step
    count = max(0, -int(-((end - start) / step) // 1))
    return {"start": start, "end": end, "step": step, "out": ([count], draw.dtype)}


def ordered(draw: Draw) -> dict[str, Any]:
    """To plain or channels-last."""
    shape = draw.shape()
    given = draw.tensor(shape)
    order = None
    if draw.chance(0.7):
        draw.inner = len(shape) in (4, 5) and draw.chance(0.5)
        order = list(draw.order(len(shape)))
    if draw.is_wild():
        order = list(reversed(range(len(shape))))
    wild, draw.wild = draw.wild, 0.0
    placed = draw.order(len(shape)) if order is None else tuple(order)
    draw.wild = wild
    kind = draw.dtype if draw.chance(0.5) else draw.any_dtype()
    if order is None:
        placed = given.order
    return {"self": given, "dim_order": order, "placed": (shape, kind, placed)}


def to_order(draw: Draw) -> dict[str, Any]:
    return {**ordered(draw), "non_blocking": draw.is_wild()}


def clone_order(draw: Draw) -> dict[str, Any]:
    given = ordered(draw)
    shape, _, placed = given.pop("placed")
    kind = draw.any_dtype() if draw.is_wild() else draw.dtype
    return {**given, "placed": (shape, kind, placed), "non_blocking": draw.is_wild()}


def copy(draw: Draw) -> dict[str, Any]:
    shape = draw.shape()
    kind = draw.dtype if draw.chance(0.5) else draw.any_dtype()
    if draw.dtype == torch.uint8 and kind.is_floating_point:
        kind = torch.int16
    given = draw.tensor(shape)
    out = {"out": (shape, draw.dtype)}
    return {"self": given, "src": draw.tensor(draw.broadcast(shape), kind), **out}


def copy_into(draw: Draw) -> dict[str, Any]:
    given = copy(draw)
    del given["out"]
    return given


def view(draw: Draw) -> dict[str, Any]:
    shape = list(whole_shape(draw, 0))
    draw.inner = draw.is_wild()
    size = list(shape)
    draw.random.shuffle(size)
    if len(size) > 1 and draw.chance(0.6):
        size = [size[0] * size[1], *size[2:]]
    if draw.chance(0.3):
        size.insert(draw.between(0, len(size)), 1)
    made = list(size)
    if size and draw.chance(0.4):
        size[draw.between(0, len(size) - 1)] = -1
    if draw.is_wild() and size:
        size[0] = -1 if size[0] != -1 else 7
    return {"self": draw.tensor(shape), "size": size, "out": (made, draw.dtype)}


def squeeze_dims(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(1)
    return {"shape": shape, "dim": draw.dims(len(shape))}


def unsqueeze(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(0, 4)
    draw.inner = False
    return {"shape": shape, "dim": draw.dim(len(shape) + 1)}


def strided(draw: Draw) -> dict[str, Any]:
    draw.inner = draw.is_wild()
    size = list(whole_shape(draw, 0, 3))
    stride = [draw.random.choice([0, 1, 2, 3]) for _ in size]
    first = draw.random.choice([None, 0, 2])
    last = (first or 0) + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    given = draw.tensor([max(last, 1) if draw.is_wild() else last + 1])
    arguments = {"size": size, "stride": stride, "storage_offset": first}
    return {"self": given, **arguments, "out": (size, draw.dtype)}


def diagonal(draw: Draw) -> dict[str, Any]:
    draw.inner = draw.is_wild()
    shape = draw.shape(2, 4)
    first, second = draw.random.sample(range(len(shape)), 2)
    if draw.is_wild():
        second = first
    dims = {"dim1": first, "dim2": second - len(shape) if draw.chance(0.4) else second}
    return {"shape": shape, "offset": draw.between(-3, 3), **dims}


def expand(draw: Draw) -> dict[str, Any]:
    draw.inner = draw.is_wild()
    whole = list(draw.shape(0, 5))
    own = list(draw.broadcast(whole))
    added = len(whole) - len(own)
    size = [
        -1 if i >= added and own[i - added] == n and draw.chance(0.3) else n
        for i, n in enumerate(whole)
    ]
    return {"self": draw.tensor(own), "size": size, "out": (whole, draw.dtype)}


def repeat(draw: Draw) -> dict[str, Any]:
    draw.inner = draw.is_wild()
    shape = draw.shape(0, 4)
    count = len(shape) + draw.random.choice([0, 0, 1]) - draw.is_wild()
    repeats = [draw.random.choice([1, 1, 2, 3, 0]) for _ in range(max(count, 0))]
    return {"shape": shape, "repeats": repeats}


def permute(draw: Draw) -> dict[str, Any]:
    shape = draw.shape()
    dims = draw.random.sample(range(len(shape)), len(shape))
    if draw.is_wild() and dims:
        dims[0] = dims[-1]
    return {"shape": shape, "dims": [d - len(shape) if draw.chance(0.2) else d for d in dims]}


def transpose(draw: Draw) -> dict[str, Any]:
    shape = draw.shape()
    return {"shape": shape, "dim0": draw.dim(len(shape)), "dim1": draw.dim(len(shape))}


def matrix(draw: Draw) -> dict[str, Any]:
    draw.inner = False
    return {"shape": draw.shape(3, 3) if draw.is_wild() else draw.shape(0, 2)}


def square(draw: Draw) -> dict[str, Any]:
    draw.inner = draw.is_wild()
    return {"shape": draw.shape(2, 4), "diagonal": draw.between(-3, 3)}


def flip(draw: Draw) -> dict[str, Any]:
    shape = draw.shape()
    return {"shape": shape, "dims": draw.dims(len(shape))}


def roll(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(1)
    dims = draw.dims(len(shape)) or [0]
    return {"shape": shape, "dims": dims, "shifts": [draw.between(-7, 7) for _ in dims]}


def unfold(draw: Draw) -> dict[str, Any]:
    shape = whole_shape(draw, 1, 4)
    dim = draw.between(0, len(shape) - 1)
    size = draw.between(0, shape[dim] + draw.is_wild())
    given = {"shape": shape, "dimension": dim - len(shape) if draw.chance(0.3) else dim}
    return {**given, "size": size, "step": draw.between(0 if draw.is_wild() else 1, 3)}


def shuffle(draw: Draw) -> dict[str, Any]:
    draw.inner = draw.is_wild()
    factor = draw.between(1, 3)
    shape = list(whole_shape(draw, 3, 5))
    shape[-3] = factor * factor * draw.between(1, 2) + draw.is_wild()
    return {"shape": shape, "upscale_factor": factor}


def unshuffle(draw: Draw) -> dict[str, Any]:
    draw.inner = draw.is_wild()
    factor = draw.between(1, 3)
    shape = list(whole_shape(draw, 3, 5))
    shape[-1], shape[-2] = factor * draw.between(1, 2), factor * draw.between(1, 2)
    return {"shape": shape, "downscale_factor": factor}


def pad(dims: int) -> Hint:
    def hint(draw: Draw) -> dict[str, Any]:
        draw.inner = draw.is_wild()
        shape = tuple(draw.between(2, 4) for _ in range(dims + draw.between(1, 2)))
        padding = [draw.random.choice([0, 1, 1, 2, -1]) for _ in range(2 * dims)]
        padding = [min(p, shape[len(shape) - 1 - i // 2] - 1) for i, p in enumerate(padding)]
        if draw.is_wild():
            padding[0] = 7
        return {"shape": shape, "padding": padding}

    return hint


def constant_pad(draw: Draw) -> dict[str, Any]:
    shape = whole_shape(draw, 0)
    sides = draw.between(0, len(shape)) + draw.is_wild()
    padding = [
        draw.random.choice([0, 0, 1, 2, -1 if draw.is_wild() else 3]) for _ in range(2 * sides)
    ]
    return {"shape": shape, "pad": padding, "value": draw.number()}


def select(draw: Draw) -> dict[str, Any]:
    shape = whole_shape(draw)
    dim = draw.between(0, len(shape) - 1)
    index = draw.between(-shape[dim], shape[dim] - 1 + draw.is_wild())
    return {"shape": shape, "dim": dim - len(shape) if draw.chance(0.3) else dim, "index": index}


def narrow(draw: Draw) -> dict[str, Any]:
    shape = whole_shape(draw)
    dim = draw.between(0, len(shape) - 1)
    start = draw.between(0, shape[dim])
    length = draw.between(0, shape[dim] - start + draw.is_wild())
    return {"shape": shape, "dim": dim, "start": start, "length": length}


def _slice(draw: Draw, size: int) -> dict[str, Any]:
    far = [None, draw.between(-size - 1, size + 1), 2**63 - 1]
    step = 0 if draw.is_wild() else draw.between(1, 3)
    start = draw.random.choice([None, draw.between(-size - 1, size + 1)])
    return {"start": start, "end": draw.random.choice(far), "step": step}


def slice_of(draw: Draw) -> dict[str, Any]:
    shape = draw.shape(1)
    dim = draw.between(0, len(shape) - 1)
    given = {"shape": shape, "dim": dim - len(shape) if draw.chance(0.3) else dim}
    return {**given, **_slice(draw, shape[dim])}


def slice_scatter(draw: Draw) -> dict[str, Any]:
    given = slice_of(draw)
    shape, dim = list(given["shape"]), given["dim"]
    shape[dim] = len(range(shape[dim])[given["start"] : given["end"] : given["step"] or 1])
    return {**given, "self": draw.tensor(given.pop("shape")), "src": draw.tensor(shape)}


def select_scatter(draw: Draw) -> dict[str, Any]:
    draw.inner = False
    given = select(draw)
    shape = list(given.pop("shape"))
    first = draw.tensor(shape)
    del shape[given["dim"]]
    return {**given, "self": first, "src": draw.tensor(shape)}


def split(draw: Draw) -> dict[str, Any]:
    shape = whole_shape(draw)
    dim = draw.between(0, len(shape) - 1)
    size = draw.between(1, shape[dim] + 1)
    given = draw.tensor(shape)
    kind = draw.dtype if draw.chance(0.8) or draw.dtype.is_floating_point else draw.any_dtype()
    draw.typed = True
    pieces = [(t.shape, kind) for t in torch.split(given.tensor, size, dim)]
    return {"self": given, "split_size": size, "dim": dim, "out": pieces}


def split_with_sizes(draw: Draw) -> dict[str, Any]:
    shape = list(whole_shape(draw))
    dim = draw.between(0, len(shape) - 1)
    sizes = [draw.between(0, 3) for _ in range(draw.between(1, 4))]
    shape[dim] = sum(sizes)
    given = draw.tensor(shape)
    draw.typed = True
    pieces = [(t.shape, draw.dtype) for t in torch.split(given.tensor, sizes, dim)]
    if draw.is_wild():
        sizes[0] += 1
    at = dim - len(shape) if draw.chance(0.3) else dim
    return {"self": given, "split_sizes": sizes, "dim": at, "out": pieces}


def unbind(draw: Draw) -> dict[str, Any]:
    draw.inner = False
    shape = list(whole_shape(draw))
    dim = draw.between(0, len(shape) - 1)
    given = draw.tensor(shape)
    pieces = [(t.shape, draw.dtype) for t in torch.unbind(given.tensor, dim)]
    return {"self": given, "dim": dim - len(shape) if draw.chance(0.3) else dim, "out": pieces}


def cat(draw: Draw) -> dict[str, Any]:
    """Of tensors of one order of dimensions: ExecuTorch joins channels-last ones as plain ones."""
    draw.inner = False
    shape = list(whole_shape(draw))
    dim = draw.between(0, len(shape) - 1)
    tensors, total = [], 0
    for _ in range(draw.between(1, 4)):
        own = list(shape)
        own[dim] = draw.random.choice([0, 1, 2, 3])
        if draw.is_wild() and len(own) > 1:
            own[dim - 1] += 1
        kind = draw.dtype if draw.chance(0.85) else draw.any_dtype()
        tensors.append(draw.tensor(own, kind))
        total += own[dim]
    at = dim - len(shape) if draw.chance(0.3) else dim
    whole = [*shape[:dim], total, *shape[dim + 1 :]]
    return {"tensors": tensors, "dim": at, "out": (whole, draw.dtype)}


def stack(draw: Draw) -> dict[str, Any]:
    draw.inner = False
    shape = draw.shape(0, 4)
    count = draw.between(1, 4)
    kinds = [draw.dtype if draw.chance(0.85) else draw.any_dtype() for _ in range(count)]
    tensors = [draw.tensor(shape, kind) for kind in kinds]
    dim = draw.between(0, len(shape))
    whole = [*shape[:dim], count, *shape[dim:]]
    at = dim - len(whole) if draw.chance(0.3) else dim
    return {"tensors": tensors, "dim": at, "out": (whole, draw.dtype)}


FLOATS, WHOLES = of_type("floats"), of_type("wholes")
HINTS: dict[str, Hint] = {
    "aten::_to_copy": same_as_first,
    "aten::add.out": same_images,
    "aten::add.Scalar_out": number_of_kind,
    "aten::arange": arange,
    "aten::arange.start_out": arange_start,
    "aten::as_strided_copy": strided,
    "aten::bitwise_and": WHOLES,
    "aten::bitwise_left_shift": shift,
    "aten::bitwise_left_shift.Tensor_Scalar_out": shift_by_number,
    "aten::bitwise_not": WHOLES,
    "aten::bitwise_or": WHOLES,
    "aten::bitwise_right_shift": shift,
    "aten::bitwise_right_shift.Tensor_Scalar_out": shift_by_number,
    "aten::bitwise_xor": WHOLES,
    "aten::cat": cat,
    "aten::clamp.out": clamp,
    "aten::constant_pad_nd": constant_pad,
    "aten::copy": copy,
    "aten::copy_": copy_into,
    "aten::diagonal_copy": diagonal,
    "aten::div.Scalar_mode_out": mode(divisor_number),
    "aten::div.out_mode": mode(divisor),
    "aten::div.out": same_images,
    "aten::elu": elu,
    "aten::exp": exponential,
    "aten::empty": of_size,
    "aten::expand_copy": expand,
    "aten::fill.Tensor_out": fill_tensor,
    "aten::flip": flip,
    "aten::floor_divide": divisor,
    "aten::fmod.Scalar_out": divisor_number,
    "aten::fmod.Tensor_out": divisor,
    "aten::full": full,
    "aten::full_like": full_like,
    "aten::gelu": gelu,
    "aten::glu": glu,
    "aten::hardtanh": hardtanh,
    "aten::le.Tensor_out": same_images,
    "aten::leaky_relu": leaky,
    "aten::logit": logit,
    "aten::masked_fill": masked,
    "aten::masked_scatter": masked_scatter,
    "aten::masked_select": masked_select,
    "aten::mul.out": same_images,
    "aten::narrow_copy": narrow,
    "aten::native_dropout": dropout,
    "aten::nonzero": nonzero,
    "aten::ones": of_size,
    "aten::permute_copy": permute,
    "aten::pixel_shuffle": shuffle,
    "aten::pixel_unshuffle": unshuffle,
    "aten::pow.Scalar_out": power_of_number,
    "aten::pow.Tensor_Scalar_out": power_by_number,
    "aten::pow.Tensor_Tensor_out": power,
    "aten::reflection_pad1d": pad(1),
    "aten::reflection_pad2d": pad(2),
    "aten::reflection_pad3d": pad(3),
    "aten::remainder.Scalar_out": divisor_number,
    "aten::remainder.Tensor_out": divisor,
    "aten::repeat": repeat,
    "aten::replication_pad1d": pad(1),
    "aten::replication_pad2d": pad(2),
    "aten::replication_pad3d": pad(3),
    "aten::roll": roll,
    "aten::scalar_tensor": scalar,
    "aten::select_copy": select,
    "aten::select_scatter": select_scatter,
    "aten::slice_copy": slice_of,
    "aten::slice_scatter": slice_scatter,
    "aten::split_copy": split,
    "aten::split_with_sizes_copy": split_with_sizes,
    "aten::squeeze_copy.dims_out": squeeze_dims,
    "aten::stack": stack,
    "aten::sub.Scalar_out": number_of_kind,
    "aten::sub.out": same_images,
    "aten::t_copy": matrix,
    "aten::transpose_copy": transpose,
    "aten::tril": square,
    "aten::unbind_copy": unbind,
    "aten::unfold_copy": unfold,
    "aten::unsqueeze_copy": unsqueeze,
    "aten::view_copy": view,
    "aten::where": condition,
    "aten::zeros": of_size,
    "dim_order_ops::_clone_dim_order": clone_order,
    "dim_order_ops::_empty_dim_order": ordered_size,
    "dim_order_ops::_to_dim_order_copy": to_order,
}


# Where the wheel has an optimised kernel, which sums floats in another order: whole numbers, whose
# sums are exact.
SUMMED = frozenset(
    f"aten::{name}" for name in ("addmm.out", "bmm.out", "linear.out", "mm.out", "sum.IntList_out")
)

# Or which has functions of its own: how many units of the type's precision its results are off.
APPROXIMATE = {
    "aten::_log_softmax.out": 4.0,
    "aten::_softmax.out": 4.0,
    "aten::div.Scalar_out": 1.0,
    "aten::div.out": 1.0,
    "aten::elu.out": 4.0,
    "aten::exp.out": 4.0,
    "aten::gelu.out": 4.0,
    "aten::logit.out": 4.0,
    "aten::native_layer_norm.out": 32.0,
    "aten::sigmoid.out": 4.0,
    "aten::tanh.out": 4.0,
}


def hint_of(name: str) -> Hint | None:
    """That of an operator: by its full name, or that of all its overloads."""
    for table in (HINTS, places.HINTS, windows.HINTS):
        hint = table.get(name) or table.get(name.partition(".")[0])
        if hint is not None:
            return hint
    return None
