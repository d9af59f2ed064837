"""Protects calibration in double precision: what it covers, and that what it cannot do is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy

import pytest

from harness.config.models import CalibrationType, Layout, Quantization
from tests.late import Late
from tests.thorough import cases

torch = Late("torch")
observers = Late("torchao.quantization.pt2e.observer")
pt2e = Late("torchao.quantization.pt2e")
quantize_pt2e = Late("torchao.quantization.pt2e.quantize_pt2e")
lower = Late("harness.export.child.lower")
calibrating = Late("harness.export.child.calibrate")

FLOAT64, FLOAT32 = CalibrationType.FLOAT64, CalibrationType.FLOAT32
Step = Callable[["torch.Tensor"], "torch.Tensor"]


def samples() -> list[tuple[torch.Tensor, ...]]:
    generator = torch.Generator().manual_seed(5)
    return [(torch.randn(2, 4, generator=generator) * n,) for n in (3, 1, 5)]


def prepared(step: Step) -> torch.fx.GraphModule:
    """A product, a sum, and ``step`` between them."""

    class Network(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(3)
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return step(self.linear(x)) + x

    graph = lower.capture(Network().eval().requires_grad_(False), samples()[0])
    quantizer = lower.cortex_m_quantizer(Quantization.A8W8, Layout.EXPLICIT)
    return quantize_pt2e.prepare_pt2e(graph, quantizer)


def scales(module: torch.fx.GraphModule) -> list[torch.Tensor]:
    kinds = (observers.UniformQuantizationObserverBase, pt2e.DerivedObserverOrFakeQuantize)
    return [m.calculate_qparams()[0] for m in module.modules() if isinstance(m, kinds)]


def floats(module: torch.fx.GraphModule) -> Iterator[torch.Tensor]:
    yield from (*module.parameters(), *module.buffers())


def as_executorch_does(module: torch.fx.GraphModule) -> list[torch.Tensor]:
    with torch.no_grad():
        for sample in samples():
            module(*sample)
    return scales(module)


def same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return len(one) == len(other) and all(map(torch.equal, one, other))


def with_types_of_its_own(x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.float32) * torch.tensor([0.1, 0.2, 0.3, 0.4]) + torch.ones(
        4, dtype=torch.float32
    )


def relu(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x)


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


@pytest.mark.parametrize("step", cases(with_types_of_its_own, thorough=(relu, softmax)))
def test_scales_come_from_double_precision(step: Step) -> None:
    """Constants of the graph and types that the model names are no obstacle. The scales are nearly
    those of float32, and the graph is as it was."""
    module = prepared(step)
    single = as_executorch_does(deepcopy(module))
    weights = [p.clone() for p in module.parameters()]
    assert calibrating.calibrate(module, samples(), FLOAT64) == ""
    assert all(t.dtype in (torch.float32, torch.int32, torch.int64) for t in floats(module))
    assert same(weights, list(module.parameters()))
    found = scales(module)
    assert {s.dtype for s in found} == {torch.float32}
    assert torch.allclose(torch.cat(found), torch.cat(single), rtol=1e-5)
    assert torch.get_default_dtype() is torch.float32


def single_precision(x: torch.Tensor) -> torch.Tensor:
    return torch.ops.hil_test.single(x)


def no_double(x: torch.Tensor) -> torch.Tensor:
    return torch.ops.hil_test.no_double(x)


@pytest.fixture(scope="module")
def custom_operators() -> Iterator[None]:
    """One that computes in float32 whatever it is given, one that refuses float64."""
    library = torch.library.Library("hil_test", "DEF")
    library.define("single(Tensor x) -> Tensor")
    library.define("no_double(Tensor x) -> Tensor")

    def no_double(x: torch.Tensor) -> torch.Tensor:
        if x.dtype is torch.float64:
            raise NotImplementedError("\"no_double\" not implemented for 'Double'")
        return x * 2

    library.impl("single", lambda x: x.float() * 2, "CompositeExplicitAutograd")
    library.impl("no_double", no_double, "CompositeExplicitAutograd")
    yield
    library._destroy()


@pytest.mark.usefixtures("custom_operators")
@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (single_precision, "hil_test.single.default gives float32"),
        (no_double, "\"no_double\" not implemented for 'Double'"),
    ],
)
def test_what_does_not_run_in_double_is_calibrated_as_executorch_does(
    step: Step, reason: str
) -> None:
    module = prepared(step)
    expected = as_executorch_does(deepcopy(module))
    why = calibrating.calibrate(module, samples(), FLOAT64)
    text = "calibrated in float32, because the model does not run in float64: "
    assert why == text + reason
    assert same(scales(module), expected), "nothing of the attempt is left"
    assert torch.get_default_dtype() is torch.float32


def test_float32_is_executorch_s_own_way_to_the_bit() -> None:
    module = prepared(relu)
    expected = as_executorch_does(deepcopy(module))
    why = calibrating.calibrate(module, samples(), FLOAT32)
    assert why == "calibrated in float32, as the model's settings ask"
    assert same(scales(module), expected)
