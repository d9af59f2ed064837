"""Programs for an Ethos-U: what they are, what the oracles say, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tosa.TosaGraph import TosaGraph

from harness.config.models import ModelSource, Quantization, small_models
from harness.core.errors import HarnessError
from harness.export.batch import export
from harness.export.failures import DeadModelError, LoweringDiffers, NothingDelegated
from harness.export.process import ExportProcess
from harness.export.program import Program, load_program
from harness.export.request import ExportRequest, exporter_versions
from harness.judge.blame import first_disagreement
from harness.npu.blob import find_blobs
from harness.npu.model import Network
from tests.late import Late
from tests.thorough import SLOW_FOR_AN_NPU, cases

torch = Late("torch")
lower = Late("harness.export.child.lower")
worker = Late("harness.export.child.worker")

Get = Callable[..., Program]
Write = Callable[..., ModelSource]
Failure = Callable[[ModelSource, str], HarnessError]
U55, U85 = "ethos-u55-128", "ethos-u85-256"

CONVOLUTIONS = """
import torch
torch.manual_seed(1)
ModelUnderTest = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Conv2d(8, 4, 3), torch.nn.ReLU(),
    torch.nn.Conv2d(4, 2, 1))
ModelInputs = (torch.rand(1, 3, 9, 9),)
"""


ONE_CONVOLUTION = """
import torch
torch.manual_seed(1)
ModelUnderTest = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())
ModelInputs = (torch.rand(1, 3, 9, 9),)
"""


@pytest.mark.parametrize("target", cases(U85, thorough=[U55]))
@pytest.mark.parametrize(
    "name", cases(*(n for n in small_models() if n != SLOW_FOR_AN_NPU), thorough=[SLOW_FOR_AN_NPU])
)
def test_every_model_exports_and_its_delegates_are_exact(
    exported: Get, name: str, target: str
) -> None:
    """Oracle 1 is the TOSA graph that Vela compiled: our NPU must give the same bytes."""
    program = exported(name, target)
    assert load_program(program.directory) == program
    assert program.delegates
    assert len(program.sets) >= 2
    assert program.oracle.startswith("TOSA reference model (tosa-tools ")
    for spec in (*program.inputs, *program.outputs):
        assert spec.dtype == "float32"
        assert spec.scale is not None
        assert spec.zero_point is not None
    assert first_disagreement(program) is None


@pytest.mark.parametrize("target", cases(U85, thorough=[U55]))
def test_activations_of_16_bits(
    user_model: Write, hil_export_process: ExportProcess, target: str
) -> None:
    """The oracle and the NPU agree in every byte, as they do for 8."""
    request = ExportRequest(user_model(ONE_CONVOLUTION), target, quantization=Quantization.A16W8)
    program = export([request], process=hil_export_process)[0].unwrap()
    (delegate,) = program.delegates
    assert {spec.dtype for spec in (*delegate.inputs, *delegate.outputs)} == {"int16"}
    assert first_disagreement(program) is None


def test_what_stays_on_the_cpu_is_named(exported: Get) -> None:
    """A U55 pools with strides up to 3 only, so ds_cnn's pooling stays between two delegates."""
    quantisers = ("cortex_m::quantize_per_tensor.out", "cortex_m::dequantize_per_tensor.out")
    on_u55, on_u85 = exported("ds_cnn", U55), exported("ds_cnn", U85)
    assert on_u55.operators == (*quantisers, "aten::avg_pool2d.out")
    assert on_u85.operators == quantisers
    assert (len(on_u55.delegates), len(on_u85.delegates)) == (2, 1)


def test_delegates_lie_in_the_file_where_the_program_says(exported: Get) -> None:
    """The file has them in another order than the one in which they run."""
    program = exported("ds_cnn", U55)
    blobs = find_blobs(program.pte_path.read_bytes())
    for delegate in program.delegates:
        assert blobs[delegate.position] == (program.directory / delegate.blob).read_bytes()
    assert sorted(d.position for d in program.delegates) == [0, 1]


def test_the_delegates_chain_up_to_the_expected_outputs(exported: Get) -> None:
    """The last delegate's bytes, dequantised, are what the program is expected to give."""
    program = exported("resnet8", U85)
    (delegate,), (output,) = program.delegates, program.outputs
    assert output.scale is not None
    assert output.zero_point is not None
    for inner, outer in zip(delegate.sets, program.sets, strict=True):
        raw = delegate.outputs[0].decode((program.directory / inner.expected[0]).read_bytes())
        real = output.decode((program.directory / outer.expected[0]).read_bytes())
        np.testing.assert_allclose((raw.astype(int) - output.zero_point) * output.scale, real)


def test_a_memory_mode_is_another_program(exported: Get) -> None:
    shared, only = exported("add", U55), exported("add", U55, "Sram_Only")
    assert (shared.memory_mode, only.memory_mode) == ("Shared_Sram", "Sram_Only")
    assert only.system_config == "Ethos_U55_High_End_Embedded"
    assert b"Sram_Only" in only.pte_path.read_bytes()
    assert [s.expected for s in shared.sets] == [s.expected for s in only.sets]


@pytest.mark.parametrize(
    "target",
    cases("ethos-u65-256", thorough=("ethos-u65-512", "ethos-u85-2048")),
)
def test_other_sizes(exported: Get, target: str) -> None:
    assert first_disagreement(exported("ds_cnn", target)) is None


def test_the_other_oracles_are_on_record(exported: Get) -> None:
    program = exported("resnet8", U85)
    eager, real = program.oracles
    assert (eager.name, real.name) == ("quantised eager model", "float model")
    assert 0 < eager.worst[0].lsb <= 3
    assert eager.worst[0].lsb < real.worst[0].lsb < 20
    element = eager.worst[0].element
    assert len(element) == len(program.outputs[0].shape)


def test_channels_last_inputs_stay_so(exported: Get, user_model: Write) -> None:
    """The method takes NHWC if the user's example is, in every input set."""
    last = ONE_CONVOLUTION.replace("9, 9)", "9, 9).to(memory_format=torch.channels_last)")
    models = user_model(ONE_CONVOLUTION), user_model(last, "n.py")
    plain, nhwc = (exported(model, U55) for model in models)
    assert plain.inputs[0].dim_order == (0, 1, 2, 3)
    assert nhwc.inputs[0].dim_order == (0, 2, 3, 1)
    assert first_disagreement(nhwc) is None
    for a, b in zip(plain.sets, nhwc.sets, strict=True):
        one = plain.inputs[0].decode((plain.directory / a.inputs[0]).read_bytes())
        assert (one == nhwc.inputs[0].decode((nhwc.directory / b.inputs[0]).read_bytes())).all()


def test_a_dead_model_is_refused(user_model: Write, failure: Failure) -> None:
    error = failure(
        user_model(
            "import torch\nModelUnderTest = torch.nn.Linear(4, 3)\n"
            "torch.nn.init.zeros_(ModelUnderTest.weight)\nModelInputs = (torch.rand(2, 4),)\n"
        ),
        U55,
    )
    assert isinstance(error, DeadModelError)


def test_a_model_that_never_reaches_the_npu_is_refused(user_model: Write, failure: Failure) -> None:
    """A run of it would pass without an NPU: planted, an operator that ExecuTorch keeps."""
    error = failure(
        user_model("""
import torch
class OnCpu(torch.nn.Module):
    def forward(self, x):
        return torch.sort(x)[0]
ModelUnderTest = OnCpu()
ModelInputs = (torch.rand(2, 4),)
"""),
        U55,
    )
    assert isinstance(error, NothingDelegated)
    assert "nothing of model 'mine' is left to the ethos-u55-128" in error.message


def test_an_operator_that_tosa_computes_otherwise_is_named(
    user_model: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: other weights in the second convolution of the TOSA graph."""
    original = lower.to_ethos_u

    def planted(*args: object) -> tuple[Any, dict[bytes, bytes], Any]:
        edge, graphs, estimates = original(*args)
        return edge, {blob: damaged(tosa) for blob, tosa in graphs.items()}, estimates

    monkeypatch.setattr("harness.export.child.lower.to_ethos_u", planted)
    request, stages = ExportRequest(user_model(CONVOLUTIONS), U55), list[str]()
    with pytest.raises(LoweringDiffers) as caught:  # in this process, where it can be planted
        worker.export(stages.append, request, exporter_versions(U55), "no such folder")
    assert stages[-4:] == [
        "lower",
        "Vela",
        "compute the expected outputs",
        "compare with the quantised model",
    ]
    error = caught.value
    assert error.operators[0].startswith("conv2d")
    assert error.layer == "2"
    assert error.made_by == "ExecuTorch's passes to TOSA"
    assert len(error.element) == 4
    assert error.lsb > error.within


def damaged(tosa: bytes) -> bytes:
    content = bytearray(tosa)
    block = TosaGraph.GetRootAs(content, 0).Regions(0).Blocks(0)
    for tensor in (block.Tensors(i) for i in range(block.TensorsLength())):
        if b"convolution_default_1_weight" in tensor.Name():
            data = tensor._tab.Vector(tensor._tab.Offset(10))  # the fourth field
            for at in range(data, data + tensor.DataLength()):
                content[at] ^= 0x40
            return bytes(content)
    raise AssertionError("no such tensor")


def test_the_oracle_does_not_run_the_npu(exported: Get) -> None:
    """The reference model and ours are two programs: a damaged stream gives other bytes."""
    program = exported("qlinear", U85)
    (delegate,) = program.delegates
    blob = (program.directory / delegate.blob).read_bytes()
    inputs = [(program.directory / n).read_bytes() for n in delegate.sets[0].inputs]
    weights = Network(blob).blob.weights
    zeros = blob.replace(weights[:16], bytes(16))  # bias and scale of the first channels
    expected = [(program.directory / n).read_bytes() for n in delegate.sets[0].expected]
    assert Network(blob).run(inputs)[0] == expected
    assert Network(zeros).run(inputs)[0] != expected
