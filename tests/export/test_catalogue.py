"""Every catalogue model really exports, to the operators that the runner has."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from harness.config.models import (
    ModelSource,
    full_tier,
    optional_models,
    other_names,
    small_models,
    unavailable,
)
from harness.config.strict_yaml import read
from harness.export.program import Program
from harness.size.measure import measure_file
from harness.system.paths import data_root
from tests.thorough import cases

Get = Callable[[str | ModelSource], Program]

MLPERF = ("ds_cnn", "resnet8", "mobilenet_v1_025", "deep_autoencoder")
FLOAT_MODELS = {
    "add_mul": ("executorch.examples.models.toy_model", "AddMulModule"),
    "conv1d": ("executorch.examples.models.toy_model", "Conv1dModule"),
    "qops": ("executorch.backends.arm.scripts.aot_arm_compiler", "QuantOpTest"),
}


def test_a_program_knows_the_layer_of_each_instruction(exported: Get) -> None:
    """So that the page of its sizes names layers of the model."""
    program = exported("ds_cnn")
    blocks = [
        f"feature_extractor.{n}.{part}" for n in (4, 5, 6, 7) for part in ("depthwise", "pointwise")
    ]
    layers = ["", "feature_extractor.0", *blocks, "", "pool", "classifier", ""]
    assert list(program.layers) == layers
    users = measure_file(program.pte_path).users.values()
    assert "quantized_conv2d.out #2 (feature_extractor.5.pointwise)" in users
    assert "quantized_linear.out (classifier)" in users


@pytest.mark.parametrize("name", list(small_models()))
def test_it_exports_without_float_operators(exported: Get, name: str) -> None:
    program = exported(name)
    assert program.operators
    assert {operator.split("::")[0] for operator in program.operators} == {"cortex_m"}
    assert len(program.sets) >= 2
    assert program.oracle_name.startswith("cortex_m operators (executorch ")
    assert program.oracle_name.endswith("CPU operators as CMSIS-NN defines them")
    for spec in (*program.inputs, *program.outputs):
        assert spec.scale is not None
        assert spec.zero_point is not None
        assert spec.scale > 0


@pytest.mark.parametrize("name", cases("add_mul", thorough=["conv1d", "qops"]))
def test_the_reason_names_the_float_operators_that_stay(exported: Get, name: str) -> None:
    program = exported(ModelSource(name, "", *FLOAT_MODELS[name]))
    stay = [op for op in program.operators if not op.startswith("cortex_m::")]
    assert stay
    assert all(operator in unavailable()[name] for operator in stay)


@pytest.mark.parametrize("name", MLPERF)
def test_the_real_networks_are_well_alive(exported: Get, name: str) -> None:
    """Elements differ within an output and between sets, and few sit at an end of int8."""
    program = exported(name)
    (output,) = program.outputs
    assert output.scale is not None
    assert output.zero_point is not None
    levels = [
        np.rint(
            output.decode((program.directory / s.expected[0]).read_bytes()) / output.scale
        ).astype(int)
        + output.zero_point
        for s in program.sets
    ]
    for one in levels:
        assert len(np.unique(one)) > 1
        assert np.mean((one == -128) | (one == 127)) <= 0.25
    for index, one in enumerate(levels):
        assert all(np.abs(one - other).max() > 8 for other in levels[:index])


def test_the_wheel_has_no_name_that_the_catalogue_forgot() -> None:
    """A new ExecuTorch with a new model must be noticed here."""
    from executorch.backends.arm.scripts.aot_arm_compiler import MODELS
    from executorch.examples.models import MODEL_NAME_TO_MODEL

    named = {*MODEL_NAME_TO_MODEL, *MODELS}
    known = {*small_models(), *unavailable(), *optional_models(), *other_names()}
    assert named - set(full_tier()) == known


def test_networks_that_need_a_package_are_where_the_catalogue_says() -> None:
    from executorch.examples.models import MODEL_NAME_TO_MODEL

    for networks in read(data_root() / "models/catalogue.yaml").data["optional"].values():
        for name, (module, kind) in networks.items():
            assert MODEL_NAME_TO_MODEL[name] == (module, kind)


def test_ds_cnn_has_no_clone(exported: Get) -> None:
    """ExecuTorch's test_ds_cnn.py demands it; the model's two dropouts would leave two."""
    assert not [op for op in exported("ds_cnn").operators if "clone" in op]


def test_images_are_stored_as_the_method_takes_them(exported: Get) -> None:
    """NHWC for the channels-last networks; one channel makes (0, 2, 1, 3) the same bytes."""
    assert exported("resnet8").inputs[0].dim_order == (0, 2, 3, 1)
    assert exported("ds_cnn").inputs[0].dim_order in ((0, 2, 3, 1), (0, 2, 1, 3))
    assert exported("deep_autoencoder").inputs[0].dim_order == (0, 1)
