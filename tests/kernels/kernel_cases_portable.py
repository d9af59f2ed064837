"""Calls of the operators of ``kernels/portable``, which recurrence and attention need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.kernels.kernel_cases_elementwise import softmax_float
from tests.kernels.kernel_draw import Draw, Makers, any_tensor
from tests.kernels.kernel_program import Activation, Case, Constant
from tests.late import Late

torch = Late("torch")

CURVE = 3e-7  # of sigmoid, tanh and exp: newlib, glibc and torch differ in the last bits
SUM = 2e-6  # of sums that torch makes in another order


def shape_of(draw: Draw) -> tuple[int, ...]:
    """Of rank 0 to 5, at times with no element."""
    r = draw.random
    return tuple(
        r.choice([0, 1, 2, 3, 5]) if r.random() < 0.9 else 7 for _ in range(r.randint(0, 5))
    )


def image_or_not(draw: Draw, tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dim() == 4 and tensor.numel() and draw.random.random() < 0.5:
        return tensor.to(memory_format=torch.channels_last)
    return tensor


def wide_floats(draw: Draw, *shape: int) -> torch.Tensor:
    """From tiny to beyond what exp() can take, and the special values."""
    values = torch.randn(shape, generator=draw.torch) * draw.random.choice(
        [1e-6, 0.1, 1.0, 8.0, 200.0]
    )
    special = [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e-30, -88.0]
    flat = values.view(-1)
    if flat.numel() > len(special):
        flat[: len(special)] = torch.tensor(special)
    return values


def curve(name: str, *arguments: float) -> Callable[[Draw], Case]:
    def make(draw: Draw) -> Case:
        shape = draw.random.choice([(0,), (1,), (3, 17), (2, 3, 4), (1, 8, 5, 5), (40,)])
        x = image_or_not(draw, wide_floats(draw, *shape))
        label = f"{name} {tuple(x.shape)}"
        return Case(label, f"aten.{name}", (Activation(x), *arguments), tolerance=CURVE)

    return make


def leaky_relu(draw: Draw) -> Case:
    shape = (max(extent, 1) for extent in shape_of(draw))  # the exporter takes no empty ones
    x = image_or_not(draw, wide_floats(draw, *shape))
    slope = draw.random.choice([0.01, 0.1, 2.0])
    return Case(f"leaky_relu {tuple(x.shape)} {slope}", "aten.leaky_relu", (Activation(x), slope))


def elu(draw: Draw) -> Case:
    x = wide_floats(draw, draw.random.choice([0, 1, 33]))
    alpha = draw.random.choice([1.0, 0.5, 1.6732632])
    return Case(f"elu {alpha}", "aten.elu", (Activation(x), alpha), tolerance=CURVE)


def relu(draw: Draw) -> Case:
    x = image_or_not(draw, any_tensor(draw, *shape_of(draw)))
    return Case(f"relu {x.dtype} {tuple(x.shape)}", "aten.relu", (Activation(x),))


def logical_not(draw: Draw) -> Case:
    x = any_tensor(draw, *shape_of(draw)).clamp(-1, 1)
    if draw.random.random() < 0.5:
        x = x > 0
    return Case(f"not {x.dtype} {tuple(x.shape)}", "aten.logical_not", (Activation(x),))


def eq(draw: Draw) -> Case:
    shape = (max(extent, 1) for extent in shape_of(draw))  # the exporter takes no empty ones
    x = any_tensor(draw, *shape).clamp(-2, 2)
    if draw.random.random() < 0.5:
        other = draw.random.choice([0, 1, 1.0, -2.0, float("-inf"), 0.5])
        return Case(f"eq {tuple(x.shape)} {other}", "aten.eq.Scalar", (Activation(x), other))
    other = torch.randint(-2, 3, x.shape, generator=draw.torch).to(x.dtype)
    if x.dim() == 4:
        other = other.contiguous(memory_format=torch.preserve_format)
        x = x.contiguous()  # ExecuTorch compares tensors of one dim order
    return Case(
        f"eq {x.dtype} {tuple(x.shape)}", "aten.eq.Tensor", (Activation(x), Activation(other))
    )


def full(draw: Draw) -> Case:
    r = draw.random
    shape = list(shape_of(draw))
    kind, value = r.choice(
        [
            (torch.float32, 0.3),
            (torch.float32, float("-inf")),
            (torch.int64, -7),
            (torch.int8, 127),
            (torch.bool, True),
        ]
    )
    return Case(f"full {shape} {value}", "aten.full", (shape, value), {"dtype": kind})


def scalar_tensor(draw: Draw) -> Case:
    kind, value = draw.random.choice(
        [
            (torch.float32, 0.3),
            (torch.float32, float("-inf")),
            (torch.int64, -7),
            (torch.bool, True),
        ]
    )
    return Case(f"scalar_tensor {value}", "aten.scalar_tensor", (value,), {"dtype": kind})


def full_like(draw: Draw) -> Case:
    x = image_or_not(draw, any_tensor(draw, *shape_of(draw)))
    value = draw.random.choice([0, 1, -128])
    return Case(f"full_like {x.dtype} {tuple(x.shape)}", "aten.full_like", (Activation(x), value))


def expand(draw: Draw) -> Case:
    r = draw.random
    whole = [r.choice([1, 2, 3, 5]) for _ in range(r.randint(1, 5))]
    kept = whole[r.randint(0, len(whole) - 1) :]
    own = [1 if r.random() < 0.5 else extent for extent in kept]
    added = len(whole) - len(own)
    size = [
        -1 if i >= added and own[i - added] == extent and r.random() < 0.3 else extent
        for i, extent in enumerate(whole)
    ]
    x = any_tensor(draw, *own)
    return Case(f"expand {own} to {size}", "aten.expand_copy", (Activation(x), size))


def split(draw: Draw) -> Case:
    r = draw.random
    pieces = [r.randint(0, 4) for _ in range(r.randint(1, 4))]
    shape = [r.randint(1, 4) for _ in range(r.randint(1, 4))]
    dim = r.randrange(len(shape))
    shape[dim] = sum(pieces)
    x = any_tensor(draw, *shape)
    given = dim - len(shape) if r.random() < 0.5 else dim
    output = r.randrange(len(pieces))
    arguments = (Activation(x), pieces, given)
    return Case(f"split {shape} {pieces}", "aten.split_with_sizes_copy", arguments, output=output)


def embedding(draw: Draw) -> Case:
    r = draw.random
    rows, width = r.randint(1, 30), r.choice([1, 4, 33])
    kind = r.choice([torch.int64, torch.int32])
    shape = r.choice([(), (1,), (2, 7), (0,)])
    places = torch.randint(0, rows, shape, generator=draw.torch).to(kind)
    weight = Constant(torch.randn(rows, width, generator=draw.torch))
    return Case(f"embedding {rows}x{width} {shape}", "aten.embedding", (weight, Activation(places)))


def bmm(draw: Draw) -> Case:
    r = draw.random
    batch, rows, inner, columns = (
        r.randint(1, 4),
        r.randint(1, 7),
        r.choice([0, 1, 33]),
        r.randint(1, 9),
    )
    x, y = (
        torch.randint(-9, 10, shape, generator=draw.torch).float()
        for shape in ((batch, rows, inner), (batch, inner, columns))
    )
    return Case(f"bmm {batch}x{rows}x{inner}x{columns}", "aten.bmm", (Activation(x), Activation(y)))


def addmm(draw: Draw) -> Case:
    r = draw.random
    rows, inner, columns = r.randint(1, 7), r.choice([0, 1, 33]), r.randint(1, 9)
    added = r.choice([(columns,), (1, columns), (rows, columns), (rows, 1), (1,), ()])
    self, x, y = (
        torch.randint(-9, 10, shape, generator=draw.torch).float()
        for shape in (added, (rows, inner), (inner, columns))
    )
    scales = {"beta": r.choice([1, 2, 0.5]), "alpha": r.choice([1, -2, 0.25])}
    arguments = (Activation(self), Activation(x), Activation(y))
    return Case(f"addmm {added} {rows}x{inner}x{columns}", "aten.addmm", arguments, scales)


def adaptive_avg_pool(draw: Draw) -> Case:
    """Torch divides by the rows and by the columns of a window, the portable kernel by both."""
    r = draw.random
    x = torch.randn((r.randint(1, 2), 3, r.randint(1, 9), r.randint(1, 9)), generator=draw.torch)
    x = image_or_not(draw, x) if r.random() < 0.7 else x[0]
    size = [r.randint(1, 12), r.randint(1, 7)]
    name = f"adaptive_avg_pool {list(x.shape)} {size}"
    return Case(name, "aten._adaptive_avg_pool2d", (Activation(x), size), tolerance=SUM)


def log_softmax(draw: Draw) -> Case:
    case = softmax_float(draw)
    given, *rest = case.arguments
    # ExecuTorch takes no other dim order; contiguous() would keep the strides of extents of 1.
    plain = Activation(given.tensor.clone(memory_format=torch.contiguous_format))
    return replace(
        case, name=f"log_{case.name}", operator="aten._log_softmax", arguments=(plain, *rest)
    )


def float_linear(draw: Draw) -> Case:
    r = draw.random
    inner, outs = r.randint(1, 40), r.randint(1, 20)
    exact = r.random() < 0.5

    def floats(*shape: int) -> torch.Tensor:
        values = torch.randn(shape, generator=draw.torch)
        return (values * 5).round() if exact else values

    x = floats(*r.choice([(inner,), (3, inner), (2, 3, inner)]))
    bias = Constant(floats(outs)) if r.random() < 0.7 else None
    arguments = (Activation(x), Constant(floats(outs, inner)), bias)
    name = f"linear {tuple(x.shape)} to {outs}"
    return Case(name, "aten.linear", arguments, tolerance=0.0 if exact else SUM * inner)


def mean(draw: Draw) -> Case:
    r = draw.random
    shape = [r.choice([1, 2, 4, 8]) for _ in range(r.randint(1, 5))]
    dims = r.sample(range(len(shape)), r.randint(1, len(shape)))
    given = [dim - len(shape) if r.random() < 0.5 else dim for dim in dims]
    x = torch.randint(-9, 10, shape, generator=draw.torch).float()
    return Case(f"mean {shape} {given}", "aten.mean.dim", (Activation(x), given, r.random() < 0.5))


def any_of(draw: Draw) -> Case:
    r = draw.random
    shape = [r.choice([1, 2, 3, 5]) for _ in range(r.randint(1, 5))]
    x = any_tensor(draw, *shape)
    x[x.abs() < 8] = 0
    if r.random() < 0.5:
        x = x != 0
    dim = r.randrange(-len(shape), len(shape))
    return Case(f"any {shape} {dim}", "aten.any.dim", (Activation(x), dim, r.random() < 0.5))


def layer_norm(draw: Draw) -> Case:
    r = draw.random
    shape = [r.randint(1, 4), r.randint(1, 5), r.choice([2, 8, 33])]
    tail = shape[r.randint(1, 2) :]
    x = torch.randn(shape, generator=draw.torch) * r.choice([0.1, 1.0, 10.0]) + r.choice([0, 1])
    weight = Constant(torch.randn(tail, generator=draw.torch)) if r.random() < 0.7 else None
    bias = Constant(torch.randn(tail, generator=draw.torch)) if r.random() < 0.7 else None
    arguments = (Activation(x), tail, weight, bias, 1e-5)
    output = r.choice([0, 0, 1])
    name = f"layer_norm {shape} {tail} output {output}"
    # The variance is a difference of two sums: what it loses grows with mean / deviation.
    return Case(name, "aten.native_layer_norm", arguments, tolerance=2e-4, output=output)


def batch_norm(draw: Draw) -> Case:
    """Torch folds mean and deviation into a factor and an offset; the portable kernel does not."""
    r = draw.random
    shape = [r.randint(1, 2), r.randint(1, 5), *r.choice([[], [7], [3, 4], [1, 1], [2, 3, 2]])]
    x = image_or_not(draw, torch.randn(shape, generator=draw.torch) * r.choice([0.1, 1.0, 10.0]))

    def each(low: float, high: float) -> Constant:
        values = torch.rand(shape[1], generator=draw.torch)
        return Constant(values * (high - low) + low)

    weight = each(-2.0, 2.0) if r.random() < 0.7 else None
    bias = each(-1.0, 1.0) if r.random() < 0.7 else None
    eps = r.choice([1e-5, 1e-3, 0.5])
    arguments = (Activation(x), weight, bias, each(-1.0, 1.0), each(0.1, 4.0), 0.1, eps)
    name = f"batch_norm {shape} {tuple(x.stride())} {eps}"
    operator = "aten._native_batch_norm_legit_no_training"
    return Case(name, operator, arguments, tolerance=1e-5)


MAKERS: Makers = {
    "sigmoid": (curve("sigmoid"), 20),
    "tanh": (curve("tanh"), 20),
    "leaky_relu": (leaky_relu, 15),
    "elu": (elu, 10),
    "relu": (relu, 20),
    "logical_not": (logical_not, 20),
    "eq": (eq, 30),
    "full": (full, 15),
    "scalar_tensor": (scalar_tensor, 8),
    "full_like": (full_like, 15),
    "expand_copy": (expand, 25),
    "split_with_sizes_copy": (split, 25),
    "embedding": (embedding, 20),
    "bmm": (bmm, 20),
    "addmm": (addmm, 25),
    "float_linear": (float_linear, 20),
    "adaptive_avg_pool": (adaptive_avg_pool, 25),
    "log_softmax": (log_softmax, 25),
    "mean": (mean, 25),
    "any": (any_of, 20),
    "layer_norm": (layer_norm, 20),
    "batch_norm": (batch_norm, 25),
}
PORTABLE = tuple(MAKERS)  # groups that need a runner with HIL_PORTABLE_KERNELS
