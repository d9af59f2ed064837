"""Protects the second definitions of operators: they must say exactly what ExecuTorch's kernels
do, for a difference that has a name is not a mismatch any more.

Each is held against arithmetic done another way here. That the kernels really compute this was
measured with a checkout's runner (tests/run/test_second_opinion.py repeats it where there is
one).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.export.program import Program, load_program
from harness.firmware.source import Arithmetic
from tests.late import Late

torch = Late("torch")
ops = Late("executorch.exir.dialects._ops")
by_design = Late("harness.export.child.by_design")

SEED = 20261121


@pytest.fixture(autouse=True)
def _registered() -> None:
    """Importing it registers the operators, in an order that works."""
    import harness.export.child.lower  # noqa: F401


def definition(name: str) -> Callable[..., torch.Tensor]:
    (found,) = (d.compute for d in by_design.DEFINITIONS if d.name == name)
    return found


def half_even(value: Fraction) -> int:
    return round(value)  # of a Fraction: exact, half to even


def test_quantize_rounds_once() -> None:
    """Whole rows of 16: the exact product; the rest: the product in float32, as Python has it."""
    print("seed", SEED)
    generator = np.random.default_rng(SEED)
    scale, zero, size = 0.0078431377, -3, 16 * 4000 + 5
    inverse = np.float32(1.0) / np.float32(scale)
    near = (generator.integers(-120, 120, size) + 0.5).astype(np.float32) / inverse
    x = np.nextafter(near, near + generator.choice([-1, 0, 1], size).astype(np.float32))
    got = definition("quantize-fused")(torch.from_numpy(x), scale, zero, -128, 127, torch.int8)
    exact = [half_even(Fraction(float(v)) * Fraction(float(inverse))) for v in x]
    twice = np.rint(x * inverse).astype(int)
    expected = np.clip(np.where(np.arange(size) < size - 5, exact, twice) + zero, -128, 127)
    assert (got.numpy() == expected).all()
    assert (np.asarray(exact) != twice).sum() > 10  # the inputs do tell the two apart


def test_quantize_goes_through_memory_in_its_order() -> None:
    """Which elements are in a whole row depends on where they lie: NHWC here."""
    print("seed", SEED)
    generator = torch.Generator().manual_seed(SEED)
    x = torch.rand((1, 3, 3, 5), generator=generator).to(memory_format=torch.channels_last)
    compute = definition("quantize-fused")
    got = compute(x, 0.01, 0, -128, 127, torch.int8)
    flat = compute(x.permute(0, 2, 3, 1).contiguous().flatten(), 0.01, 0, -128, 127, torch.int8)
    assert torch.equal(got.permute(0, 2, 3, 1).flatten(), flat)


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "ceil"),
    [
        ([2, 2], [2, 2], [0, 0], False),
        ([24, 5], [1, 1], [0, 0], False),
        ([3, 3], [2, 2], [1, 1], False),
        ([3, 2], [2, 2], [1, 0], True),
    ],
)
@pytest.mark.parametrize("nhwc", [False, True])
def test_average_is_of_integers_half_away_from_zero(
    kernel: list[int], stride: list[int], padding: list[int], ceil: bool, nhwc: bool
) -> None:
    print("seed", SEED)
    generator = np.random.default_rng(SEED)
    x = generator.integers(-128, 128, (1, 2, 25, 6)).astype(np.int8)
    arguments = {
        "kernel_size": kernel,
        "stride": stride,
        "padding": padding,
        "ceil_mode": ceil,
        "zero_point": 4,
    }
    given = torch.from_numpy(x)
    if nhwc:
        compute = definition("avg-pool-nhwc-half-away")
        pooled = compute(input=given.permute(0, 2, 3, 1), **arguments)
        got = pooled.numpy().transpose(0, 3, 1, 2)
    else:
        got = definition("avg-pool-half-away")(input=given, **arguments).numpy()
    for c, i, j in np.ndindex(got.shape[1:]):
        top, left = i * stride[0] - padding[0], j * stride[1] - padding[1]
        rows = [r for r in range(top, top + kernel[0]) if 0 <= r < 25]
        columns = [k for k in range(left, left + kernel[1]) if 0 <= k < 6]
        values = [int(x[0, c, r, k]) for r in rows for k in columns]
        total, count = sum(values), len(values)
        mean = (abs(total) + count // 2) // count * (1 if total > 0 else -1)
        assert got[0, c, i, j] == mean


def half(values: list[float]) -> torch.Tensor:
    return torch.tensor(values * 4, dtype=torch.float32)


def test_only_a_difference_that_is_met_is_named() -> None:
    quantize = ops.ops.edge.cortex_m.quantize_per_tensor.default
    kernels = by_design.Kernels("cortex-m55")
    arguments = (half([1.0, 2.0, 3.0, 4.0]), 0.5, 0, -128, 127, torch.int8)
    python = quantize(*arguments)
    assert torch.equal(kernels(quantize, arguments, {}, python), python)
    assert kernels.met == ()
    wrong = python + 1  # as if Python's definition said so
    assert torch.equal(kernels(quantize, arguments, {}, wrong), python)
    assert [*kernels.met] == ["quantize-fused"]


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        (
            "bool ceil_mode, int zero_point, int multiplier, int shift, Tensor scratch",
            (True, 9, 1, 0),
        ),
        ("int zero_point, int multiplier, int shift", (9, 1 << 30, 0)),
    ],
)
def test_an_average_of_another_time_has_its_arguments_elsewhere(
    arguments: str, given: tuple[Any, ...]
) -> None:
    """Before ExecuTorch's pull request 21039 the zero point stood where ``ceil_mode`` stands."""
    schema = "cortex_m::quantized_avg_pool2d(Tensor input, int[] kernel_size, int[] stride, "
    target = SimpleNamespace(
        _schema=torch._C.parse_schema(f"{schema}int[] padding, {arguments}) -> Tensor")
    )
    x = torch.tensor([[[[1, 2], [2, 1]]]], dtype=torch.int8)
    kernels, python = by_design.Kernels("cortex-m55"), torch.tensor([[[[1]]]], dtype=torch.int8)
    got = kernels(target, (x, [2, 2], [2, 2], [0, 0], *given), {}, python)
    assert got.flatten().tolist() == [2]  # 6 over 4, half away from zero
    assert [*kernels.met] == ["avg-pool-half-away"]


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m0plus"])
def test_a_core_without_helium_rounds_the_product(target: str) -> None:
    """It is the inverse scale alone that its kernels have otherwise."""
    quantize = ops.ops.edge.cortex_m.quantize_per_tensor.default
    print("seed", SEED)
    ties = torch.arange(-120, 120) + 0.5
    differing = 0
    for scale in np.random.default_rng(SEED).uniform(0.001, 0.5, 40).tolist():
        kernels = by_design.Kernels(target)
        x = (ties.double() * scale).float()
        arguments = (x, scale, 3, -128, 127, torch.int8)
        python = quantize(*arguments)
        got = kernels(quantize, arguments, {}, python)
        inverse = np.float32(1.0) / np.float32(scale)
        wanted = np.rint(x.numpy() * inverse).astype(np.float32) + np.float32(3)
        assert (got.numpy() == np.clip(wanted, -128, 127)).all()
        names = [*kernels.met]
        assert names == ([] if torch.equal(got, python) else ["quantize-float-scale"])
        differing += len(names)
    assert differing


def test_python_has_no_second_definition() -> None:
    quantize = ops.ops.edge.cortex_m.quantize_per_tensor.default
    kernels = by_design.Kernels("cortex-m55", Arithmetic.PYTHON)
    wrong = quantize(half([1.0]), 0.5, 0, -128, 127, torch.int8) + 1
    assert kernels(quantize, (half([1.0]), 0.5, 0, -128, 127, torch.int8), {}, wrong) is wrong
    assert kernels.met == ()


@pytest.mark.parametrize("arithmetic", list(Arithmetic))
def test_sums_whose_order_is_open_go_in_the_kernels_order(arithmetic: Arithmetic) -> None:
    """Of a large number, a small one, and what takes the large one away again."""
    kernels = by_design.Kernels("cortex-m55", arithmetic)
    x, y = torch.tensor([[1e8, 1.0, -1e8]]), torch.ones(3, 1)
    got = kernels(torch.ops.aten.mm.default, (x, y), {}, torch.full((1, 1), 7.0))
    assert got.tolist() == [[0.0]]
    assert kernels.met == ()


def test_other_operators_are_left_alone() -> None:
    kernels = by_design.Kernels("cortex-m55")
    value: Any = object()
    assert kernels(torch.ops.aten.add.Tensor, (1, 2), {}, value) is value
    assert kernels(getattr, (), {}, value) is value


def test_a_program_has_both_outputs_where_they_differ(exported: Callable[..., Program]) -> None:
    program = exported("ds_cnn")
    assert [*program.by_design] == ["avg-pool-half-away"]
    for one in program.sets:
        assert len(one.by_design) == len(one.expected)
        for name in one.by_design:
            assert (program.directory / name).stat().st_size == program.outputs[0].nbytes
    differing = [
        (program.directory / s.by_design[0]).read_bytes()
        != (program.directory / s.expected[0]).read_bytes()
        for s in program.sets
    ]
    assert any(differing)
    assert program.arithmetic is Arithmetic.CMSIS_NN
    python = program.following(Arithmetic.PYTHON)
    assert python.following(Arithmetic.CMSIS_NN) == program
    for one, other in zip(program.sets, python.sets, strict=True):
        assert (other.expected, other.by_design) == (one.by_design, one.expected)
    assert "Python" in python.oracle_name
    assert "CMSIS-NN" in program.oracle_name
    assert load_program(program.directory) == program
    assert program.without_named_differences().by_design == ()
    assert all(not s.by_design for s in program.without_named_differences().sets)


def test_a_program_without_such_operators_has_one(exported: Callable[..., Program]) -> None:
    program = exported("deep_autoencoder")
    assert program.by_design == ()
    assert all(not s.by_design for s in program.sets)


def test_names_are_one_each() -> None:
    names = [d.name for d in by_design.DEFINITIONS]
    assert len(set(names)) == len(names)
    for target in ("cortex-m55", "cortex-m33"):
        kernels = by_design.Kernels(target)
        operators = {d.operator for d in by_design.DEFINITIONS}
        assert set(kernels._by_operator) == operators  # one for each core


@pytest.mark.parametrize("dilation", [[1, 1], [2, 3], [3, 1]])
def test_a_dilated_convolution_is_one_with_zeros_between_its_weights(dilation: list[int]) -> None:
    """torch has no dilated convolution of int32, so ExecuTorch's Python definition raises."""
    print("seed", SEED)
    generator = np.random.default_rng(SEED)
    image = torch.from_numpy(generator.integers(-128, 127, (1, 3, 12, 13), dtype=np.int8))
    weight = torch.from_numpy(generator.integers(-127, 127, (4, 3, 2, 3), dtype=np.int8))
    target = ops.ops.edge.cortex_m.quantized_conv2d.default
    given = {"input": image, "weight": weight, "bias": None, "stride": [1, 2], "padding": [2, 1]}
    named = {a.name: given.get(a.name, 0) for a in target._schema.arguments}
    args = by_design.undilated(target, tuple((named | {"dilation": dilation}).values()))
    spaced = dict(zip(named, args, strict=True))
    assert spaced["dilation"] == [1, 1]

    def convolved(weights: torch.Tensor, steps: list[int]) -> torch.Tensor:
        return torch.nn.functional.conv2d(
            image.double(), weights.permute(0, 3, 1, 2).double(), None, [1, 2], [2, 1], steps
        )

    assert torch.equal(convolved(spaced["weight"], [1, 1]), convolved(weight, dilation))
    others = [name for name in named if name not in ("weight", "dilation")]
    assert all(spaced[name] is named[name] for name in others)
