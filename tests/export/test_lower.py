"""Our shorter route to the program gives the bytes of ExecuTorch's own."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from harness.config.models import CalibrationType, find_model
from tests.late import Late
from tests.thorough import cases

torch = Late("torch")
arm_vela = Late("executorch.backends.arm.arm_vela")
edge_config = Late("executorch.backends.cortex_m.edge_compile_config")
pass_manager = Late("executorch.backends.cortex_m.passes.cortex_m_pass_manager")
quantizer = Late("executorch.backends.cortex_m.quantizer.quantizer")
exir = Late("executorch.exir")
quantize_pt2e = Late("torchao.quantization.pt2e.quantize_pt2e")
lower = Late("harness.export.child.lower")
drawing = Late("harness.export.child.samples")
source = Late("harness.export.child.source")

TARGET = "cortex-m55"
FLOAT32 = CalibrationType.FLOAT32  # as ExecuTorch calibrates


def as_upstream_does(
    module: torch.nn.Module, samples: list[tuple[torch.Tensor, ...]], strict: bool
) -> exir.ExecutorchProgramManager:
    """_to_edge_cortex_m of aot_arm_compiler.py, step by step, with all its captures."""
    model = torch.export.export(module, samples[0], strict=strict).module(check_guards=False)
    model = model.to(memory_format=torch.channels_last)
    example = drawing.channels_last(samples[0])
    model = torch.export.export(model, example, strict=strict).module(check_guards=False)
    prepared = quantize_pt2e.prepare_pt2e(model, quantizer.CortexMQuantizer())
    for sample in samples:
        prepared(*drawing.channels_last(sample))
    exported = torch.export.export(quantize_pt2e.convert_pt2e(prepared), example, strict=strict)
    edge = exir.to_edge_transform_and_lower(
        exported, compile_config=edge_config.cortex_m_edge_compile_config()
    )
    config = lower.target_config(TARGET)
    passes = pass_manager.CortexMPassManager(edge.exported_program(), target_config=config)
    edge._edge_programs["forward"] = passes.transform()
    return edge.to_executorch(config=exir.ExecutorchBackendConfig(extract_delegate_segments=False))


@pytest.mark.parametrize("name", cases("qadd2", thorough=["resnet8"]))
def test_same_bytes_as_upstream(name: str) -> None:
    torch.manual_seed(0)
    model = source.load_model(find_model(name))
    generator = np.random.default_rng(0)
    ranges = drawing.shipped_ranges(model.examples)
    samples = [drawing.draw(ranges, generator) for _ in range(3)]
    last = [drawing.channels_last(sample) for sample in samples]
    captured = lower.capture(model.module.to(memory_format=torch.channels_last), last[0])
    quantised, _ = lower.quantise(captured, quantizer.CortexMQuantizer(), last, FLOAT32)
    config = lower.target_config(TARGET)
    ours = lower.to_program(lower.to_cortex_m(quantised, last[0], config))
    assert bytes(ours.buffer) == bytes(as_upstream_does(model.module, samples, False).buffer)
    strict = as_upstream_does(model.module, samples, True)
    assert constants(ours) == constants(strict), "strict capture only orders them differently"


def constants(program: exir.ExecutorchProgramManager) -> list[bytes]:
    return sorted(bytes(b.storage) for b in program.executorch_program.constant_buffer)


def test_a_checkout_without_the_shared_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before ExecuTorch's pull request 21826 the same stood in the place of its use."""
    shared = lower.edge_config()
    package = "executorch.backends.cortex_m"
    monkeypatch.setitem(sys.modules, f"{package}.edge_compile_config", None)
    monkeypatch.delattr(f"{package}.edge_compile_config", raising=False)
    own = lower.edge_config()
    assert own is not shared
    assert own == shared


def test_what_vela_compiled_is_bytes_in_older_checkouts() -> None:
    now = arm_vela.VelaCompileResult(processed_bytes=b"COP1")
    assert lower.blob_of(now) == lower.blob_of(b"COP1") == b"COP1"
