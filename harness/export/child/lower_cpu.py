"""Quantise and lower a module to an ExecuTorch program for a CPU under an operating system.

The steps are those of ``examples/xnnpack/aot_compiler.py`` of ExecuTorch 1.5.1: the quantiser is
XNNPACK's, whoever computes in the end, and what XNNPACK's partitioner takes is its.

PyTorch computes the expected outputs, as floats. No runtime adds floats up in PyTorch's order, so
they cannot be exact, and a step is needed that says how near they are (``steps``).
"""

from __future__ import annotations

from collections.abc import Sequence

import executorch.kernels.quantized  # noqa: F401 - the out variants of quantized_decomposed
import numpy as np
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.exir import EdgeCompileConfig, EdgeProgramManager, to_edge_transform_and_lower
from torch.utils import _pytree as pytree

from harness.config.models import Calibration
from harness.export.child.lower import Quantised, quantise_with
from harness.export.child.samples import Sample
from harness.export.request import CpuLowering

_STEPS_OF_INT8 = 255
_ULPS = 8  # of float32: sums in another order, layer upon layer


def quantise(
    graph_module: torch.fx.GraphModule, samples: Sequence[Sample], calibration: Calibration
) -> Quantised:
    """int8, with a scale per output channel for weights."""
    quantizer = XNNPACKQuantizer().set_global(
        get_symmetric_quantization_config(is_per_channel=True)
    )
    return quantise_with(graph_module, quantizer, samples, calibration)


def to_cpu(
    module: torch.fx.GraphModule, example: Sample, lowering: CpuLowering
) -> EdgeProgramManager:
    return to_edge_transform_and_lower(
        torch.export.export(module, example, strict=False),
        partitioner=[XnnpackPartitioner()] if lowering.xnnpack else [],
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    )


def steps(module: torch.fx.GraphModule, outputs: Sequence[Sample]) -> tuple[float | None, ...]:
    """What one step of each output is when it is judged; None where it is no float.

    Where the output comes from a dequantise, its scale. Else that of an int8 over all that the
    output was, in a module that is quantised, and in one that is not a few units in the last place
    of the largest value that the output had.
    """
    (node,) = (node for node in module.graph.nodes if node.op == "output")
    nodes = pytree.tree_leaves(node.args[0])
    quantised = any(_is_dequantise(node) for node in module.graph.nodes)
    return tuple(
        _scale(node) or _step([one[n] for one in outputs], quantised=quantised)
        for n, node in enumerate(nodes)
    )


def _is_dequantise(node: object) -> bool:
    return (
        isinstance(node, torch.fx.Node)
        and node.op == "call_function"
        and node.target is torch.ops.quantized_decomposed.dequantize_per_tensor.default
    )


def _scale(node: object) -> float | None:
    return float(node.args[1]) if _is_dequantise(node) else None  # type: ignore[attr-defined]


def _step(values: Sequence[torch.Tensor], *, quantised: bool) -> float | None:
    if not values[0].is_floating_point():
        return None
    every = torch.cat([torch.zeros(1), *(value.flatten() for value in values)])  # an int8 has a 0
    low, high = float(every.min()), float(every.max())
    if quantised:
        return (high - low) / _STEPS_OF_INT8 or None
    return _ULPS * float(np.spacing(np.float32(max(abs(high), abs(low)))))
