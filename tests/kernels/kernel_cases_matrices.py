"""Calls of matrix products."""

from __future__ import annotations

from tests.kernels.kernel_draw import Draw, Makers
from tests.kernels.kernel_program import Activation, Case, Constant, Scratch
from tests.late import Late

torch = Late("torch")


def linear(draw: Draw) -> Case:
    r = draw.random
    inner, outs = r.randint(1, 80), r.randint(1, 70)
    x = draw.int8(*r.choice([(1, inner), (2, inner), (5, inner), (2, 3, inner), (inner,)]))
    folded = r.random() < 0.5
    sums = torch.randint(-(1 << 14), 1 << 14, (1, outs), generator=draw.torch).to(torch.int32)
    multipliers, shifts = draw.scales(1, 75.0 * 75 * inner**0.5)
    low, high = draw.bounds()
    arguments = (
        Activation(x),
        Constant(draw.weights(outs, inner)),
        None if folded else draw.bias(outs),
        Constant(sums) if folded else None,
        -draw.zero_point(),
        r.choice([0, 0, 0, 5]),
        draw.zero_point(),
        multipliers.tensor.tolist(),
        shifts.tensor.tolist(),
        high,
        low,
    )
    return Case(f"linear x{list(x.shape)} out {outs}", "cortex_m.quantized_linear", arguments)


def batch_matmul(draw: Draw) -> Case:
    r = draw.random
    batch, rows, inner, columns = (
        r.randint(1, 4),
        r.randint(1, 9),
        r.randint(1, 80),
        r.randint(1, 70),
    )
    arguments = (
        Activation(draw.int8(batch, rows, inner)),
        r.choice([0, -draw.zero_point()]),
        Activation(draw.int8(batch, columns, inner)),
        r.choice([0, -draw.zero_point()]),
        draw.zero_point(),
        draw.multiplier(),
        r.choice([-9, -10, -11, -12, -30, 0, 1]),
        Scratch(),
    )
    name = f"bmm {batch}x{rows}x{inner}x{columns}"
    return Case(name, "cortex_m.quantized_batch_matmul", arguments)


def mm(draw: Draw) -> Case:
    r = draw.random
    rows, inner, columns = r.randint(1, 7), r.choice([0, 1, 5, 33, 70]), r.randint(1, 9)
    kind = r.choice([torch.float32, torch.float32, torch.int8, torch.int32, torch.int64])
    if kind == torch.float32:
        x, y = (torch.randn(s, generator=draw.torch) for s in ((rows, inner), (inner, columns)))
    else:
        shapes = ((rows, inner), (inner, columns))
        x, y = (torch.randint(-128, 128, s, generator=draw.torch).to(kind) for s in shapes)
    name = f"mm {kind} {rows}x{inner}x{columns}"
    return Case(name, "aten.mm", (Activation(x), Activation(y)))


MAKERS: Makers = {
    "linear": (linear, 30),
    "batch_matmul": (batch_matmul, 25),
    "mm": (mm, 25),
}
