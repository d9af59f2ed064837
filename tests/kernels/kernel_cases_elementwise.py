"""Calls that work element by element, and along dimensions."""

from __future__ import annotations

from tests.kernels.kernel_draw import Draw, Makers, any_tensor
from tests.kernels.kernel_program import Activation, Case, Constant
from tests.late import Late

torch = Late("torch")


def operands(draw: Draw) -> tuple[Activation, Activation]:
    r = draw.random
    n, c, h, w = r.randint(1, 2), r.randint(1, 33), r.randint(1, 5), r.randint(1, 5)
    whole = draw.image(n, c, h, w)
    choice = r.random()
    if choice < 0.3:
        both = [whole, draw.image(1, c, 1, 1)]
        r.shuffle(both)
        return Activation(both[0]), Activation(both[1])
    if choice < 0.6:
        size = r.choice([0, 1, 3, 37, 64])
        return Activation(draw.int8(2, size)), Activation(draw.int8(2, size))
    return Activation(whole), Activation(draw.image(n, c, h, w))


def add(draw: Draw) -> Case:
    r = draw.random
    a, b = operands(draw)
    wild = r.random() < 0.3
    into = [r.choice([-30, 0, 1, 3, 7] if wild else [0, -1, -2, -5]) for _ in range(2)]
    out = r.choice([-30, 0, 7, -19]) if wild else r.randint(-21, -16)
    arguments = (
        a,
        draw.zero_point(),
        draw.multiplier(),
        into[0],
        b,
        draw.zero_point(),
        draw.multiplier(),
        into[1],
        draw.zero_point(),
        draw.multiplier(),
        out,
        *draw.bounds(),
    )
    name = f"add {list(a.tensor.shape)} {list(b.tensor.shape)} shifts {into} {out}"
    return Case(name, "cortex_m.quantized_add", arguments)


def mul(draw: Draw) -> Case:
    a, b = operands(draw)
    shift = draw.random.choice([-30, -9, -8, -7, -6, -5, 0, 1, 7])
    # Nearly constant values give zero points far outside of int8.
    zeros = draw.random.choice([(0, 0), (0, -162_720), (1 << 30, 0)])
    arguments = (
        a,
        zeros[0] or draw.zero_point(),
        b,
        zeros[1] or draw.zero_point(),
        draw.zero_point(),
        draw.multiplier(),
        shift,
    )
    name = f"mul {list(a.tensor.shape)} {list(b.tensor.shape)} shift {shift}"
    return Case(name, "cortex_m.quantized_mul", arguments)


def div(draw: Draw) -> Case:
    r = draw.random
    shape = r.choice([(0,), (1,), (3, 17), (2, 3, 4)])
    wide = r.random() < 0.3
    kind, bound = (torch.int16, 1 << 15) if wide else (torch.int8, 1 << 7)
    both = [torch.randint(-bound, bound, shape, generator=draw.torch).to(kind) for _ in range(2)]
    zero = draw.zero_point()
    if both[1].numel() > 2:
        both[1].view(-1)[:2] = zero  # the divisor becomes 0
    scale = r.choice([1.0, 0.5, 12.0, r.uniform(1e-3, 300.0)])
    arguments = (
        Activation(both[0]),
        draw.zero_point(),
        Activation(both[1]),
        zero,
        draw.zero_point(),
        scale,
    )
    return Case(f"div {kind} {shape} scale {scale}", "cortex_m.quantized_div", arguments)


def extremum(draw: Draw) -> Case:
    r = draw.random
    whole = (r.randint(1, 3), r.randint(1, 20), r.randint(1, 5), r.randint(1, 5))
    other = r.choice([(1,), whole, (1, whole[1], 1, 1), whole[3:], tuple(whole[2:])])
    x = draw.int8(*whole)
    if r.random() < 0.5:
        x = x.to(memory_format=torch.channels_last)
    which = r.choice(["minimum", "maximum"])
    both = [Activation(x), Activation(draw.int8(*other))]
    return Case(f"{which} {whole} {other}", f"cortex_m.{which}", tuple(both))


def activation(draw: Draw) -> Case:
    r = draw.random
    x = draw.int8(*r.choice([(0,), (1,), (3, 5), (2, 16), (7, 37)]))
    if r.random() < 0.3:
        x = draw.image(1, r.randint(1, 20), 3, 4)
    arguments = (Activation(x), Constant(draw.int8(256)))
    return Case(f"activation {list(x.shape)}", "cortex_m.quantized_activation", arguments)


def softmax(draw: Draw) -> Case:
    r = draw.random
    shape = r.choice([(1, 8), (3, 10), (2, 5, 33), (4, 1), (2, 300), (1, 512)])
    x = draw.int8(*shape)
    dim = r.choice([-1, -1, len(shape) - 1, 0])
    arguments = (
        Activation(x),
        dim,
        draw.zero_point(),
        -128,
        draw.multiplier(),
        r.choice([20, 22, 24]),
        -r.randint(1, 255),
    )
    return Case(f"softmax {shape} dim {dim}", "cortex_m.softmax", arguments)


def arithmetic(draw: Draw) -> Case:
    r = draw.random
    whole = (r.randint(1, 3), r.randint(1, 5), r.randint(1, 4), r.choice([0, 1, 5]))
    x = any_tensor(draw, *whole)
    other = r.choice([whole, (1,), (whole[1], 1, 1), whole[3:]])
    y = torch.randint(1, 9, other, generator=draw.torch).to(x.dtype)
    if r.random() < 0.3 and x.numel() > 0:
        x = x.to(memory_format=torch.channels_last)
    which = r.choice(["add", "sub", "mul"])
    options = {"alpha": r.choice([1, 2, -3])} if which in ("add", "sub") else {}
    both = (Activation(x), Activation(y))
    return Case(f"{which} {x.dtype} {whole} {other}", f"aten.{which}", both, options)


def quotient(draw: Draw) -> Case:
    r = draw.random
    whole = (r.randint(1, 3), r.randint(1, 5), r.randint(1, 4), r.choice([0, 1, 5]))
    x, y = (
        torch.randn(s, generator=draw.torch)
        for s in (whole, r.choice([whole, (1,), (whole[1], 1, 1), whole[3:]]))
    )
    if y.numel() > 3:
        y.view(-1)[:3] = torch.tensor([0.0, -0.0, float("inf")])
    both = [Activation(x), Activation(y)]
    r.shuffle(both)
    return Case(f"div {whole} {list(y.shape)}", "aten.div", tuple(both))


def softmax_float(draw: Draw) -> Case:
    r = draw.random
    shape = (2, r.randint(1, 5), r.choice([0, 1, 7]), r.randint(1, 40))
    x = torch.randn(shape, generator=draw.torch) * r.choice([1, 10, 80])
    if x.numel() > 40:
        x[0, 0, 0, :2] = torch.tensor([-float("inf"), 3e38])
        x[-1, -1, 0, 0] = r.choice([0.0, float("nan"), float("inf"), -float("inf")])
    if r.random() < 0.4 and x.numel() > 0:
        x = x.to(memory_format=torch.channels_last)
    dim = r.randint(-4, 3)
    arguments = (Activation(x), dim, False)
    return Case(f"softmax {shape} {dim}", "aten._softmax", arguments, tolerance=1e-6)


def clamp(draw: Draw) -> Case:
    r = draw.random
    x = any_tensor(draw, *r.choice([(0,), (1,), (3, 5), (2, 3, 4, 5)]))
    low, high = r.choice([(None, 3), (-2, None), (-4, 5), (5, -4)])
    return Case(f"clamp {x.dtype} {low} {high}", "aten.clamp", (Activation(x), low, high))


def reductions(draw: Draw) -> Case:
    r = draw.random
    x = any_tensor(draw, 2, r.randint(1, 6), 3, 4)
    dims = r.sample(range(-4, 0), r.randint(0, 4))
    tolerance = 0.0
    if x.dtype == torch.float32:
        x.view(-1)[5] = float("nan")
        tolerance = 1e-9  # which NaN comes out is not defined
    arguments = (Activation(x), dims, r.random() < 0.5)
    return Case(f"amax {x.dtype} {dims}", "aten.amax", arguments, tolerance=tolerance)


def comparison(draw: Draw) -> Case:
    r = draw.random
    kind = r.choice([torch.float32, torch.int8, torch.int32, torch.int64, torch.bool])
    shape = (2, r.randint(0, 6), 3, 4)
    x, y = (
        torch.randint(-2, 3, s, generator=draw.torch).to(kind)
        for s in (shape, r.choice([(4,), shape, (3, 1)]))
    )
    if kind == torch.float32:
        y.view(-1)[:1] = float("nan")
    if kind == torch.int64:
        y.view(-1)[:1] = (1 << 62) + 1
    both = [Activation(x), Activation(y)]
    r.shuffle(both)
    which = r.choice(["ge", "gt", "lt"])
    return Case(f"{which} {kind} {shape} {list(y.shape)}", f"aten.{which}", tuple(both))


def where(draw: Draw) -> Case:
    r = draw.random
    whole = (2, r.choice([1, 5]), 3, 4)
    shapes = [whole, (whole[1], 1, 1), (1,), (4,)]
    r.shuffle(shapes)
    kind = r.choice([torch.float32, torch.int8, torch.int32, torch.int64, torch.bool])
    condition, x, y = (torch.randint(-9, 10, s, generator=draw.torch) for s in shapes[:3])
    if r.random() < 0.3 and x.dim() == 4:
        x = x.to(memory_format=torch.channels_last)
    arguments = (Activation(condition > 0), Activation(x.to(kind)), Activation(y.to(kind)))
    return Case(f"where {kind} {shapes[:3]}", "aten.where", arguments)


def floor(draw: Draw) -> Case:
    r = draw.random
    x = torch.randn((2, r.choice([0, 1, 6]), 3, 4), generator=draw.torch) * 1000
    if x.numel() > 8:
        special = [float("inf"), -float("inf"), float("nan"), -0.0, -0.5, 3e38, 8388607.5]
        x.view(-1)[:7] = torch.tensor(special)
    if r.random() < 0.3:
        x = torch.randint(-9, 10, (3, 5), generator=draw.torch).to(
            r.choice([torch.int8, torch.int64])
        )
    elif r.random() < 0.4 and x.numel() > 0:
        x = x.to(memory_format=torch.channels_last)
    return Case(f"floor {x.dtype} {list(x.shape)}", "aten.floor", (Activation(x),))


def ordered(draw: Draw) -> torch.Tensor:
    """Many equal elements, and what has no place in an order."""
    r = draw.random
    kind = r.choice(
        [torch.float32, torch.float32, torch.int8, torch.int32, torch.int64, torch.bool]
    )
    x = torch.randint(-4, 5, (2, r.randint(1, 40), 3, r.randint(1, 4)), generator=draw.torch)
    x = x.to(kind)
    if kind == torch.float32:
        x[x == 4] = float("nan")
        x[x == 3] = float("inf")
        x[x == -4] = -0.0
    if kind == torch.int64:
        x = x * (1 << 61)
    if r.random() < 0.3:
        x = x.to(memory_format=torch.channels_last)
    return x


def argmax(draw: Draw) -> Case:
    r = draw.random
    x = ordered(draw)
    x = x.to(torch.uint8) if x.dtype == torch.bool else x  # torch has none of bool
    dim = r.choice([None, r.randint(-4, 3)])
    x = x.contiguous() if dim is None else x
    keep = r.random() < 0.5
    return Case(f"argmax {x.dtype} {dim} {keep}", "aten.argmax", (Activation(x), dim, keep))


def topk(draw: Draw) -> Case:
    r = draw.random
    x = ordered(draw)
    x = x.to(torch.uint8) if x.dtype == torch.bool else x
    dim = r.randint(-4, 3)
    if r.random() < 0.2:  # a long line, of which few are wanted
        x, dim = torch.randint(-9, 10, (2, 300), generator=draw.torch).to(torch.float32), -1
    k = r.randint(0, min(x.shape[dim], 4) if r.random() < 0.6 else x.shape[dim])
    arguments = (Activation(x), k, dim, r.random() < 0.5, r.random() < 0.7)
    name = f"topk {x.dtype} {list(x.shape)} {arguments[1:]}"
    return Case(name, "aten.topk", arguments, output=r.randint(0, 1))


def sort(draw: Draw) -> Case:
    r = draw.random
    x, dim = ordered(draw), r.randint(-4, 3)
    arguments = (Activation(x), dim, r.random() < 0.5)
    name = f"sort {x.dtype} {list(x.shape)} {arguments[1:]}"
    return Case(name, "aten.sort", arguments, output=r.randint(0, 1))


MAKERS: Makers = {
    "add": (add, 30),
    "mul": (mul, 20),
    "extremum": (extremum, 20),
    "softmax": (softmax, 20),
    "activation": (activation, 12),
    "div": (div, 20),
    "arithmetic": (arithmetic, 30),
    "quotient": (quotient, 20),
    "softmax_float": (softmax_float, 30),
    "clamp": (clamp, 15),
    "reductions": (reductions, 20),
    "comparison": (comparison, 25),
    "where": (where, 20),
    "floor": (floor, 12),
    "argmax": (argmax, 25),
    "topk": (topk, 40),
    "sort": (sort, 25),
}
