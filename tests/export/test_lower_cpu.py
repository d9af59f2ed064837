"""Programs for a CPU under an operating system: what a step of their outputs is, and who computes.

That the programs run, and to what, is in tests/firmware/wheel.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from harness.config.models import CalibrationType, ModelSource
from harness.core.errors import HarnessError
from harness.export.failures import NothingDelegated
from harness.export.program import Program
from tests.late import Late

torch = Late("torch")
lower = Late("harness.export.child.lower")

Write = Callable[[str], ModelSource]
Get = Callable[..., Program]

SCALED = """
import torch
class Scaled(torch.nn.Module):
    def forward(self, x):
        return x * 0.5, torch.argmax(x, -1)
ModelUnderTest = Scaled()
ModelInputs = (torch.linspace(-3.0, 3.0, 24).reshape(2, 12),)
"""


def captured(module: torch.nn.Module, sample: torch.Tensor) -> torch.fx.GraphModule:
    return lower.capture(module.eval(), (sample,))


def test_a_float_s_step_is_of_the_largest_value() -> None:
    """Over all sets, whatever its sign; an integer has none, for it has to be the same."""
    given = [torch.tensor([0.5, -1.9]), torch.tensor([0.25, 1.0])]
    module = captured(two(), given[0])
    outputs = [tuple(module(x)) for x in given]
    real, whole = lower.output_steps(module, outputs)
    assert real == 8 * float(np.spacing(np.float32(1.9)))
    assert whole is None


def two() -> torch.nn.Module:
    class Two(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x * 1.0, torch.argmax(x, -1)

    return Two()


def line() -> torch.nn.Module:
    """A product, and behind it what no quantiser of XNNPACK's knows."""

    class Line(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            y = self.linear(x)
            return y, torch.exp(y)

    return Line()


def test_an_int8_s_step_is_its_scale_or_what_that_would_be() -> None:
    """Of an operator behind the last quantiser nobody says a scale."""
    torch.manual_seed(3)
    sample = torch.randn(2, 4)
    graph = captured(line(), sample)
    quantizer = lower.cpu_quantizer()
    module, _ = lower.quantise(graph, quantizer, [(sample,)], CalibrationType.FLOAT64)
    outputs = [tuple(module(sample))]
    scale, would_be = lower.output_steps(module, outputs)
    assert scale is not None
    product, _ = module(torch.linspace(-9, 9, 800).reshape(-1, 4))
    steps = (product / scale).double()
    assert torch.allclose(steps, steps.round(), atol=1e-3), "all are whole steps"
    last = outputs[0][1]
    low = min(0.0, float(last.min()))
    assert would_be == pytest.approx((float(last.max()) - low) / 255)


def test_the_wheels_own_runtime_computes_what_is_expected(user_model: Write, exported: Get) -> None:
    """Bit for bit, for a model that adds nothing up; and the record says who did."""
    program = exported(user_model(SCALED), "portable-fp32")
    assert program.oracle_name.startswith("ExecuTorch's runtime on this machine (")
    assert "CMSIS-NN" not in program.oracle_name, "none of its operators is Cortex-M's"
    real, whole = program.outputs
    assert (real.dtype, whole.dtype, whole.scale) == ("float32", "int64", None)
    for one in program.sets:
        given = np.fromfile(program.directory / one.inputs[0], np.float32)
        expected = np.fromfile(program.directory / one.expected[0], np.float32)
        assert (expected == given * np.float32(0.5)).all()
    assert "aten::argmax.out" in program.operators


def test_a_model_of_which_xnnpack_takes_nothing_is_none_for_it(
    user_model: Write, failure: Callable[..., HarnessError]
) -> None:
    """A run of it would be said to be XNNPACK's."""
    text = SCALED.replace("x * 0.5, torch.argmax(x, -1)", "torch.argmax(x, -1)")
    error = failure(user_model(text), "xnnpack-fp32")
    assert isinstance(error, NothingDelegated)
    assert "is left to the xnnpack-fp32" in error.message
