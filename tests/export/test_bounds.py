"""The bound of each kind of operator is no wider than its rounding."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from tests.late import Late

bounds = Late("harness.export.child.bounds")
torch = Late("torch")
INT8 = (-128, 127)
INT16 = (-32768, 32767)


def _region(
    targets: list[Any],
    *,
    limits: tuple[int, int] = INT8,
    scales: tuple[float, float] = (0.1, 0.1),
) -> Any:
    """dequantise, the operators one after the other, quantise."""
    import_module("torch.ao.quantization.fx._decomposed")  # defines the two
    decomposed, dtype = (
        torch.ops.quantized_decomposed,
        torch.int8 if limits == INT8 else torch.int16,
    )
    graph = torch.fx.Graph()
    given = graph.placeholder("x")
    start = graph.call_function(
        decomposed.dequantize_per_tensor.default, (given, scales[0], 0, *limits, dtype)
    )
    nodes = []
    for target in targets:
        nodes.append(graph.call_function(target, (nodes[-1] if nodes else start,)))
    end = graph.call_function(
        decomposed.quantize_per_tensor.default, (nodes[-1], scales[1], 0, *limits, dtype)
    )
    return bounds.QuantizedRegion(tuple(nodes), (start,), end)


def _bound(region: Any, value: Any = None) -> Any:
    return bounds.bound(region, [torch.zeros(1, dtype=torch.int16) if value is None else value])


def test_what_only_moves_elements_is_exact() -> None:
    aten = torch.ops.aten
    assert _bound(_region([aten.permute.default, aten.view.default])) == 0
    assert _bound(_region([aten.relu.default, aten.max_pool2d.default])) == 0


def test_another_scale_is_one_rounding() -> None:
    assert _bound(_region([torch.ops.aten.view.default], scales=(0.1, 0.2))) == 1


def test_arithmetic_rounds_once_and_softmax_twice() -> None:
    aten = torch.ops.aten
    assert _bound(_region([aten.add.Tensor])) == 1
    assert _bound(_region([aten.conv2d.default, aten.relu.default])) == 1
    assert _bound(_region([aten.softmax.int])) == 2


def test_an_operator_that_nobody_listed_counts_as_arithmetic() -> None:
    assert _bound(_region([torch.ops.aten.sgn.default])) == 1


def test_a_sum_of_48_bits_has_a_scale_of_16_bits() -> None:
    assert _bound(_region([torch.ops.aten.linear.default], limits=INT16)) == 2
    assert _bound(_region([torch.ops.aten.add.Tensor], limits=INT16)) == 1


def test_a_table_of_16_bits_is_allowed_its_own_error_at_each_element() -> None:
    """exp bends most where it is largest; near zero its table is exact to a step."""
    region = _region([torch.ops.aten.exp.default], limits=INT16, scales=(8 / 32768, 0.1))
    allowed = _bound(region, torch.tensor([-32768, 0, 32000], dtype=torch.int16))
    assert allowed.tolist()[:2] == [1, 1]
    assert 1 <= allowed.tolist()[2] < 100
    steep = _region([torch.ops.aten.rsqrt.default], limits=INT16, scales=(1e-4, 1e-3))
    assert int(_bound(steep, torch.tensor([100, 30000], dtype=torch.int16))[0]) > 10
    assert int(_bound(steep, torch.tensor([100, 30000], dtype=torch.int16))[1]) <= 2


@pytest.mark.parametrize("function", ["tanh", "sigmoid"])
def test_the_table_is_exact_at_its_entries(function: str) -> None:
    target = getattr(torch.ops.aten, function).default
    region = _region([target], limits=INT16, scales=(8 / 32768, 1 / 32768))
    entries = torch.arange(-32768, 32768, 128).to(torch.int16)
    assert set(_bound(region, entries).tolist()) == {1}


def test_a_gate_is_off_by_what_its_rounded_constant_makes() -> None:
    """Of timm's mobilenetv3, 3 steps: the 3 of hardswish in steps of 0.09 is 2.97. Against the
    arithmetic of ExecuTorch's pass in real numbers, for each value of an int8."""
    codes = torch.arange(-128, 128).to(torch.int8)
    generator = torch.Generator().manual_seed(7)
    largest = 0
    for scale in torch.rand(200, generator=generator) * 0.4 + 0.01:
        given = bounds.Quantiser(float(scale), -128 + round(3 / float(scale)), *INT8, torch.int8)
        output = bounds.Quantiser(float(scale), -100, *INT8, torch.int8)
        x = given.dequantise(codes.to(torch.int64)).double()
        three = given.dequantise(given.quantise(torch.tensor(3.0))).double()
        shift = round(3 / given.scale) * given.scale
        program = x * (torch.minimum(x, three) + shift) / 6
        off = (program - torch.nn.functional.hardswish(x)).abs() / output.scale
        told = bounds.gate_error(3, codes, given, output)
        assert (off <= told + 1e-3)[x >= -3].all(), given
        largest = max(largest, int(told.max()))
    assert largest > 8


def test_a_gate_of_coarse_values_is_a_defect() -> None:
    """lcnet_035 of timm is 21 steps off, with values up to 127."""
    gate = [torch.ops.aten.hardswish.default]
    codes = torch.tensor([0, 3, 127])
    assert _bound(_region(gate, scales=(0.01, 0.01)), codes).tolist() == [2, 2, 2]
    coarse = _bound(_region(gate, scales=(0.85, 0.85)), codes).tolist()
    assert coarse[0] == 2
    assert coarse[2] == 2 + 8
