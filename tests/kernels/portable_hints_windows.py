"""Hints (see portable_hints) for convolutions, pools and other reads of images, and for
quantized_decomposed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.kernels.portable_draw import Draw
from tests.kernels.portable_hints_places import counted, whole_shape
from tests.kernels.portable_program import Given
from tests.late import Late

torch = Late("torch")


def _sides(draw: Draw, sides: int, numbers: Sequence[int]) -> list[int]:
    """One for each side, or one for all."""
    count = 1 if draw.chance(0.3) else sides
    return [draw.random.choice(numbers) for _ in range(count)]


def _convolution(draw: Draw, sides: int, *, transposed: bool) -> dict[str, Any]:
    draw.inner = draw.inner and sides == 2
    groups = draw.random.choice([1, 1, 2, 3])
    made, taken = groups * draw.between(1, 2), groups * draw.between(1, 2)
    size = [draw.between(2, 6) for _ in range(sides)]
    kernel = [draw.between(1, 3) for _ in range(sides)]
    outer, inner = (taken, made // groups) if transposed else (made, taken // groups)
    kind = draw.any_dtype() if draw.chance(0.1) else draw.dtype
    length = made + draw.random.choice([0, 0, 0, 1])
    bias = torch.randint(0, 9, [length], generator=draw.torch).to(kind)
    return {
        "input": draw.tensor([draw.between(1, 2), taken + draw.is_wild(), *size]),
        "weight": draw.tensor([outer, inner, *kernel]),
        "bias": draw.plain(bias) if draw.chance(0.7) else None,
        "stride": _sides(draw, sides, [1, 1, 2, 3] if not draw.is_wild() else [0]),
        "padding": _sides(draw, sides, [0, 0, 1, 2]),
        "dilation": _sides(draw, sides, [1, 1, 2]),
        "transposed": transposed,
        "output_padding": _sides(draw, sides, [0, 0, 0, 1]),
        "groups": groups,
    }


def _convolved(given: dict[str, Any]) -> list[int] | None:
    """The shape of the result; None for a call that torch refuses."""

    def each(name: str) -> list[int]:
        sides = given["input"].tensor.dim() - 2
        return given[name] * (sides if len(given[name]) == 1 else 1)

    names = ("stride", "padding", "dilation", "transposed", "output_padding", "groups")
    lists = [given[n] if n in ("transposed", "groups") else each(n) for n in names]
    tensors = [given[n].tensor.double() for n in ("input", "weight")]
    try:
        return list(torch.ops.aten.convolution(*tensors, None, *lists).shape)
    except RuntimeError:
        return None


def convolution(draw: Draw) -> dict[str, Any]:
    if draw.dtype == torch.bool:
        draw.dtype = torch.float32
    given = _convolution(draw, draw.random.choice([1, 2, 2]), transposed=draw.chance(0.3))
    shape = _convolved(given) or [1] * given["input"].tensor.dim()
    return {**given, "out": (shape, draw.dtype)}


def convolution_backward(draw: Draw) -> dict[str, Any]:
    draw.dtype = draw.floats()
    given = _convolution(draw, 2, transposed=False)
    shape = _convolved(given) or [1] * 4
    made = given["weight"].tensor.shape[0]
    mask = [draw.chance(0.7) for _ in range(3)]
    outs = {"out0": (given["input"].tensor.shape, draw.dtype), "out2": ([made], draw.dtype)}
    outs["out1"] = (given["weight"].tensor.shape, draw.dtype)
    first = {"grad_output": draw.tensor(shape), "bias_sizes": [made], "output_mask": mask}
    return {**given, **first, **outs}


def _image(draw: Draw) -> Given:
    shape = [draw.between(1, 3), draw.between(2, 7), draw.between(2, 7)]
    return draw.tensor([draw.between(1, 2), *shape] if draw.chance(0.7) else shape)


def _pool(draw: Draw) -> dict[str, Any]:
    image = _image(draw)
    kernel = _sides(draw, 2, [1, 2, 2, 3])
    stride = draw.random.choice([[], _sides(draw, 2, [1, 2, 3])])
    padding = [n // 2 if draw.chance(0.3) else 0 for n in kernel]
    if draw.is_wild():
        padding[0] = 2
    return {"self": image, "kernel_size": kernel, "stride": stride, "padding": padding}


def _pooled(draw: Draw, given: dict[str, Any], dilation: Sequence[int], *, up: bool) -> Any:
    stride = given["stride"] or given["kernel_size"]
    arguments = (given["kernel_size"], stride, given["padding"], dilation)
    try:
        return torch.nn.functional.max_pool2d_with_indices(
            given["self"].tensor.double(), *arguments, ceil_mode=up
        )
    except RuntimeError:
        empty = torch.empty(given["self"].tensor.shape)
        return empty, empty.long()


def avg_pool(draw: Draw) -> dict[str, Any]:
    draw.dtype = torch.int64 if draw.chance(0.15) else draw.floats()
    draw.inner = draw.is_wild()
    given, up = _pool(draw), draw.chance(0.3)
    shape = _pooled(draw, given, [1], up=up)[0].shape
    divisor = draw.random.choice([None, None, 3, 0 if draw.is_wild() else -2])
    more = {"ceil_mode": up, "divisor_override": divisor}
    return {**given, **more, "out": (shape, draw.dtype)}


def max_pool(draw: Draw) -> dict[str, Any]:
    if draw.dtype == torch.bool:
        draw.dtype = torch.float32
    given, up, dilation = _pool(draw), draw.chance(0.3), _sides(draw, 2, [1, 1, 2])
    shape = _pooled(draw, given, dilation, up=up)[0].shape
    more = {"ceil_mode": up, "dilation": dilation}
    return {**given, **more, "out": (shape, draw.dtype), "indices": (shape, torch.int64)}


def max_pool_backward(draw: Draw) -> dict[str, Any]:
    draw.dtype = draw.floats()
    draw.inner = False
    given, up, dilation = _pool(draw), draw.chance(0.3), _sides(draw, 2, [1, 1, 2])
    made, indices = _pooled(draw, given, dilation, up=up)
    more = {"ceil_mode": up, "dilation": dilation, "indices": draw.plain(indices)}
    made_of = {"grad_output": draw.tensor(made.shape)}
    return {**given, **more, **made_of, "grad_input": (given["self"].tensor.shape, draw.dtype)}


def adaptive_pool(draw: Draw) -> dict[str, Any]:
    draw.dtype = torch.int64 if draw.chance(0.15) else draw.floats()
    draw.inner = None  # which ExecuTorch refuses
    image = _image(draw)
    size = [draw.between(0 if draw.is_wild() else 1, 5) for _ in range(2)]
    return {
        "self": image,
        "output_size": size,
        "out": ([*image.tensor.shape[:-2], *size], draw.dtype),
    }


def _enlarged(draw: Draw) -> dict[str, Any]:
    if draw.dtype == torch.bool:
        draw.dtype = torch.float32
    values = (
        torch.rand(
            [draw.between(1, 2), draw.between(1, 3), draw.between(1, 5), draw.between(1, 5)],
            generator=draw.torch,
        )
        * 20
    )
    image = Given(values.to(draw.dtype), draw.order(4))
    return {"input": image, "self": image}


def upsample(draw: Draw) -> dict[str, Any]:
    given = _enlarged(draw)
    shape = list(given["input"].tensor.shape)
    if draw.chance(0.5):
        size = [draw.between(0 if draw.is_wild() else 1, 7) for _ in range(2)]
        given |= {"output_size": size, "scale_factors": [2.0, 2.0] if draw.is_wild() else None}
    else:
        factors = [draw.random.choice([0.5, 1.0, 1.5, 2.0, 2.7, 3.0]) for _ in range(2)]
        given |= {"output_size": None, "scale_factors": factors}
        size = [int(n * f) for n, f in zip(shape[2:], factors, strict=True)]
    return {**given, "align_corners": draw.chance(0.5), "out": ([*shape[:2], *size], draw.dtype)}


def upsample_smoothly(draw: Draw) -> dict[str, Any]:
    given = _enlarged(draw)
    size = [draw.between(1, 7) for _ in range(2)]
    scales = (
        [draw.random.choice([0.5, 1.5, 2.0]) for _ in range(2)] if draw.chance(0.4) else [None] * 2
    )
    given |= {"scales_h": scales[0], "scales_w": scales[1], "output_size": size}
    shape = [*given["input"].tensor.shape[:2], *size]
    return {**given, "align_corners": draw.chance(0.5), "out": (shape, draw.dtype)}


def grid_sampler(draw: Draw) -> dict[str, Any]:
    draw.dtype = draw.floats()
    draw.inner = False
    batch = draw.between(1, 2)
    image = draw.tensor([batch, draw.between(1, 2), draw.between(1, 4), draw.between(1, 4)])
    places = torch.rand([batch, draw.between(1, 3), draw.between(1, 3), 2], generator=draw.torch)
    grid = draw.plain((places * 3 - 1.5).to(draw.dtype))
    modes = {
        name: draw.between(0, 2 + draw.is_wild()) for name in ("interpolation_mode", "padding_mode")
    }
    shape = [*image.tensor.shape[:2], *grid.tensor.shape[1:3]]
    return {"input": image, "grid": grid, **modes, "out": (shape, draw.dtype)}


def _quantised_type(draw: Draw) -> torch.dtype:
    kinds = [torch.int8, torch.int8, torch.uint8, torch.int16, torch.int32]
    return torch.int64 if draw.is_wild() else draw.random.choice(kinds)


def _range(draw: Draw, kind: torch.dtype) -> dict[str, Any]:
    info = torch.iinfo(kind)
    low = info.min if draw.chance(0.7) or kind == torch.uint8 else -5
    low = -(2**62) if draw.is_wild() else low
    return {"quant_min": low, "quant_max": info.max if draw.chance(0.7) else 9, "dtype": kind}


def _scale(draw: Draw) -> float:
    return draw.random.choice([0.05, 0.1, 0.5, 1.0, 3.0])


def _unquantised(draw: Draw) -> None:
    draw.dtype = draw.random.choice([torch.float32, torch.float32, torch.float64, torch.float16])


def _scales(draw: Draw, shape: Sequence[int], kind: torch.dtype) -> dict[str, Any]:
    """Of channels or of tokens."""
    values = torch.rand(tuple(shape), generator=draw.torch, dtype=torch.float64) + 0.01
    zeros = torch.randint(-4, 9, tuple(shape), generator=draw.torch)
    given = (draw.plain(values.to(kind)), draw.plain(zeros))
    names = (("scales", "zero_points"), ("scale", "zero_point"))
    return {name: value for pair in names for name, value in zip(pair, given, strict=True)}


def quantize(draw: Draw) -> dict[str, Any]:
    _unquantised(draw)
    kind, shape = _quantised_type(draw), draw.shape()
    given = {"input": finite(draw, shape), "scale": _scale(draw), "zero_point": draw.between(-3, 9)}
    return {**given, **_range(draw, kind), "out": (shape, kind)}


def finite(draw: Draw, shape: Sequence[int]) -> Given:
    """What is not finite has no integer."""
    values = torch.randn(tuple(shape), generator=draw.torch) * draw.random.choice([1, 20])
    return Given(values.to(draw.dtype), draw.order(len(shape)))


def quantize_by_tensors(draw: Draw) -> dict[str, Any]:
    given = quantize(draw)
    return {**given, **_scales(draw, [1 + draw.is_wild()], torch.float64)}


def quantize_channels(draw: Draw) -> dict[str, Any]:
    _unquantised(draw)
    kind, shape = _quantised_type(draw), whole_shape(draw)
    axis = draw.between(0, len(shape) - 1)
    given = {"input": finite(draw, shape), "axis": counted(draw, axis, len(shape))}
    scales = _scales(draw, [shape[axis] + draw.is_wild()], torch.float64)
    return {**given, **scales, **_range(draw, kind), "out": (shape, kind)}


def quantize_tokens(draw: Draw) -> dict[str, Any]:
    _unquantised(draw)
    kind, shape = _quantised_type(draw), whole_shape(draw)
    scales = _scales(draw, [*shape[:-1], 1], torch.float64)
    return {"input": finite(draw, shape), **scales, **_range(draw, kind), "out": (shape, kind)}


def _result(draw: Draw) -> torch.dtype:
    return draw.random.choice([torch.float32, torch.float32, torch.float64, torch.float16])


def dequantize(draw: Draw) -> dict[str, Any]:
    kind, shape, made = _quantised_type(draw), draw.shape(), _result(draw)
    given = {
        "input": draw.tensor(shape, kind),
        "scale": _scale(draw),
        "zero_point": draw.between(-3, 9),
    }
    return {**given, **_range(draw, kind), "out_dtype": made, "out": (shape, made)}


def dequantize_by_tensors(draw: Draw) -> dict[str, Any]:
    given = dequantize(draw)
    return {**given, **_scales(draw, [1 + draw.is_wild()], torch.float64)}


def dequantize_channels(draw: Draw) -> dict[str, Any]:
    kind, shape, made = _quantised_type(draw), whole_shape(draw), _result(draw)
    axis = draw.between(0, len(shape) - 1)
    given = {"input": draw.tensor(shape, kind), "axis": counted(draw, axis, len(shape))}
    scales = _scales(
        draw, [shape[axis] + draw.is_wild()], draw.random.choice([torch.float32, torch.float64])
    )
    if draw.chance(0.3):
        scales["zero_points"] = None
    return {**given, **scales, **_range(draw, kind), "out_dtype": made, "out": (shape, made)}


def dequantize_tokens(draw: Draw) -> dict[str, Any]:
    kind, shape, made = _quantised_type(draw), whole_shape(draw), _result(draw)
    scales = _scales(draw, [*shape[:-1], 1], torch.float32)
    given = {"input": draw.tensor(shape, kind), "output_dtype": made}
    return {**given, **scales, **_range(draw, kind), "out": (shape, made)}


def quantized_add(draw: Draw) -> dict[str, Any]:
    kind = draw.random.choice([torch.uint8, torch.uint8, torch.int16, torch.int32])
    shape = draw.shape()
    draw.dtype = kind
    given: dict[str, Any] = {"a": draw.tensor(shape), "b": draw.tensor(shape)}
    for name in ("a", "b", "out"):
        given |= {f"{name}_scale": _scale(draw), f"{name}_zero_point": draw.between(0, 9)}
        given |= {f"{name}_quant_min": -1 if draw.is_wild() else 0, f"{name}_quant_max": 255}
    return {**given, "out": (shape, kind)}


def choose(draw: Draw) -> dict[str, Any]:
    draw.dtype = torch.float32 if not draw.is_wild() else torch.float64
    low, high = draw.random.choice(
        [(-128, 127), (0, 255), (-8, 7), (3, 2) if draw.is_wild() else (0, 15)]
    )
    shape = whole_shape(draw, 0)
    scale = draw.random.choice([1.0, 1e-6, 1e-40, 0.0])
    given = Given(finite(draw, shape).tensor * scale, draw.order(len(shape)))
    numbers = {"quant_min": low, "quant_max": high, "eps": 1e-5, "dtype": torch.int8}
    outs = {"scale_out": ([1], torch.float64), "zero_point_out": ([1], torch.int64)}
    return {"input": given, **numbers, **outs}


def choose_tokens(draw: Draw) -> dict[str, Any]:
    draw.dtype = torch.float32 if not draw.is_wild() else torch.float64
    shape = whole_shape(draw)
    made = [*shape[:-1], 1]
    outs = {"scale_out": (made, torch.float64), "zero_point_out": (made, torch.int64)}
    return {"input": finite(draw, shape), "dtype": torch.int8, **outs}


def _floats_or_halves(draw: Draw) -> torch.dtype:
    return draw.random.choice([torch.float32, torch.float32, torch.float16, torch.bfloat16])


def _table(draw: Draw, per_byte: int, *, typed: bool) -> dict[str, Any]:
    draw.inner = False
    draw.typed = not typed
    rows, columns, groups = draw.between(1, 5), draw.between(1, 3), draw.random.choice([None, 1, 2])
    columns *= 2
    kind = torch.int8 if per_byte == 1 and draw.chance(0.6) else torch.uint8
    made = _floats_or_halves(draw)
    own = made if not typed or draw.chance(0.5) else _floats_or_halves(draw)
    scales = _scales(draw, [rows] if groups is None else [rows, groups], own)
    zeros = None
    if own == made and draw.chance(0.5):
        zeros = draw.plain(scales["zero_points"].tensor.to(made))
    weight = torch.randint(0, 100, [rows, columns], generator=draw.torch).to(kind)
    indices = draw.index(draw.shape(0, 3), rows)
    if per_byte > 1:  # whose indices ExecuTorch does not check
        indices = draw.plain(indices.tensor.clamp(0, rows - 1))
    limits = {"weight_quant_min": -8, "weight_quant_max": -9 if draw.is_wild() else 7}
    return {
        "weight": draw.plain(weight),
        "weight_scales": scales["scales"],
        "weight_zero_points": zeros,
        "indices": indices,
        "dtype": None if draw.chance(0.5) else made,
        "out": ([*indices.tensor.shape, columns * per_byte], made),
        **limits,
    }


def table(per_byte: int, *, typed: bool) -> Any:
    return lambda draw: _table(draw, per_byte, typed=typed)


def mixed_mm(draw: Draw) -> dict[str, Any]:
    draw.dtype = draw.random.choice([torch.float32, torch.float16])
    m, k, n = (draw.between(1, 4) for _ in range(3))
    weight = draw.tensor([k, n], torch.int8)
    given = {"input": draw.tensor([m, k]), "weight": weight, "weight_scales": draw.tensor([k])}
    return {**given, "weight_zero_points": None, "out": ([m, n], draw.dtype)}


def mixed_linear(draw: Draw) -> dict[str, Any]:
    draw.dtype = draw.random.choice([torch.float32, torch.float16])
    m, k, n = (draw.between(1, 4) for _ in range(3))
    weight = draw.tensor([n, k], torch.int8)
    scales = draw.tensor([n] if draw.chance(0.5) else [n, draw.random.choice([1, k])])
    given = {"input": draw.tensor([m, k]), "weight": weight, "weight_scales": scales}
    kind = draw.random.choice([None, torch.float32, torch.float16])
    made = kind or draw.random.choice([torch.float32, torch.float16, torch.float64])
    return {**given, "weight_zero_points": None, "dtype": kind, "out": ([m, n], made)}


HINTS = {
    "aten::_adaptive_avg_pool2d": adaptive_pool,
    "aten::_upsample_bilinear2d_aa": upsample_smoothly,
    "aten::avg_pool2d": avg_pool,
    "aten::convolution": convolution,
    "aten::convolution_backward": convolution_backward,
    "aten::grid_sampler_2d": grid_sampler,
    "aten::max_pool2d_with_indices": max_pool,
    "aten::max_pool2d_with_indices_backward": max_pool_backward,
    "aten::upsample_bilinear2d": upsample,
    "aten::upsample_nearest2d": upsample,
    "quantized_decomposed::add": quantized_add,
    "quantized_decomposed::choose_qparams": choose,
    "quantized_decomposed::choose_qparams_per_token_asymmetric": choose_tokens,
    "quantized_decomposed::dequantize_per_channel": dequantize_channels,
    "quantized_decomposed::dequantize_per_tensor": dequantize,
    "quantized_decomposed::dequantize_per_tensor.Tensor_out": dequantize_by_tensors,
    "quantized_decomposed::dequantize_per_token": dequantize_tokens,
    "quantized_decomposed::embedding_2bit.dtype_out": table(4, typed=True),
    "quantized_decomposed::embedding_2bit.out": table(4, typed=False),
    "quantized_decomposed::embedding_4bit.dtype_out": table(2, typed=True),
    "quantized_decomposed::embedding_4bit.out": table(2, typed=False),
    "quantized_decomposed::embedding_byte.dtype_out": table(1, typed=True),
    "quantized_decomposed::embedding_byte.out": table(1, typed=False),
    "quantized_decomposed::mixed_linear": mixed_linear,
    "quantized_decomposed::mixed_mm": mixed_mm,
    "quantized_decomposed::quantize_per_channel": quantize_channels,
    "quantized_decomposed::quantize_per_tensor": quantize,
    "quantized_decomposed::quantize_per_tensor.Tensor_out": quantize_by_tensors,
    "quantized_decomposed::quantize_per_token": quantize_tokens,
}
