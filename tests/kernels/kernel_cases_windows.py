"""Calls of convolutions and pooling."""

from __future__ import annotations

from collections.abc import Callable

from tests.kernels.kernel_draw import Draw, Makers, pair, pool_axes, window
from tests.kernels.kernel_program import Activation, Case, Constant, Scratch
from tests.late import Late

torch = Late("torch")


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
        Activation(x),
        weight,
        draw.bias(outs),
        pair(h, w, "stride"),
        pair(h, w, "pad"),
        pair(h, w, "dilation"),
        -zero_point,
        draw.zero_point(),
        *draw.scales(outs, 75.0 * 150 * column**0.5),
        *draw.bounds(),
        Scratch(),
    )
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
        Activation(x),
        weight,
        draw.bias(outs),
        pair(h, w, "stride"),
        pair(h, w, "pad"),
        pair(h, w, "dilation"),
        ratio,
        -draw.zero_point(),
        draw.zero_point(),
        *draw.scales(outs, 75.0 * 150 * (h["kernel"] * w["kernel"]) ** 0.5),
        *draw.bounds(),
        Scratch(),
    )
    name = f"depthwise x{list(x.shape)} w{list(weight.tensor.shape)} {h} {w}"
    return Case(name, "cortex_m.quantized_depthwise_conv2d", arguments)


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
        Activation(x),
        weight,
        draw.bias(outs),
        pair(h, w, "stride"),
        pair(h, w, "pad"),
        pair(h, w, "extra"),
        pair(h, w, "dilation"),
        -draw.zero_point(),
        draw.zero_point(),
        *draw.scales(outs, 75.0 * 150 * column**0.5),
        *draw.bounds(),
        Scratch(),
        Scratch(),
    )
    name = f"transpose_conv x{list(x.shape)} w{list(weight.tensor.shape)} {h} {w}"
    return Case(name, "cortex_m.quantized_transpose_conv2d", arguments)


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
    if spatial == 2 and r.random() < 0.4:
        x = x.to(memory_format=torch.channels_last)
        if r.random() < 0.7:
            weight = weight.to(memory_format=torch.channels_last)
    arguments = (
        Activation(x),
        Constant(weight),
        Constant(small(outs)) if r.random() < 0.6 else None,
        column("stride"),
        column("pad"),
        column("dilation"),
        transposed,
        column("extra"),
        groups,
    )
    name = f"convolution x{list(x.shape)} w{list(weight.shape)} {axes} transposed {transposed}"
    return Case(name, "aten.convolution", arguments)


def avg_pool(draw: Draw) -> Case:
    r = draw.random
    h, w = pool_axes(draw)
    if r.random() < 0.3:
        h.update(kernel=h["size"], pad=0)
        w.update(kernel=w["size"], pad=0)
    x = draw.image(r.randint(1, 2), r.randint(2, 33), max(h["size"], 2), max(w["size"], 2))
    shift = r.choice([-18, -9, -5, 0, 3, 41])
    arguments = (
        Activation(x),
        pair(h, w, "kernel"),
        pair(h, w, "stride"),
        pair(h, w, "pad"),
        r.random() < 0.4,
        draw.zero_point(),
        draw.multiplier(),
        shift,
        Scratch(),
    )
    return Case(f"avg_pool {list(x.shape)} {h} {w}", "cortex_m.quantized_avg_pool2d", arguments)


def max_pool(draw: Draw) -> Case:
    r = draw.random
    h, w = pool_axes(draw)
    x = draw.image(r.randint(1, 2), r.randint(1, 33), h["size"], w["size"])
    zero_point = draw.zero_point()
    arguments = (
        Activation(x),
        pair(h, w, "kernel"),
        pair(h, w, "stride"),
        pair(h, w, "pad"),
        [1, 1],
        False,
        zero_point,
        zero_point,
        *draw.bounds(),
    )
    return Case(f"max_pool {list(x.shape)} {h} {w}", "cortex_m.quantized_max_pool2d", arguments)


def nhwc(make: Callable[[Draw], Case]) -> Callable[[Draw], Case]:
    """The same call with the image's sizes in memory order."""

    def made(draw: Draw) -> Case:
        case = make(draw)
        image = case.arguments[0].tensor.permute(0, 2, 3, 1).contiguous()
        arguments = (Activation(image), *case.arguments[1:])
        return Case(f"{case.name} nhwc", f"{case.operator}_nhwc", arguments)

    return made


def avg_pool_float(draw: Draw) -> Case:
    r = draw.random
    h, w = pool_axes(draw)
    x = torch.randn(r.randint(1, 2), r.randint(1, 5), h["size"], w["size"], generator=draw.torch)
    if r.random() < 0.4:
        x = x.to(memory_format=torch.channels_last)
    elif r.random() < 0.3:
        x = x[0]
    stride = pair(h, w, "stride") if r.random() < 0.8 else []
    arguments = (
        Activation(x),
        pair(h, w, "kernel"),
        stride,
        pair(h, w, "pad"),
        r.random() < 0.4,
        r.random() < 0.5,
        r.choice([None, None, None, 3, -2]),
    )
    name = f"avg_pool {list(x.shape)} {h} {w} {arguments[4:]}"
    return Case(name, "aten.avg_pool2d", arguments)


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
        Activation(x),
        pair(h, w, "kernel"),
        pair(h, w, "stride"),
        pair(h, w, "pad"),
        pair(h, w, "dilation"),
        r.random() < 0.4,
    )
    name = f"max_pool {list(x.shape)} {h} {w}"
    return Case(name, "aten.max_pool2d_with_indices", arguments, output=r.randint(0, 1))


def adaptive_max_pool(draw: Draw) -> Case:
    r = draw.random
    h, w = r.randint(1, 9), r.randint(1, 9)
    x = torch.randint(-50, 50, (r.randint(1, 2), 3, h, w), generator=draw.torch).to(torch.float32)
    if x.numel() > 9:
        x.view(-1)[5] = float("nan")
    if r.random() < 0.4:
        x = x.to(memory_format=torch.channels_last)
    elif r.random() < 0.3:
        x = x[0]
    size = [r.randint(1, 12), r.randint(1, 7)]
    name = f"adaptive_max_pool {list(x.shape)} {size}"
    which = r.randint(0, 1)
    return Case(name, "aten.adaptive_max_pool2d", (Activation(x), size), output=which)


MAKERS: Makers = {
    "conv2d": (conv2d, 60),
    "depthwise": (depthwise, 60),
    "avg_pool": (avg_pool, 30),
    "max_pool": (max_pool, 20),
    "transpose_conv": (transpose_conv, 40),
    "conv2d_nhwc": (nhwc(conv2d), 15),
    "depthwise_nhwc": (nhwc(depthwise), 15),
    "transpose_conv_nhwc": (nhwc(transpose_conv), 10),
    "avg_pool_nhwc": (nhwc(avg_pool), 10),
    "max_pool_nhwc": (nhwc(max_pool), 10),
    "max_pool_indices": (max_pool_indices, 20),
    "adaptive_max_pool": (adaptive_max_pool, 25),
    "avg_pool_float": (avg_pool_float, 40),
    "convolution": (convolution, 30),
}
