"""Random operator calls, weighted towards the edges of what the definitions allow."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import torch
from kernel_program import Activation, Case, Constant, Scratch

INT32_MAX = 2**31 - 1


class Draw:
    """A seeded source of shapes, tensors and quantisation parameters."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.torch = torch.Generator().manual_seed(seed)

    def int8(self, *shape: int) -> torch.Tensor:
        return torch.randint(-128, 128, shape, generator=self.torch, dtype=torch.int8)

    def image(self, n: int, c: int, h: int, w: int) -> torch.Tensor:
        return self.int8(n, c, h, w).to(memory_format=torch.channels_last)

    def weights(self, *shape: int) -> torch.Tensor:
        if self.random.random() < 0.15:
            return torch.full(shape, -128, dtype=torch.int8)
        return self.int8(*shape)

    def zero_point(self) -> int:
        return self.random.choice([-128, 127, 0, self.random.randint(-128, 127)])

    def multiplier(self) -> int:
        return self.random.choice([1 << 30, INT32_MAX, self.random.randint(1 << 30, INT32_MAX)])

    def bounds(self) -> tuple[int, int]:
        choice = self.random.random()
        if choice < 0.5:
            return -128, 127
        low = self.random.randint(-128, 100)
        return low, self.random.randint(low, 127)

    def scales(self, channels: int, gain: float) -> tuple[Constant, Constant]:
        """Per-channel scales that bring accumulators of size `gain` near int8, and some that
        do not: everything lost, nothing shifted, shifted left."""
        usual = -max(0, int(gain).bit_length() - 7)
        wild = self.random.random() < 0.25
        shifts = [
            self.random.choice([-30, -31, 0, 1, 4, 7, usual])
            if wild
            else usual + self.random.randint(-1, 2 if usual < -2 else 0)
            for _ in range(channels)
        ]
        multipliers = [self.multiplier() for _ in range(channels)]
        as_int = lambda values: Constant(torch.tensor(values, dtype=torch.int32))  # noqa: E731
        return as_int(multipliers), as_int(shifts)

    def bias(self, channels: int) -> Constant | None:
        if self.random.random() < 0.3:
            return None
        values = torch.randint(-(1 << 14), 1 << 14, (channels,), generator=self.torch)
        return Constant(values.to(torch.int32))


def window(draw: Draw, kernels: list[int]) -> dict[str, int]:
    """One axis of a sliding window that produces at least one output."""
    r = draw.random
    while True:
        axis = {
            "size": r.randint(1, 14),
            "kernel": r.choice(kernels),
            "stride": r.choice([1, 1, 2, 3]),
            "pad": r.choice([0, 1, 1, 2, 3]),
            "dilation": r.choice([1, 1, 1, 2]),
        }
        span = axis["dilation"] * (axis["kernel"] - 1) + 1
        if axis["pad"] < span and axis["size"] + 2 * axis["pad"] >= span:
            return axis


def pair(h: dict[str, int], w: dict[str, int], key: str) -> list[int]:
    return [h[key], w[key]]


def conv2d(draw: Draw) -> Case:
    r = draw.random
    pointwise = r.random() < 0.3
    h, w = (window(draw, [1] if pointwise else [1, 2, 3, 3, 5]) for _ in range(2))
    if pointwise and r.random() < 0.7:
        h.update(pad=0, dilation=1)
        w.update(pad=0, dilation=1)
    groups = r.choice([1, 1, 1, 2, 3])
    depth, outs = r.randint(1, 33 // groups), groups * r.randint(1, 33 // groups)
    if r.random() < 0.1:
        outs = groups * 70
    x = draw.image(r.choice([1, 1, 2]), groups * depth, h["size"], w["size"])
    column = h["kernel"] * w["kernel"] * depth
    zero_point = draw.zero_point()
    weight = Constant(draw.weights(outs, h["kernel"], w["kernel"], depth))
    arguments = (
        Activation(x), weight, draw.bias(outs), pair(h, w, "stride"), pair(h, w, "pad"),
        pair(h, w, "dilation"), -zero_point, draw.zero_point(),
        *draw.scales(outs, 75.0 * 150 * column**0.5), *draw.bounds(), Scratch(),
    )  # fmt: skip
    name = f"conv2d x{list(x.shape)} w{list(weight.tensor.shape)} {h} {w} groups {groups}"
    return Case(name, "cortex_m.quantized_conv2d", arguments)


def depthwise(draw: Draw) -> Case:
    r = draw.random
    kernels = r.choice([[3], [1, 2, 3, 4], [5, 7]])
    h, w = (window(draw, kernels) for _ in range(2))
    if r.random() < 0.6:
        h.update(dilation=1)
        w.update(dilation=1)
    channels = r.choice([1, r.randint(1, 33)])
    ratio = r.choice([1, 1, 1, 2, 5, 24 if channels == 1 else 3])
    x = draw.image(r.choice([1, 1, 1, 2]), channels, max(h["size"], 7), max(w["size"], 7))
    outs = channels * ratio
    weight = Constant(draw.weights(1, h["kernel"], w["kernel"], outs))
    arguments = (
        Activation(x), weight, draw.bias(outs), pair(h, w, "stride"), pair(h, w, "pad"),
        pair(h, w, "dilation"), ratio, -draw.zero_point(), draw.zero_point(),
        *draw.scales(outs, 75.0 * 150 * (h["kernel"] * w["kernel"]) ** 0.5), *draw.bounds(),
        Scratch(),
    )  # fmt: skip
    name = f"depthwise x{list(x.shape)} w{list(weight.tensor.shape)} {h} {w}"
    return Case(name, "cortex_m.quantized_depthwise_conv2d", arguments)


def linear(draw: Draw) -> Case:
    r = draw.random
    inner, outs = r.randint(1, 80), r.randint(1, 70)
    x = draw.int8(*r.choice([(1, inner), (2, inner), (5, inner), (2, 3, inner), (inner,)]))
    folded = r.random() < 0.5
    sums = torch.randint(-(1 << 14), 1 << 14, (1, outs), generator=draw.torch).to(torch.int32)
    multipliers, shifts = draw.scales(1, 75.0 * 75 * inner**0.5)
    low, high = draw.bounds()
    arguments = (
        Activation(x), Constant(draw.weights(outs, inner)), None if folded else draw.bias(outs),
        Constant(sums) if folded else None, -draw.zero_point(), r.choice([0, 0, 0, 5]),
        draw.zero_point(), multipliers.tensor.tolist(), shifts.tensor.tolist(), high, low,
    )  # fmt: skip
    return Case(f"linear x{list(x.shape)} out {outs}", "cortex_m.quantized_linear", arguments)


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
        a, draw.zero_point(), draw.multiplier(), into[0], b, draw.zero_point(), draw.multiplier(),
        into[1], draw.zero_point(), draw.multiplier(), out, *draw.bounds(),
    )  # fmt: skip
    name = f"add {list(a.tensor.shape)} {list(b.tensor.shape)} shifts {into} {out}"
    return Case(name, "cortex_m.quantized_add", arguments)


def mul(draw: Draw) -> Case:
    a, b = operands(draw)
    shift = draw.random.choice([-30, -9, -8, -7, -6, -5, 0, 1, 7])
    arguments = (
        a, draw.zero_point(), b, draw.zero_point(), draw.zero_point(), draw.multiplier(), shift,
    )  # fmt: skip
    name = f"mul {list(a.tensor.shape)} {list(b.tensor.shape)} shift {shift}"
    return Case(name, "cortex_m.quantized_mul", arguments)


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


def pool_axes(draw: Draw) -> tuple[dict[str, int], dict[str, int]]:
    axes = [window(draw, [1, 2, 3, 4]) for _ in range(2)]
    for axis in axes:
        axis.update(dilation=1, pad=min(axis["pad"], axis["kernel"] // 2))
        axis["size"] = max(axis["size"], axis["kernel"])
    return axes[0], axes[1]


def avg_pool(draw: Draw) -> Case:
    r = draw.random
    h, w = pool_axes(draw)
    if r.random() < 0.3:
        h.update(kernel=h["size"], pad=0)
        w.update(kernel=w["size"], pad=0)
    x = draw.image(r.randint(1, 2), r.randint(2, 33), max(h["size"], 2), max(w["size"], 2))
    shift = r.choice([-18, -9, -5, 0, 3])
    arguments = (
        Activation(x), pair(h, w, "kernel"), pair(h, w, "stride"), pair(h, w, "pad"),
        r.random() < 0.4, draw.zero_point(), draw.multiplier(), shift, Scratch(),
    )  # fmt: skip
    return Case(f"avg_pool {list(x.shape)} {h} {w}", "cortex_m.quantized_avg_pool2d", arguments)


def max_pool(draw: Draw) -> Case:
    r = draw.random
    h, w = pool_axes(draw)
    x = draw.image(r.randint(1, 2), r.randint(1, 33), h["size"], w["size"])
    zero_point = draw.zero_point()
    arguments = (
        Activation(x), pair(h, w, "kernel"), pair(h, w, "stride"), pair(h, w, "pad"), [1, 1],
        False, zero_point, zero_point, *draw.bounds(),
    )  # fmt: skip
    return Case(f"max_pool {list(x.shape)} {h} {w}", "cortex_m.quantized_max_pool2d", arguments)


def softmax(draw: Draw) -> Case:
    r = draw.random
    shape = r.choice([(1, 8), (3, 10), (2, 5, 33), (4, 1), (2, 300), (1, 512)])
    x = draw.int8(*shape)
    dim = r.choice([-1, -1, len(shape) - 1, 0])
    arguments = (
        Activation(x), dim, draw.zero_point(), -128, draw.multiplier(), r.choice([20, 22, 24]),
        -r.randint(1, 255),
    )  # fmt: skip
    return Case(f"softmax {shape} dim {dim}", "cortex_m.softmax", arguments)


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


def quantize(draw: Draw) -> Case:
    r = draw.random
    count = r.choice([0, 1, 3, 4, 37, 160])
    scale = r.choice([1.0, 0.5, 0.0078125, r.uniform(1e-4, 2.0)])
    steps = torch.randint(-300, 300, (1, count), generator=draw.torch).to(torch.float32)
    x = steps * (scale / 2)  # every second value is a tie
    if count > 8:
        x[0, :6] = torch.tensor([float("inf"), -float("inf"), float("nan"), 3e38, -0.0, 1e-40])
    arguments = (Activation(x), scale, draw.zero_point(), *draw.bounds(), torch.int8)
    return Case(f"quantize {count} scale {scale}", "cortex_m.quantize_per_tensor", arguments)


def dequantize(draw: Draw) -> Case:
    r = draw.random
    x = draw.int8(1, r.choice([0, 1, 3, 4, 37, 160]))
    arguments = (Activation(x), r.uniform(1e-5, 3.0), draw.zero_point(), -128, 127, torch.int8)
    return Case(f"dequantize {x.numel()}", "cortex_m.dequantize_per_tensor", arguments)


def activation(draw: Draw) -> Case:
    r = draw.random
    x = draw.int8(*r.choice([(0,), (1,), (3, 5), (2, 16), (7, 37)]))
    if r.random() < 0.3:
        x = draw.image(1, r.randint(1, 20), 3, 4)
    arguments = (Activation(x), Constant(draw.int8(256)))
    return Case(f"activation {list(x.shape)}", "cortex_m.quantized_activation", arguments)


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
        Activation(both[0]), draw.zero_point(), Activation(both[1]), zero, draw.zero_point(), scale,
    )  # fmt: skip
    return Case(f"div {kind} {shape} scale {scale}", "cortex_m.quantized_div", arguments)


def batch_matmul(draw: Draw) -> Case:
    r = draw.random
    batch, rows, inner, columns = (r.randint(1, 4), r.randint(1, 9), r.randint(1, 80),
                                   r.randint(1, 70))  # fmt: skip
    arguments = (
        Activation(draw.int8(batch, rows, inner)), r.choice([0, -draw.zero_point()]),
        Activation(draw.int8(batch, columns, inner)), r.choice([0, -draw.zero_point()]),
        draw.zero_point(), draw.multiplier(), r.choice([-9, -10, -11, -12, -30, 0, 1]), Scratch(),
    )  # fmt: skip
    name = f"bmm {batch}x{rows}x{inner}x{columns}"
    return Case(name, "cortex_m.quantized_batch_matmul", arguments)


def transpose_conv(draw: Draw) -> Case:
    r = draw.random
    axes = []
    for _ in range(2):
        axis = window(draw, [1, 2, 3, 4])
        axis["size"] = r.randint(1, 6)
        axis["extra"] = r.randint(0, max(axis["stride"], axis["dilation"]) - 1)
        span = axis["dilation"] * (axis["kernel"] - 1)
        if (axis["size"] - 1) * axis["stride"] - 2 * axis["pad"] + span + axis["extra"] + 1 < 1:
            axis["pad"] = 0
        axes.append(axis)
    h, w = axes
    depth, outs = r.randint(1, 33), r.randint(1, 20)
    x = draw.image(r.choice([1, 1, 2]), depth, h["size"], w["size"])
    weight = Constant(draw.weights(outs, h["kernel"], w["kernel"], depth))
    column = h["kernel"] * w["kernel"] * depth
    arguments = (
        Activation(x), weight, draw.bias(outs), pair(h, w, "stride"), pair(h, w, "pad"),
        pair(h, w, "extra"), pair(h, w, "dilation"), -draw.zero_point(), draw.zero_point(),
        *draw.scales(outs, 75.0 * 150 * column**0.5), *draw.bounds(), Scratch(), Scratch(),
    )  # fmt: skip
    name = f"transpose_conv x{list(x.shape)} w{list(weight.tensor.shape)} {h} {w}"
    return Case(name, "cortex_m.quantized_transpose_conv2d", arguments)


def nhwc(make: Callable[[Draw], Case]) -> Callable[[Draw], Case]:
    """The same call with the image's sizes in memory order."""

    def made(draw: Draw) -> Case:
        case = make(draw)
        image = case.arguments[0].tensor.permute(0, 2, 3, 1).contiguous()
        arguments = (Activation(image), *case.arguments[1:])
        return Case(f"{case.name} nhwc", f"{case.operator}_nhwc", arguments)

    return made


def quantize16(draw: Draw) -> Case:
    r = draw.random
    scale = r.uniform(1e-4, 2.0)
    steps = torch.randint(-70000, 70000, (2, r.choice([0, 5, 32])), generator=draw.torch)
    arguments = (
        Activation(steps.to(torch.float32) * (scale / 2)), scale, r.randint(-200, 200),
        -(1 << 15), (1 << 15) - 1, torch.int16,
    )  # fmt: skip
    return Case(f"quantize16 {list(steps.shape)}", "cortex_m.quantize_per_tensor", arguments)


def dequantize16(draw: Draw) -> Case:
    r = draw.random
    shape = (2, r.choice([0, 5, 32]))
    x = torch.randint(-(1 << 15), 1 << 15, shape, generator=draw.torch).to(torch.int16)
    arguments = (
        Activation(x), r.uniform(1e-5, 3.0), r.randint(-200, 200), -(1 << 15), (1 << 15) - 1,
        torch.int16,
    )  # fmt: skip
    return Case(f"dequantize16 {list(shape)}", "cortex_m.dequantize_per_tensor", arguments)


def any_tensor(draw: Draw, *shape: int) -> torch.Tensor:
    """Small whole numbers, so that floats are exact in any order of summation."""
    kind = draw.random.choice([torch.float32, torch.float32, torch.int8, torch.int32])
    return torch.randint(-9, 10, shape, generator=draw.torch).to(kind)


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


def clamp(draw: Draw) -> Case:
    r = draw.random
    x = any_tensor(draw, *r.choice([(0,), (1,), (3, 5), (2, 3, 4, 5)]))
    low, high = r.choice([(None, 3), (-2, None), (-4, 5), (5, -4)])
    return Case(f"clamp {x.dtype} {low} {high}", "aten.clamp", (Activation(x), low, high))


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


def reductions(draw: Draw) -> Case:
    r = draw.random
    x = any_tensor(draw, 2, r.randint(1, 6), 3, 4)
    if r.random() < 0.4:
        y = torch.randint(-9, 10, r.choice([(4,), tuple(x.shape), (3, 1)]), generator=draw.torch)
        return Case("ge", "aten.ge", (Activation(x), Activation(y.to(x.dtype))))
    dims = r.sample(range(-4, 0), r.randint(0, 4))
    return Case(f"amax {dims}", "aten.amax", (Activation(x), dims, r.random() < 0.5))


def max_pool_indices(draw: Draw) -> Case:
    r = draw.random
    h, w = pool_axes(draw)
    for axis in (h, w):
        axis["dilation"] = r.choice([1, 1, 2])
        axis["size"] = max(axis["size"], axis["dilation"] * (axis["kernel"] - 1) + 1)
    x = torch.randint(-50, 50, (r.randint(1, 2), 3, h["size"], w["size"]), generator=draw.torch)
    x = x.to(torch.float32)
    if r.random() < 0.4:
        x = x.to(memory_format=torch.channels_last)
    arguments = (
        Activation(x), pair(h, w, "kernel"), pair(h, w, "stride"), pair(h, w, "pad"),
        pair(h, w, "dilation"), r.random() < 0.4,
    )  # fmt: skip
    return Case(f"max_pool {list(x.shape)} {h} {w}", "aten.max_pool2d_with_indices", arguments)


def convolution(draw: Draw) -> Case:
    r = draw.random
    spatial = r.randint(1, 2)
    axes = [window(draw, [1, 2, 3]) for _ in range(spatial)]
    transposed = r.random() < 0.4
    for axis in axes:
        axis["size"] = min(axis["size"], 6)
        need = axis["dilation"] * (axis["kernel"] - 1) + 1
        axis["size"] = max(axis["size"], need)
        axis["pad"] = min(axis["pad"], axis["size"] // 2) if not transposed else 0
        axis["extra"] = r.randint(0, axis["stride"] - 1) if transposed else 0
    groups = r.choice([1, 1, 2])
    ins, outs = groups * r.randint(1, 4), groups * r.randint(1, 4)
    small = lambda *s: torch.randint(-4, 5, s, generator=draw.torch).to(torch.float32)  # noqa: E731
    x = small(r.randint(1, 2), ins, *(a["size"] for a in axes))
    shape = (ins, outs // groups) if transposed else (outs, ins // groups)
    weight = small(*shape, *(a["kernel"] for a in axes))
    column = lambda key: [a[key] for a in axes]  # noqa: E731
    arguments = (
        Activation(x), Constant(weight), Constant(small(outs)) if r.random() < 0.6 else None,
        column("stride"), column("pad"), column("dilation"), transposed, column("extra"), groups,
    )  # fmt: skip
    name = f"convolution x{list(x.shape)} w{list(weight.shape)} {axes} transposed {transposed}"
    return Case(name, "aten.convolution", arguments)


MAKERS: dict[str, tuple[Callable[[Draw], Case], int]] = {
    "conv2d": (conv2d, 60),
    "depthwise": (depthwise, 60),
    "linear": (linear, 30),
    "add": (add, 30),
    "mul": (mul, 20),
    "extremum": (extremum, 20),
    "avg_pool": (avg_pool, 30),
    "max_pool": (max_pool, 20),
    "softmax": (softmax, 20),
    "pad": (pad, 20),
    "transpose": (transpose, 15),
    "quantize": (quantize, 20),
    "dequantize": (dequantize, 10),
    "quantize16": (quantize16, 6),
    "dequantize16": (dequantize16, 6),
    "activation": (activation, 12),
    "div": (div, 20),
    "batch_matmul": (batch_matmul, 25),
    "transpose_conv": (transpose_conv, 40),
    "conv2d_nhwc": (nhwc(conv2d), 15),
    "depthwise_nhwc": (nhwc(depthwise), 15),
    "transpose_conv_nhwc": (nhwc(transpose_conv), 10),
    "avg_pool_nhwc": (nhwc(avg_pool), 10),
    "max_pool_nhwc": (nhwc(max_pool), 10),
    "arithmetic": (arithmetic, 30),
    "clamp": (clamp, 15),
    "move": (move, 25),
    "view": (view, 10),
    "view_copy": (view, 10),  # not bound to the input's memory
    "cat": (cat, 15),
    "slices": (slices, 20),
    "reductions": (reductions, 20),
    "max_pool_indices": (max_pool_indices, 20),
    "convolution": (convolution, 30),
}


def cases(group: str, seed: int) -> Iterator[Case]:
    """The calls of one group; the same seed gives the same calls."""
    make, count = MAKERS[group]
    draw = Draw(seed)
    for _ in range(count):
        yield make(draw)
