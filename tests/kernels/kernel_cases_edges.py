"""Calls that each tell one plausible slip in a kernel from the right thing: what random ones hit
too rarely."""

from __future__ import annotations

from collections.abc import Callable

from tests.kernels.kernel_draw import INT32_MAX, Draw, Makers
from tests.kernels.kernel_program import Activation, Case, Constant, Scratch
from tests.late import Late

torch = Late("torch")

HALF = 1 << 30  # as a multiplier


def _halves(channels: int, shift: int = -1) -> tuple[Constant, Constant]:
    """A quarter of everything: every fourth sum is a tie, of either sign."""
    made = ([HALF] * channels, [shift] * channels)
    multipliers, shifts = (Constant(torch.tensor(v, dtype=torch.int32)) for v in made)
    return multipliers, shifts


def _depthwise(
    draw: Draw, stride: int, low: int, *, dilation: tuple[int, int] = (1, 1), kernel: int = 3
) -> Case:
    channels = 12
    x = draw.image(1, channels, 9, 9)
    weight = torch.zeros(1, kernel, kernel, channels, dtype=torch.int8)
    weight[0, kernel // 2, kernel // 2] = 1
    arguments = (
        Activation(x),
        Constant(weight),
        None,
        [stride] * 2,
        [1, 1],
        list(dilation),
        1,
        0,
        0,
        *_halves(channels),
        low,
        127,
        Scratch(),
    )
    name = f"depthwise of ties, stride {stride}, bounds from {low}, dilation {dilation}"
    return Case(name, "cortex_m.quantized_depthwise_conv2d", arguments)


def _conv(draw: Draw, low: int) -> Case:
    weight = torch.zeros(6, 1, 1, 8, dtype=torch.int8)
    weight[:, :, :, 0] = 1
    arguments = (
        Activation(draw.image(1, 8, 5, 7)),
        Constant(weight),
        None,
        [1, 1],
        [0, 0],
        [1, 1],
        0,
        0,
        *_halves(6),
        low,
        127,
        Scratch(),
    )
    return Case(f"conv2d of ties, bounds from {low}", "cortex_m.quantized_conv2d", arguments)


def _add_of_ties(draw: Draw) -> Case:
    """Small sums, halved: shifts of -20 undo the headroom."""
    a, b = (Activation(draw.int8(3, 37)) for _ in range(2))
    scale = (INT32_MAX, -20)
    return Case(
        "add of ties, shift -1",
        "cortex_m.quantized_add",
        (a, 0, *scale, b, 0, *scale, 0, INT32_MAX, -1, -128, 127),
    )


def _largest_of_lowest(_draw: Draw) -> Case:
    x = torch.full((1, 20, 4, 4), -128, dtype=torch.int8).to(memory_format=torch.channels_last)
    arguments = (
        Activation(x),
        [2, 2],
        [2, 2],
        [0, 0],
        [1, 1],
        False,
        -128,
        -128,
        -128,
        127,
    )
    return Case("max_pool of -128", "cortex_m.quantized_max_pool2d", arguments)


def _softmax_of_many(draw: Draw) -> Case:
    """Of this many probabilities some lie so near a tie that the low part of ln 2 decides."""
    arguments = (Activation(draw.int8(300, 7)), -1, 0, -128, 1 << 30, 23, -255)
    return Case("softmax of 2100", "cortex_m.softmax", arguments)


def _long_rows(draw: Draw) -> Case:
    """Several registers of bytes for each product, with a share of the offset."""
    depth, outs = 75, 3
    weight = Constant(draw.int8(outs, 2, 2, depth))
    arguments = (
        Activation(draw.image(1, depth, 3, 3)),
        weight,
        draw.bias(outs),
        [2, 2],
        [0, 0],
        [0, 0],
        [1, 1],
        77,
        -3,
        *draw.scales(outs, 75.0 * 150 * (4 * depth) ** 0.5),
        -128,
        127,
        Scratch(),
        Scratch(),
    )
    return Case("transpose_conv of long rows", "cortex_m.quantized_transpose_conv2d", arguments)


def _long_rows_with_wide_offset(draw: Draw) -> Case:
    """No byte stands for zero, so each window is summed by itself."""
    depth, outs = 70, 5
    weight = Constant(draw.int8(outs, 3, 3, depth))
    arguments = (
        Activation(draw.image(1, depth, 4, 5)),
        weight,
        draw.bias(outs),
        [1, 1],
        [1, 1],
        [1, 1],
        200,
        3,
        *draw.scales(outs, 75.0 * 300 * (9 * depth) ** 0.5),
        -128,
        127,
        Scratch(),
    )
    return Case("conv2d of long rows, offset 200", "cortex_m.quantized_conv2d", arguments)


def _wrapping_sums(draw: Draw) -> Case:
    """Sums go round in 32 bits, in a path for windows that are not packed."""
    channels = 9
    bias = torch.full((channels,), INT32_MAX - 5, dtype=torch.int32)
    bias[::2] = -INT32_MAX
    arguments = (
        Activation(draw.image(1, channels, 8, 8)),
        Constant(draw.int8(1, 3, 3, channels)),
        Constant(bias),
        [1, 1],
        [1, 1],
        [2, 2],
        1,
        3,
        0,
        *_halves(channels, -22),
        -128,
        127,
        Scratch(),
    )
    return Case("depthwise of sums that wrap", "cortex_m.quantized_depthwise_conv2d", arguments)


def _conv_one_by_one(draw: Draw) -> Case:
    """No byte stands for zero: windows of a group, with columns left out, are summed alone."""
    depth, groups, outs = 5, 3, 6
    weight = Constant(draw.int8(outs, 3, 2, depth))
    arguments = (
        Activation(draw.image(2, groups * depth, 6, 7)),
        weight,
        draw.bias(outs),
        [1, 2],
        [1, 1],
        [1, 3],
        200,
        3,
        *draw.scales(outs, 75.0 * 300 * (6 * depth) ** 0.5),
        -128,
        127,
        Scratch(),
    )
    return Case("conv2d of groups, dilated, offset 200", "cortex_m.quantized_conv2d", arguments)


def _whole_depthwise(
    draw: Draw, ratio: int, dilation: list[int], *, kernel: tuple[int, int] = (3, 2), width: int = 9
) -> Case:
    """Every tap counts; a ratio of 2 has one path for all builds."""
    channels = 9
    outs = channels * ratio
    arguments = (
        Activation(draw.image(1, channels, 9, width)),
        Constant(draw.int8(1, *kernel, outs)),
        draw.bias(outs),
        [1, 1],
        [1, 1],
        dilation,
        ratio,
        5,
        -3,
        *draw.scales(outs, 75.0 * 150 * 6**0.5),
        -128,
        127,
        Scratch(),
    )
    name = f"depthwise of {width} columns, ratio {ratio}, dilation {dilation}"
    return Case(name, "cortex_m.quantized_depthwise_conv2d", arguments)


EDGES: tuple[Callable[[Draw], Case], ...] = (
    lambda draw: _depthwise(draw, 1, -128),
    lambda draw: _depthwise(draw, 2, -128),
    lambda draw: _depthwise(draw, 3, -128),
    lambda draw: _depthwise(draw, 1, 0),
    lambda draw: _depthwise(draw, 2, 0),
    lambda draw: _depthwise(draw, 1, -1),  # one below the offset: -1 can be seen
    lambda draw: _depthwise(draw, 2, -1),
    lambda draw: _depthwise(draw, 1, -128, dilation=(1, 2)),
    lambda draw: _depthwise(draw, 1, -128, dilation=(2, 1)),
    lambda draw: _conv(draw, -128),
    lambda draw: _conv(draw, -1),
    lambda draw: _conv(draw, 0),
    _add_of_ties,
    _largest_of_lowest,
    _softmax_of_many,
    _long_rows,
    _long_rows_with_wide_offset,
    _wrapping_sums,
    _conv_one_by_one,
    lambda draw: _whole_depthwise(draw, 1, [1, 2]),
    lambda draw: _whole_depthwise(draw, 2, [2, 1]),
    # more columns than the planned scratch has room for, packed
    lambda draw: _whole_depthwise(draw, 1, [1, 1], kernel=(3, 3), width=180),
)


def edge(draw: Draw) -> Case:
    return EDGES[draw.number % len(EDGES)](draw)


MAKERS: Makers = {"edges": (edge, len(EDGES))}
