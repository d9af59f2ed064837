"""Random operator calls, weighted towards the edges of what the definitions allow: all families."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.kernels import kernel_cases_elementwise as elementwise
from tests.kernels import kernel_cases_matrices as matrices
from tests.kernels import kernel_cases_moving as moving
from tests.kernels import kernel_cases_quantising as quantising
from tests.kernels import kernel_cases_windows as windows
from tests.kernels.kernel_draw import Draw
from tests.kernels.kernel_program import Case

MAKERS: dict[str, tuple[Callable[[Draw], Case], int]] = {
    "conv2d": (windows.conv2d, 60),
    "depthwise": (windows.depthwise, 60),
    "linear": (matrices.linear, 30),
    "add": (elementwise.add, 30),
    "mul": (elementwise.mul, 20),
    "extremum": (elementwise.extremum, 20),
    "avg_pool": (windows.avg_pool, 30),
    "max_pool": (windows.max_pool, 20),
    "softmax": (elementwise.softmax, 20),
    "pad": (moving.pad, 20),
    "transpose": (moving.transpose, 15),
    "quantize": (quantising.quantize, 20),
    "dequantize": (quantising.dequantize, 10),
    "quantize16": (quantising.quantize16, 6),
    "dequantize16": (quantising.dequantize16, 6),
    "decomposed_quantize": (quantising.decomposed_quantize, 30),
    "decomposed_dequantize": (quantising.decomposed_dequantize, 20),
    "activation": (elementwise.activation, 12),
    "div": (elementwise.div, 20),
    "batch_matmul": (matrices.batch_matmul, 25),
    "transpose_conv": (windows.transpose_conv, 40),
    "conv2d_nhwc": (windows.nhwc(windows.conv2d), 15),
    "depthwise_nhwc": (windows.nhwc(windows.depthwise), 15),
    "transpose_conv_nhwc": (windows.nhwc(windows.transpose_conv), 10),
    "avg_pool_nhwc": (windows.nhwc(windows.avg_pool), 10),
    "max_pool_nhwc": (windows.nhwc(windows.max_pool), 10),
    "arithmetic": (elementwise.arithmetic, 30),
    "quotient": (elementwise.quotient, 20),
    "softmax_float": (elementwise.softmax_float, 30),
    "clamp": (elementwise.clamp, 15),
    "move": (moving.move, 25),
    "convert": (moving.convert, 50),
    "view": (moving.view, 10),
    "view_copy": (moving.view, 10),  # not bound to the input's memory
    "cat": (moving.cat, 15),
    "slices": (moving.slices, 20),
    "reductions": (elementwise.reductions, 20),
    "comparison": (elementwise.comparison, 25),
    "where": (elementwise.where, 20),
    "max_pool_indices": (windows.max_pool_indices, 20),
    "avg_pool_float": (windows.avg_pool_float, 40),
    "convolution": (windows.convolution, 30),
}


def cases(group: str, seed: int) -> Iterator[Case]:
    """The calls of one group; the same seed gives the same calls."""
    make, count = MAKERS[group]
    draw = Draw(seed)
    for _ in range(count):
        yield make(draw)
