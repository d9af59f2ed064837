"""Expected outputs: ExecuTorch's Python definitions of the ``cortex_m`` operators.

The lowered program is run eagerly, so each operator is the reference implementation that
``executorch/backends/cortex_m/ops/operators.py`` registers for it.
"""

from __future__ import annotations

import numpy as np
import torch
from executorch.exir import EdgeProgramManager
from torch.utils import _pytree as pytree

from harness.errors import ExportError
from harness.export.program import TensorSpec
from harness.export.samples import channels_last

Sample = tuple[torch.Tensor, ...]


def oracle_name(versions: dict[str, str]) -> str:
    return f"cortex_m Python definitions (executorch {versions['executorch']})"


def run_oracle(edge: EdgeProgramManager, samples: list[Sample]) -> list[Sample]:
    """What the program gives for each sample, in logical order."""
    module = edge.exported_program().module(check_guards=False)
    with torch.no_grad():
        return [tuple(pytree.tree_leaves(module(*channels_last(s)))) for s in samples]


def method_bytes(tensor: torch.Tensor, spec: TensorSpec) -> bytes:
    """A tensor's values in the memory order that the program's metadata prescribes."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    if tuple(tensor.shape) != spec.shape or dtype != spec.dtype:
        raise ExportError(
            f"the oracle's '{spec.name}' is {dtype}{list(tensor.shape)}, the program's is "
            f"{spec.dtype}{list(spec.shape)}",
            tensor=spec.name,
        )
    logical = tensor.detach().contiguous().numpy()
    return np.ascontiguousarray(logical.transpose(spec.dim_order)).tobytes()
