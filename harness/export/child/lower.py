"""Quantise and lower a module to an ExecuTorch program for a Cortex-M core.

The steps are those of ``_to_edge_cortex_m`` in ExecuTorch 1.5.1's
``backends/arm/scripts/aot_arm_compiler.py``, with three differences that leave the program
the same (``tests/export/test_lower.py`` compares) and take half the time: non-strict capture,
one capture instead of three, and ``to_edge`` in place of ``to_edge_transform_and_lower``, which
runs everything twice to leave operators to delegates that a Cortex-M does not have.

One difference is on purpose: inference-mode dropout is removed before quantising. torch 2.13
turns it into a clone, and the two clones of ds_cnn survive into the program, against what
ExecuTorch's own test_ds_cnn.py demands (it fails with these versions).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from executorch.backends.cortex_m.passes.cortex_m_pass_manager import CortexMPassManager
from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer
from executorch.backends.cortex_m.target_config import CortexMTargetConfig
from executorch.exir import (
    EdgeCompileConfig,
    EdgeProgramManager,
    ExecutorchBackendConfig,
    ExecutorchProgramManager,
    to_edge,
)
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer import Quantizer

from harness.config.models import Calibration
from harness.core.errors import UsageError
from harness.export.child.calibrate import calibrate
from harness.export.child.samples import Sample, channels_last


def target_config(compile_target: str) -> CortexMTargetConfig:
    try:
        return CortexMTargetConfig.from_target_string(compile_target)
    except ValueError as error:
        raise UsageError(f"ExecuTorch cannot compile for '{compile_target}': {error}") from error


def capture(module: torch.nn.Module, example: Sample) -> torch.fx.GraphModule:
    """The module as a graph, in channels-last memory format."""
    module = module.to(memory_format=torch.channels_last)
    exported = torch.export.export(module, channels_last(example), strict=False)
    graph_module: torch.fx.GraphModule = exported.module(check_guards=False)
    remove_dropout(graph_module)
    return graph_module


def capture_as_written(module: torch.nn.Module, example: Sample) -> torch.fx.GraphModule:
    """The same in the memory format that the model was written for."""
    exported = torch.export.export(module, example, strict=False)
    graph_module: torch.fx.GraphModule = exported.module(check_guards=False)
    remove_dropout(graph_module)
    return graph_module


@dataclass(frozen=True)
class Quantised:
    """``not_reproducible``: as of a Program."""

    module: torch.fx.GraphModule
    not_reproducible: str


def quantise(
    graph_module: torch.fx.GraphModule,
    samples: Sequence[Sample],
    calibration: Calibration,
) -> Quantised:
    """int8 with observers that have seen the calibration samples."""
    last = [channels_last(sample) for sample in samples]
    return quantise_with(graph_module, CortexMQuantizer(), last, calibration)


def quantise_with(
    graph_module: torch.fx.GraphModule,
    quantizer: Quantizer,
    samples: Sequence[Sample],
    calibration: Calibration,
) -> Quantised:
    """int8, with the scales that the quantizer's observers see in the calibration samples."""
    observed = prepare_pt2e(graph_module, quantizer)
    why = calibrate(observed, samples, calibration)
    return Quantised(convert_pt2e(observed), why)


def to_cortex_m(
    quantised: torch.fx.GraphModule, example: Sample, config: CortexMTargetConfig
) -> EdgeProgramManager:
    """The edge program in terms of the ``cortex_m::`` operators."""
    exported = torch.export.export(quantised, channels_last(example), strict=False)
    edge = to_edge(exported, compile_config=edge_config())
    passes = CortexMPassManager(edge.exported_program(), target_config=config)
    edge._edge_programs["forward"] = passes.transform()
    return edge


def edge_config() -> EdgeCompileConfig:
    """What ExecuTorch says itself since its pull request 21826 (August 2026); before that, a
    checkout's ``aot_arm_compiler.py`` has the same in the place of its use."""
    try:
        from executorch.backends.cortex_m import edge_compile_config
    except ImportError:
        aten = torch.ops.aten
        kept = (aten.linear, aten.hardsigmoid, aten.hardsigmoid_, aten.hardswish, aten.hardswish_)
        return EdgeCompileConfig(
            preserve_ops=[op.default for op in (*kept, aten.silu)], _check_ir_validity=False
        )
    return edge_compile_config.cortex_m_edge_compile_config()


def to_program(edge: EdgeProgramManager) -> ExecutorchProgramManager:
    return edge.to_executorch(config=ExecutorchBackendConfig(extract_delegate_segments=False))


def remove_dropout(graph_module: torch.fx.GraphModule) -> None:
    dropouts = {torch.ops.aten.dropout.default, torch.ops.aten.dropout_.default}
    for node in list(graph_module.graph.nodes):
        if node.target in dropouts and not node.args[2]:
            node.replace_all_uses_with(node.args[0])
            graph_module.graph.erase_node(node)
    graph_module.recompile()
