"""Calls that quantise and dequantise."""

from __future__ import annotations

from tests.kernels.kernel_draw import Draw, Makers
from tests.kernels.kernel_program import Activation, Case
from tests.late import Late

torch = Late("torch")


def quantize(draw: Draw) -> Case:
    r = draw.random
    count = r.choice([0, 1, 3, 4, 37, 160])
    scale = r.choice([1.0, 0.5, 0.0078125, r.uniform(1e-4, 2.0)])
    steps = torch.randint(-300, 300, (1, count), generator=draw.torch).to(torch.float32)
    x = steps * (scale / 2)  # every second value is a tie
    if r.random() < 0.5:  # beside the ties, where it shows how often is rounded
        beside = torch.tensor(r.choice([float("inf"), -float("inf")]))
        x = torch.nextafter((steps.abs() + 0.5) * scale, beside)
    if count > 8:
        x[0, :6] = torch.tensor([float("inf"), -float("inf"), float("nan"), 3e38, -0.0, 1e-40])
    arguments = (Activation(x), scale, draw.zero_point(), *draw.bounds(), torch.int8)
    return Case(f"quantize {count} scale {scale}", "cortex_m.quantize_per_tensor", arguments)


def dequantize(draw: Draw) -> Case:
    r = draw.random
    x = draw.int8(1, r.choice([0, 1, 3, 4, 37, 160]))
    arguments = (Activation(x), r.uniform(1e-5, 3.0), draw.zero_point(), -128, 127, torch.int8)
    return Case(f"dequantize {x.numel()}", "cortex_m.dequantize_per_tensor", arguments)


def quantize16(draw: Draw) -> Case:
    r = draw.random
    scale = r.uniform(1e-4, 2.0)
    steps = torch.randint(-70000, 70000, (2, r.choice([0, 5, 32])), generator=draw.torch)
    x = steps.to(torch.float32) * (scale / 2)
    if r.random() < 0.5:
        x = torch.nextafter(x, torch.tensor(float("inf")))
    arguments = (
        Activation(x),
        scale,
        r.randint(-200, 200),
        -(1 << 15),
        (1 << 15) - 1,
        torch.int16,
    )
    return Case(f"quantize16 {list(steps.shape)}", "cortex_m.quantize_per_tensor", arguments)


def dequantize16(draw: Draw) -> Case:
    r = draw.random
    shape = (2, r.choice([0, 5, 32]))
    x = torch.randint(-(1 << 15), 1 << 15, shape, generator=draw.torch).to(torch.int16)
    arguments = (
        Activation(x),
        r.uniform(1e-5, 3.0),
        r.randint(-200, 200),
        -(1 << 15),
        (1 << 15) - 1,
        torch.int16,
    )
    return Case(f"dequantize16 {list(shape)}", "cortex_m.dequantize_per_tensor", arguments)


# What the definitions of quantized_decomposed allow for a quantised tensor.
INTEGERS = ("uint8", "int8", "uint16", "int16", "int32")


def decomposed_quantize(draw: Draw) -> Case:
    r = draw.random
    kind = getattr(torch, r.choice(INTEGERS))
    low, high = torch.iinfo(kind).min, torch.iinfo(kind).max
    scale = r.choice([1.0, 0.5, r.uniform(1e-4, 2.0)])
    reach = min(high - low, 1 << 24) + 10
    steps = torch.randint(-reach, reach, (2, 3, r.choice([0, 1, 5]), 2), generator=draw.torch)
    x = steps.to(torch.float32) * (scale / 2)
    bounds = r.choice([(low, high), (max(low, -100), min(high, 99))])
    if kind == torch.int32:  # float32 2^31 has no conversion to int32
        bounds = (bounds[0], min(bounds[1], (1 << 31) - 128))
    elif x.numel() > 6:
        special = [float("inf"), -float("inf"), float("nan"), 3e38, -0.0, 1e-40]
        x.view(-1)[:6] = torch.tensor(special)
    if r.random() < 0.3 and x.numel() > 0:
        x = x.to(memory_format=torch.channels_last)
    zero = r.choice([0, r.randint(max(low, -999), min(high, 999))])
    arguments = (Activation(x), scale, zero, *bounds, kind)
    operator = "quantized_decomposed.quantize_per_tensor"
    return Case(f"quantize {kind} {list(x.shape)} scale {scale}", operator, arguments)


def decomposed_dequantize(draw: Draw) -> Case:
    r = draw.random
    kind = getattr(torch, r.choice(INTEGERS))
    low, high = torch.iinfo(kind).min, torch.iinfo(kind).max
    shape = (2, 3, r.choice([0, 1, 5]), 2)
    x = torch.randint(low, high + 1, shape, generator=draw.torch).to(kind)
    zero = r.choice([low, high, 0, r.randint(low, high)])
    arguments = (Activation(x), r.uniform(1e-5, 3.0), zero, low, high, kind)
    options = {"out_dtype": torch.float32} if r.random() < 0.3 else {}
    operator = "quantized_decomposed.dequantize_per_tensor"
    return Case(f"dequantize {kind} {shape} zero {zero}", operator, arguments, options)


MAKERS: Makers = {
    "quantize": (quantize, 30),
    "dequantize": (dequantize, 10),
    "quantize16": (quantize16, 6),
    "dequantize16": (dequantize16, 6),
    "decomposed_quantize": (decomposed_quantize, 30),
    "decomposed_dequantize": (decomposed_dequantize, 20),
}
