"""Calls that move elements and compute nothing."""

from __future__ import annotations

from tests.kernels.kernel_draw import Draw, Makers, any_tensor
from tests.kernels.kernel_program import Activation, Case
from tests.late import Late

torch = Late("torch")


def pad(draw: Draw) -> Case:
    r = draw.random
    rank = r.randint(1, 4)
    shape = [r.randint(1, 9) for _ in range(rank)]
    x = draw.int8(*shape)
    if rank == 4 and r.random() < 0.6:
        x = x.to(memory_format=torch.channels_last)
    unused = [0] * (4 - rank)
    pre, post = ([*unused, *(r.choice([0, 0, 1, 3]) for _ in range(rank))] for _ in range(2))
    arguments = (Activation(x), pre, post, r.randint(-128, 127))
    return Case(f"pad {shape} {pre} {post}", "cortex_m.pad", arguments)


def transpose(draw: Draw) -> Case:
    r = draw.random
    rank = r.randint(2, 4)
    shape = [r.randint(1, 9) for _ in range(rank)]
    perm = list(range(rank))
    r.shuffle(perm)
    x = draw.int8(*shape)
    return Case(f"transpose {shape} {perm}", "cortex_m.transpose", (Activation(x), perm))


def move(draw: Draw) -> Case:
    r = draw.random
    x = any_tensor(draw, 2, r.choice([1, 6]), 3, 4)
    if r.random() < 0.5:
        x = x.to(memory_format=torch.channels_last)
    perm = list(range(4))
    r.shuffle(perm)
    which = r.choice(["clone", "permute", "order"])
    if which == "permute":
        return Case(f"permute {perm}", "aten.permute_copy", (Activation(x), perm))
    order = r.choice([torch.contiguous_format, torch.channels_last])
    options = {"memory_format": order} if which == "order" else {}
    return Case(f"clone {x.dtype} {options}", "aten.clone", (Activation(x),), options)


def convert(draw: Draw) -> Case:
    r = draw.random
    kinds = [
        torch.float32,
        torch.float64,
        torch.bool,
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
    ]
    kind, to = r.sample(kinds, 2)
    x = torch.randint(-1000, 1000, (2, r.choice([0, 1, 6]), 3, 4), generator=draw.torch)
    if kind == torch.int64 and r.random() < 0.5:
        x = x * ((1 << 53) // 1000) + x  # more bits than a double has
    x = (x * 0.37 if kind.is_floating_point else x).to(kind)
    if to == torch.uint8 and kind.is_floating_point:
        x = x.abs()  # C++ converts no negative float to an unsigned type
    if r.random() < 0.4 and x.numel() > 0:
        x = x.to(memory_format=torch.channels_last)
    options = {"dtype": to}
    if r.random() < 0.3 and x.numel() > 0:
        options["memory_format"] = torch.channels_last
    return Case(f"convert {kind} {to}", "aten._to_copy", (Activation(x),), options)


def view(draw: Draw) -> Case:
    r = draw.random
    x = any_tensor(draw, 2, r.choice([0, 1, 6]), 3, 4)
    shape = r.choice([[2, x.shape[1] * 12], [x.numel()], [4, 3, x.shape[1], 2]])
    return Case(f"view {x.dtype} {shape}", "aten.view_copy", (Activation(x), shape))


def cat(draw: Draw) -> Case:
    r = draw.random
    shape = [2, r.randint(1, 4), 3, 4]
    dim = r.randint(-4, 3)
    first = any_tensor(draw, *shape)
    shape[dim] = r.randint(1, 5)
    second = torch.randint(-9, 10, shape, generator=draw.torch).to(first.dtype)
    if r.random() < 0.4:
        first, second = (t.to(memory_format=torch.channels_last) for t in (first, second))
    pieces = (Activation(first), Activation(second))
    return Case(f"cat {first.dtype} {dim}", "aten.cat", (pieces, dim))


def slices(draw: Draw) -> Case:
    r = draw.random
    x = any_tensor(draw, 2, r.randint(1, 6), 3, 4)
    if r.random() < 0.5:
        where = (Activation(x), r.randint(-5, 4))
        return Case(f"unsqueeze {x.dtype}", "aten.unsqueeze_copy", where)
    dim = r.randint(-4, 3)
    index = r.randint(-x.shape[dim], x.shape[dim] - 1)
    return Case(f"select {dim} {index}", "aten.select_copy", (Activation(x), dim, index))


def slice_copy(draw: Draw) -> Case:
    r = draw.random
    x = any_tensor(draw, 2, r.randint(1, 6), 3, r.randint(1, 9))
    if r.random() < 0.4:
        x = x.to(memory_format=torch.channels_last)
    dim = r.randint(-4, 3)
    beyond = x.shape[dim] + 1
    start, end = (r.choice([None, r.randint(-beyond, beyond), 0]) for _ in range(2))
    start = r.choice([start, x.shape[dim] // 2])
    end = r.choice([end, end, (1 << 63) - 1])
    step = r.choice([1, 1, 2, 3, 100])
    arguments = (Activation(x), dim, start, end, step)
    return Case(f"slice {x.dtype} {arguments[1:]}", "aten.slice_copy", arguments)


def squeeze_copy(draw: Draw) -> Case:
    r = draw.random
    x = any_tensor(draw, *(r.choice([1, 1, 3]) for _ in range(4)))
    dims = r.sample(range(4), r.randint(0, 4))
    dims = [d - r.choice([0, 4]) for d in dims]
    return Case(f"squeeze {list(x.shape)} {dims}", "aten.squeeze_copy", (Activation(x), dims))


def index(draw: Draw) -> Case:
    r = draw.random
    x = any_tensor(draw, 3, 4, 2, 5)
    if r.random() < 0.3:
        x = x.to(memory_format=torch.channels_last)
    named = r.sample(range(4), r.randint(1, 3))
    whole = r.choice([(), (1,), (6,), (2, 3)])
    kind = r.choice([torch.int32, torch.int64])
    indices: list[Activation | None] = [None] * (max(named) + 1)
    for dim in named:
        shape = r.choice([whole, whole, whole[-1:], (1,)]) if whole else ()
        extent = x.shape[dim]
        drawn = torch.randint(-extent, extent, shape, generator=draw.torch)
        indices[dim] = Activation(drawn.to(kind))
    name = f"index {x.dtype} {[None if i is None else list(i.tensor.shape) for i in indices]}"
    return Case(name, "aten.index", (Activation(x), tuple(indices)))


def upsampled(draw: Draw) -> tuple[torch.Tensor, list[int] | None, list[float] | None]:
    """An image, and the size it is to have or the factors that make it."""
    r = draw.random
    shape = (r.randint(1, 2), r.randint(1, 3), r.randint(1, 7), r.randint(1, 7))
    x = torch.randn(shape, generator=draw.torch)
    if r.random() < 0.4:
        x = x.to(memory_format=torch.channels_last)
    if r.random() < 0.5:
        return x, [r.randint(1, 15), r.randint(1, 15)], None
    return x, None, [r.choice([1.0, 2.0, 3.0, 1.5, 2.7]) for _ in range(2)]


def nearest(draw: Draw) -> Case:
    x, size, factors = upsampled(draw)
    if draw.random.random() < 0.3:
        x = (x * 50).to(torch.int8).to(torch.float32)
    arguments = (Activation(x), size, factors)
    return Case(
        f"nearest {list(x.shape)} {size} {factors}", "aten.upsample_nearest2d.vec", arguments
    )


def bilinear(draw: Draw) -> Case:
    x, size, factors = upsampled(draw)
    corners = draw.random.random() < 0.5
    name = f"bilinear {list(x.shape)} {size} {factors} {corners}"
    arguments = (Activation(x), size, corners, factors)
    return Case(name, "aten.upsample_bilinear2d.vec", arguments)


MAKERS: Makers = {
    "pad": (pad, 20),
    "transpose": (transpose, 15),
    "move": (move, 25),
    "convert": (convert, 50),
    "view": (view, 10),
    "view_copy": (view, 10),  # not bound to the input's memory
    "cat": (cat, 15),
    "slices": (slices, 20),
    "slice_copy": (slice_copy, 30),
    "squeeze_copy": (squeeze_copy, 12),
    "index": (index, 30),
    "nearest": (nearest, 25),
    "bilinear": (bilinear, 25),
}
