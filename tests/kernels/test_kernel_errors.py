"""Kernels refuse arguments that do not fit, and say which and why.

Protects the checks in front of the arithmetic: each row damages one argument of a good program
and names the message that must follow. Without the check the kernel would read or write outside
a tensor, or answer something the definition does not.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kernels.kernel_damage import Other, Reshaped, Row, check_refused
from tests.kernels.kernel_draw import Draw
from tests.kernels.kernel_program import Activation, Case, Constant, Plan, Scratch, build
from tests.late import Late
from tests.thorough import cases as thorough_cases

torch = Late("torch")
schema = Late("executorch.exir.schema")
serialising = Late("executorch.exir._serialize._program")

SEED = 20260822
INDEX = (2, 1, 3)  # found among the inputs by its bytes


def scales(channels: int) -> tuple[Constant, Constant]:
    multipliers = torch.full((channels,), 1 << 30, dtype=torch.int32)
    return Constant(multipliers), Constant(torch.full((channels,), -7, dtype=torch.int32))


def good_cases() -> list[Case]:
    """One valid call of every operator, channels-last where that matters."""
    draw = Draw(SEED)
    places = Activation(torch.tensor(INDEX))
    image, vector = Activation(draw.image(1, 6, 5, 4)), Activation(draw.int8(2, 6))
    plain = Activation(draw.int8(1, 6, 5, 4))
    bias = Constant(torch.zeros(6, dtype=torch.int32))
    window = ([1, 1], [1, 1], [1, 1])
    conv = Constant(draw.int8(6, 3, 3, 3))
    calls: dict[str, tuple[Any, ...]] = {
        "quantized_conv2d": (image, conv, bias, *window, 0, 0, *scales(6), -128, 127, Scratch()),
        "quantized_depthwise_conv2d": (
            image,
            Constant(draw.int8(1, 3, 3, 6)),
            bias,
            *window,
            1,
            0,
            0,
            *scales(6),
            -128,
            127,
            Scratch(),
        ),
        "quantized_linear": (
            vector,
            Constant(draw.int8(6, 6)),
            bias,
            None,
            0,
            0,
            0,
            [1 << 30],
            [-7],
            127,
            -128,
        ),
        "quantized_add": (image, 0, 1 << 30, 0, image, 0, 1 << 30, 0, 0, 1 << 30, -19, -128, 127),
        "quantized_mul": (image, 0, image, 0, 0, 1 << 30, -7),
        "minimum": (plain, plain),
        "quantized_avg_pool2d": (image, [2, 2], [1, 1], [0, 0], False, 0, 1 << 30, -5, Scratch()),
        "quantized_max_pool2d": (image, [2, 2], [1, 1], [0, 0], [1, 1], False, 0, 0, -128, 127),
        "quantized_activation": (vector, Constant(draw.int8(256))),
        "quantized_div": (vector, 0, vector, 0, 0, 0.5),
        "quantized_batch_matmul": (
            Activation(draw.int8(2, 3, 4)),
            0,
            Activation(draw.int8(2, 5, 4)),
            0,
            0,
            1 << 30,
            -7,
            Scratch(),
        ),
        "quantized_transpose_conv2d": (
            image,
            Constant(draw.int8(6, 3, 3, 6)),
            bias,
            *window[:2],
            [0, 0],
            [1, 1],
            0,
            0,
            *scales(6),
            -128,
            127,
            Scratch(),
            Scratch(),
        ),
        "quantized_max_pool2d_nhwc": (
            Activation(draw.int8(1, 5, 4, 6)),
            [2, 2],
            [1, 1],
            [0, 0],
            [1, 1],
            False,
            0,
            0,
            -128,
            127,
        ),
        "softmax": (vector, -1, 0, -128, 1 << 30, 22, -100),
        "pad": (vector, [0, 0, 1, 1], [0, 0, 0, 0], 0),
        "transpose": (vector, [1, 0]),
        "quantize_per_tensor": (Activation(torch.zeros(1, 6)), 0.5, 0, -128, 127, torch.int8),
        "dequantize_per_tensor": (vector, 0.5, 0, -128, 127, torch.int8),
    }
    floats = Activation(torch.ones(1, 4, 6, 6))
    others = [
        Case("add", "aten.add", (floats, floats), {"alpha": 2}),
        Case("clamp", "aten.clamp", (floats, 0, 3)),
        Case("cat", "aten.cat", ((floats, floats), 1)),
        Case("select", "aten.select_copy", (floats, 1, 2)),
        Case("view", "aten.view_copy", (vector, [3, 4])),
        Case("amax", "aten.amax", (floats, [1], True)),
        Case("permute", "aten.permute_copy", (floats, [0, 2, 3, 1])),
        Case("ge", "aten.ge", (floats, floats)),
        Case("max_pool", "aten.max_pool2d_with_indices", (floats, [2, 2], [2, 2])),
        Case("avg_pool", "aten.avg_pool2d", (floats, [2, 2], [2, 2])),
        Case("where", "aten.where", (Constant(torch.ones(6) > 0), floats, floats)),
        Case("div", "aten.div", (floats, floats)),
        Case("softmax", "aten._softmax", (floats, 1, False)),
        Case("convert", "aten._to_copy", (floats,), {"dtype": torch.int32}),
        Case(
            "dequantize",
            "quantized_decomposed.dequantize_per_tensor",
            (vector, 0.5, 0, -128, 127, torch.int8),
        ),
        Case("mm", "aten.mm", (Activation(torch.ones(2, 6)), Activation(torch.ones(6, 3)))),
        Case("argmax", "aten.argmax", (floats, 1, True)),
        Case("topk", "aten.topk", (floats, 2, 1, True, True)),
        Case("sort", "aten.sort", (floats, 1, False)),
        Case("floor", "aten.floor", (floats,)),
        Case("slice", "aten.slice_copy", (floats, 2, 1, 5, 2)),
        Case("squeeze", "aten.squeeze_copy", (floats, [0])),
        Case("nearest", "aten.upsample_nearest2d.vec", (floats, [12, 12], None)),
        Case("bilinear", "aten.upsample_bilinear2d.vec", (floats, [12, 12], True, None)),
        Case("adaptive", "aten.adaptive_max_pool2d", (floats, [3, 3])),
        Case("index", "aten.index", (floats, (None, places, places))),
        Case(
            "convolution",
            "aten.convolution",
            (
                floats,
                Constant(torch.ones(2, 4, 3, 3)),
                None,
                [1, 1],
                [0, 0],
                [1, 1],
                False,
                [0, 0],
                1,
            ),
        ),
    ]
    return [*(Case(name, f"cortex_m.{name}", args) for name, args in calls.items()), *others]


@functools.cache
def good_program(backend: str = "MVE") -> Any:
    return build(good_cases(), Plan(backend))


ROWS: list[Row] = [
    ("quantized_conv2d", 3, [0, 1], "height: kernel 3, stride 0, padding 1 or dilation 1"),
    ("quantized_conv2d", 4, [1, -1], "width: kernel 3, stride 1, padding -1 or dilation 1"),
    ("quantized_conv2d", 5, [1, 0], "width: kernel 3, stride 1, padding 1 or dilation 0"),
    ("quantized_conv2d", 4, [0, 0], "out is 1 images of 5x4x6 (HWC), expected 1 of 3x2x6"),
    ("quantized_conv2d", 6, 40000, "input offset is 40000, expected -32768..32767"),
    ("quantized_conv2d", 7, 40000, "output offset is 40000, expected -32768..32767"),
    ("quantized_conv2d", 10, -129, "activation min is -129, expected -128..127"),
    ("quantized_conv2d", 11, 128, "activation max is 128, expected -128..127"),
    ("quantized_conv2d", 1, Other(0), "weight is not a contiguous rank-4 tensor"),
    ("quantized_conv2d", 1, Reshaped((1, 3, 3, 18)), "6 input channels do not divide into groups"),
    ("quantized_conv2d", 1, Other(2), "weight has element type 3, expected 1"),
    ("quantized_conv2d", 2, Other(0), "bias has element type 1, expected 3"),
    ("quantized_conv2d", 0, Other(1), "input is not a rank-4 channels-last tensor"),
    ("quantized_conv2d", 8, Other(0), "requantize multipliers has element type 1, expected 3"),
    ("quantized_conv2d", 9, Other(8), "requantize shift is 1073741824, expected -62..31"),
    ("quantized_depthwise_conv2d", 6, 2, "6 input channels times 2 are not 6 output channels"),
    ("quantized_depthwise_conv2d", 6, 0, "depth multiplier is 0, expected 1..32767"),
    ("quantized_depthwise_conv2d", 1, Other(2), "weight has element type 3, expected 1"),
    ("quantized_linear", 7, [1, 2], "argument"),
    ("quantized_linear", 8, [-63], "requantize shift is -63, expected -62..31"),
    ("quantized_linear", 5, 40000, "filter offset is 40000"),
    ("quantized_linear", 0, Other(2), "input has element type 3, expected 1"),
    ("quantized_linear", 2, Other(0), "bias has element type 1, expected 3"),
    ("quantized_add", 3, 32, "self shift is 32, expected -62..31"),
    ("quantized_add", 5, 40000, "other zero point is 40000"),
    ("quantized_add", 0, None, "argument"),
    ("quantized_mul", 1, (1 << 30) + 1, "self zero point is 1073741825"),
    ("quantized_mul", 3, -(1 << 30) - 1, "other zero point is -1073741825"),
    ("quantized_mul", 6, -63, "output shift is -63, expected -62..31"),
    ("quantized_avg_pool2d", 3, [2, 2], "out is 1 images of 4x3x6 (HWC), expected"),
    ("quantized_avg_pool2d", 6, 0, "multiplier is 0, expected 1..2147483647"),
    ("quantized_avg_pool2d", 7, 129, "shift is 129, expected -148..128"),
    ("quantized_avg_pool2d", 5, 200, "zero point is 200, expected -128..127"),
    ("quantized_max_pool2d", 4, [2, 1], "dilation and ceil_mode are not defined"),
    ("quantized_max_pool2d", 5, True, "dilation and ceil_mode are not defined"),
    ("quantized_max_pool2d", 7, 1, "input and output zero points differ"),
    ("quantized_activation", 1, Other(0), "lut has 12 elements, expected 256"),
    ("quantized_activation", 0, Other(1), "input and out differ in shape or dim order"),
    ("quantized_div", 1, 40000, "self zero point is 40000"),
    ("quantized_div", 3, -40000, "other zero point is -40000"),
    ("quantized_div", 4, 40000, "output zero point is 40000"),
    ("quantized_div", 5, float("inf"), "output scale is not finite"),
    ("quantized_div", 0, Reshaped((12,)), "self, other and out differ in shape or dim order"),
    ("quantized_batch_matmul", 0, Reshaped((2, 4, 3)), "the shapes of lhs, rhs_transposed and out"),
    ("quantized_batch_matmul", 0, Reshaped((2, 12)), "is not a contiguous batch of matrices"),
    ("quantized_batch_matmul", 1, 40000, "lhs offset is 40000"),
    ("quantized_batch_matmul", 3, 40000, "rhs offset is 40000"),
    ("quantized_batch_matmul", 6, 32, "output shift is 32, expected -62..31"),
    ("quantized_transpose_conv2d", 1, Other(0), "weight is not a contiguous [O, H, W, 6] tensor"),
    ("quantized_transpose_conv2d", 5, [-1, 0], "output padding is -1, expected 0..32767"),
    ("quantized_transpose_conv2d", 5, [1, 0], "out is 1 images of 5x4x6 (HWC), expected 1 of 6x4"),
    (
        "quantized_transpose_conv2d",
        6,
        [0, 1],
        "height: kernel 3, stride 1, padding 1 or dilation 0",
    ),
    ("quantized_max_pool2d_nhwc", 0, Reshaped((120,)), "input is not a rank-4 contiguous tensor"),
    ("aten::add", 2, 0.5e10, "alpha does not fit 32 bits"),
    ("aten::add", 0, Reshaped((144,)), "out is not the broadcast of self and other"),
    ("aten::add", 0, Other(2), "argument 0 is missing, has the wrong type or is too large"),
    ("aten::clamp", 0, Reshaped((144,)), "self and out differ in shape"),
    ("aten::cat", 1, 4, "dim is 4, expected -4..3"),
    ("aten::cat", 1, 2, "a tensor differs from out beyond dimension 2"),
    ("aten::select_copy", 1, 4, "dim is 4, expected -4..3"),
    ("aten::select_copy", 2, 4, "index is 4, expected -4..3"),
    ("aten::select_copy", 1, 2, "out is not a slice of self"),
    ("aten::amax", 1, [0, 2], "out is not self without the reduced dimensions"),
    ("aten::amax", 1, [7], "dim is 7, expected -4..3"),
    ("aten::permute_copy", 1, [0, 0, 1, 2], "out is not the permuted shape of the input"),
    ("aten::ge", 0, Reshaped((144,)), "out is not the broadcast of self and other"),
    ("aten::max_pool2d_with_indices", 3, [2, 2], "padding is more than half of the kernel"),
    ("aten::max_pool2d_with_indices", 2, [1, 1], "out does not have planes of 5x5"),
    ("aten::convolution", 3, [0, 1], "stride is 0, expected 1..65536"),
    ("aten::convolution", 4, [1, 1], "out has an extent of 4, expected 6"),
    ("aten::convolution", 8, 3, "4 input and 2 output channels do not fit weight"),
    ("aten::convolution", 8, 0, "groups is 0, expected 1..65536"),
    ("softmax", 1, 2, "dim is 2, expected -2..1"),
    ("softmax", 3, 0, "output zero point is 0, expected -128..-128"),
    ("softmax", 4, 0, "multiplier is 0, expected 1..2147483647"),
    ("pad", 1, [0, 0, 2, 1], "out has 3 in dimension 0, expected 4"),
    ("pad", 2, [0, 0, -1, 0], "post_pad is -1"),
    ("pad", 3, 300, "pad_value is 300, expected -128..127"),
    ("transpose", 1, [0, 1], "out is not the permuted shape of the input"),
    ("transpose", 1, [0], "permutation of 1 for ranks 2 and 2"),
    ("quantize_per_tensor", 1, 0.0, "scale is not positive"),
    ("quantize_per_tensor", 5, 4, "dtype 4 is not an integer type of at most 32 bits"),
    ("quantize_per_tensor", 2, 200, "zero point is 200, expected -128..127"),
    ("quantize_per_tensor", 4, 128, "quant_max is 128, expected -128..127"),
    ("dequantize_per_tensor", 5, 257, "dtype 257 is not an integer type of at most 32 bits"),
    ("dequantize_per_tensor", 5, 3, "input has element type 1, expected 3"),
    ("dequantize_per_tensor", 2, -129, "zero point is -129, expected -128..127"),
    ("quantized_decomposed::dequantize_per_tensor", 6, 7, "out_dtype is not float32"),
    ("quantized_decomposed::dequantize_per_tensor", 0, Reshaped((12,)), "differ in shape"),
    ("aten::select_copy", 0, Reshaped((6, 0)), "self is empty"),
    ("aten::cat", 2, Reshaped(()), "dim is 1, expected 0..-1"),
    ("aten::amax", 0, Reshaped(()), "dim is 1, expected 0..-1"),
    ("aten::ge", 1, Other(2), "other has element type 11, expected 6"),
    ("aten::where", 0, Other(1), "condition has element type 6, expected 11"),
    ("aten::where", 2, Reshaped((144,)), "out is not the broadcast of self and other"),
    ("aten::_softmax", 1, 4, "dim is 4, expected -4..3"),
    ("aten::_softmax", 0, Reshaped((144,)), "self and out differ in shape"),
    ("aten::div", 0, Reshaped((144,)), "out is not the broadcast of self and other"),
    ("aten::avg_pool2d", 3, [2, 2], "padding is more than half of the kernel"),
    ("aten::avg_pool2d", 2, [1, 1], "out does not have planes of 5x5"),
    ("aten::avg_pool2d", 6, 0, "divisor_override is 0"),
    ("aten::avg_pool2d", 0, Reshaped((12, 12)), "self is not an image"),
    ("aten::mm", 0, Reshaped((3, 4)), "out is not the shape of the product"),
    ("aten::argmax", 1, 4, "dim is 4, expected -4..3"),
    ("aten::argmax", 2, False, "out is not self without dimension 1"),
    ("aten::argmax", 1, None, "out is not one index of a contiguous self"),
    ("aten::topk", 1, 3, "values and indices are not self with 3 elements each"),
    ("aten::topk", 1, 5, "k is 5, expected 0..4"),
    ("aten::topk", 1, -1, "k is -1, expected 0..2147483647"),
    ("aten::topk", 2, 9, "dim is 9, expected -4..3"),
    ("aten::topk", 6, Other(5), "indices has element type 6, expected 4"),
    ("aten::sort", 0, Reshaped((4, 36)), "values and indices are not self with 36 elements each"),
    ("aten::floor", 0, Reshaped((144,)), "self and out differ in shape or dim order"),
    ("aten::slice_copy", 1, 4, "dim is 4, expected -4..3"),
    ("aten::slice_copy", 2, 1.5, "argument 2 is missing, has the wrong type or is too large"),
    ("aten::slice_copy", 3, 6, "out is not the slice of self"),
    ("aten::slice_copy", 4, 0, "step is not positive"),
    ("aten::squeeze_copy", 1, [1], "out is not self without the dimensions"),
    ("aten::squeeze_copy", 1, [4], "dim is 4, expected -4..3"),
    ("aten::upsample_nearest2d", 1, [12, 13], "out has not the size that is asked for"),
    ("aten::upsample_nearest2d", 0, Reshaped((4, 36)), "self and out are not images of one kind"),
    ("aten::upsample_bilinear2d", 1, None, "out has not the size that is asked for"),
    ("aten::upsample_bilinear2d", 0, Reshaped((1, 4, 0, 6)), "an image without pixels"),
    ("aten::adaptive_max_pool2d", 1, [2, 3], "out does not have planes of 2x3"),
    ("aten::index", 0, Reshaped((144,)), "more indices than self has dimensions"),
    ("aten::index", 0, Reshaped((1, 4, 36, 1)), "out is not what the indices make of self"),
    ("dim_order_ops::_to_dim_order_copy", 0, Reshaped((1, 4, 4, 9)), "out is not the broadcast"),
]


def test_the_undamaged_program_runs(run_on_host: Callable[..., Any], tmp_path: Path) -> None:
    wanted = good_program()
    result = run_on_host(wanted.pte, wanted.inputs, len(wanted.expected), tmp_path)
    assert result.status == 0, result.log
    assert not wanted.wrong(result.outputs)


@pytest.mark.parametrize(
    ("operator", "index", "wanted", "message"), ROWS, ids=[f"{r[0]}-{r[1]}-{r[2]}" for r in ROWS]
)
def test_a_bad_argument_is_refused(
    operator: str,
    index: int,
    wanted: Any,
    message: str,
    run_on_host: Callable[..., Any],
    tmp_path: Path,
) -> None:
    check_refused(run_on_host, good_program(), (operator, index, wanted, message), tmp_path)


@pytest.mark.parametrize("value", [6, -7, 1 << 40])
def test_an_index_beyond_the_tensor_is_refused(
    value: int, run_on_host: Callable[..., Any], tmp_path: Path
) -> None:
    """It comes with the input, so that nothing can be said before the call."""
    good = good_program()
    right, wrong = (
        torch.tensor(INDEX).numpy().tobytes(),
        torch.tensor([2, value, 3]).numpy().tobytes(),
    )
    assert good.inputs.count(right) == 2
    inputs = [wrong if data == right else data for data in good.inputs]
    result = run_on_host(good.pte, inputs, len(good.expected), tmp_path)
    assert result.status != 0
    assert "aten::index.Tensor_out: an index lies outside self" in result.log


def index_of_a_list(pte: bytes, change: Callable[[Any], object]) -> bytes:
    """The program with the first index tensor of aten::index changed."""
    file = serialising.deserialize_pte_binary(pte)
    plan = file.program.execution_plan[0]
    names = [o.name for o in plan.operators]
    every = (i.instr_args for i in plan.chains[0].instructions)
    calls = (call for call in every if isinstance(call, schema.KernelCall))
    (call,) = (call for call in calls if names[call.op_index] == "aten::index")
    items = plan.values[call.args[1]].val.items
    changed = copy.deepcopy(plan.values[items[1]])
    change(changed.val)
    items[1] = len(plan.values)
    plan.values.append(changed)
    return bytes(serialising.serialize_pte_binary(file))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: setattr(t, "scalar_type", type(t.scalar_type).SHORT),
            "indices of element type 2 are not supported",
        ),
        (lambda t: setattr(t, "sizes", [2]), "the indices do not broadcast to out"),
    ],
)
def test_index_tensors_that_do_not_fit_are_refused(
    change: Callable[[Any], object],
    message: str,
    run_on_host: Callable[..., Any],
    tmp_path: Path,
) -> None:
    good = good_program()
    bad = index_of_a_list(good.pte, change)
    result = run_on_host(bad, good.inputs, len(good.expected), tmp_path)
    assert result.status != 0
    assert message in result.log


@pytest.mark.parametrize("backend", thorough_cases("SCALAR", thorough=["DSP"]))
def test_scratch_planned_for_another_core_is_refused(
    backend: str, run_on_qemu: Callable[..., Any], tmp_path: Path
) -> None:
    wanted = good_program(backend)
    result = run_on_qemu(wanted.pte, wanted.inputs, len(wanted.expected), tmp_path)
    assert result.status != 0
    assert "planned scratch" in result.log
    assert "bytes, kernel needs" in result.log
