"""The expected numbers against the float network, and the memory order they are stored in."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from harness.config.models import CalibrationType, ModelSource, find_model
from harness.core.errors import ExportError
from harness.export.program import TensorSpec
from tests.late import Late
from tests.thorough import cases

from .test_ethosu import CONVOLUTIONS

torch = Late("torch")
quantizer = Late("executorch.backends.cortex_m.quantizer.quantizer")
lower = Late("harness.export.child.lower")
by_design = Late("harness.export.child.by_design")
sensitivity = Late("harness.export.child.sensitivity")
expected_outputs = Late("harness.export.child.expected_outputs")
drawing = Late("harness.export.child.samples")
source = Late("harness.export.child.source")
FLOAT64 = CalibrationType.FLOAT64


@pytest.mark.parametrize("name", cases("convolutions", thorough=["resnet8"]))
def test_the_oracle_stays_close_to_the_float_network(
    name: str, user_model: Callable[[str], ModelSource]
) -> None:
    """A wrong layout or a wrong calibration would be off by far more than int8 rounding."""
    model = source.load_model(find_model(name) if name == "resnet8" else user_model(CONVOLUTIONS))
    generator = np.random.default_rng(3)
    ranges = drawing.shipped_ranges(model.examples)
    sensitivity.randomise_weights(model.module, ranges, generator)
    samples = [drawing.draw(ranges, generator, whole_range=n == 0) for n in range(8)]
    expected = [model.module(*s) for s in samples]
    last = [drawing.channels_last(sample) for sample in samples]
    captured = lower.capture(model.module.to(memory_format=torch.channels_last), last[0])
    quantised, _ = lower.quantise(captured, quantizer.CortexMQuantizer(), last, FLOAT64)
    config = lower.target_config("cortex-m55")
    edge = lower.to_cortex_m(quantised, last[0], config)
    runs = expected_outputs.run_program(edge, last, by_design.Kernels("cortex-m55"))
    for run, exact in zip(runs, expected, strict=True):
        (got,) = run.outputs
        noise = (got - exact).pow(2).sum()
        signal = exact.pow(2).sum()
        assert 10 * float(torch.log10(signal / noise)) > 20, "SQNR in dB"


def test_a_max_pool_of_a_large_int8_image_is_computed() -> None:
    """Torch's own kernel refuses more than 127 elements of a channel in channels-last, which
    SqueezeNet's pools with ``ceil_mode`` have."""
    x = torch.randint(-128, 128, (1, 3, 15, 15), dtype=torch.int8)
    last = x.to(memory_format=torch.channels_last)
    window = ([3, 3], [2, 2], [0, 0], [1, 1], True)
    with pytest.raises(RuntimeError, match="input_depth"):
        torch.ops.aten.max_pool2d_with_indices.default(last, *window)
    values, places = expected_outputs._max_pool(last, *window)
    wanted = torch.ops.aten.max_pool2d_with_indices.default(x, *window)
    assert torch.equal(values, wanted[0])
    assert torch.equal(places, wanted[1])
    assert values.dim_order() == last.dim_order()


def test_bytes_follow_the_dimension_order() -> None:
    tensor = torch.arange(8, dtype=torch.int8).reshape(1, 2, 2, 2)
    spec = TensorSpec("x", "int8", (1, 2, 2, 2), (0, 2, 3, 1))
    raw = expected_outputs.method_bytes(tensor.to(memory_format=torch.channels_last), spec)
    assert list(raw) == [0, 4, 1, 5, 2, 6, 3, 7]
    assert (spec.decode(raw) == tensor.numpy()).all()


def test_a_scalar_has_bytes_too() -> None:
    raw = expected_outputs.method_bytes(torch.tensor(2.5), TensorSpec("x", "float32", (), ()))
    assert np.frombuffer(raw, np.float32).tolist() == [2.5]


def test_another_shape_than_the_programs_is_an_error() -> None:
    with pytest.raises(ExportError, match=r"the oracle's 'x' is int8\[3\], the program's is"):
        expected_outputs.method_bytes(
            torch.zeros(3, dtype=torch.int8), TensorSpec("x", "int8", (4,), (0,))
        )
