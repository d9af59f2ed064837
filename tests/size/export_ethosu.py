"""Export catalogue models for an Ethos-U, as input of the size tests: a script, run by a fixture.

    python tests/size/export_ethosu.py OUT_DIR ethos-u55-128 ds_cnn resnet8 ...

The steps are those of ``_to_edge_TOSA_delegate`` in ExecuTorch 1.5.1's
``backends/arm/scripts/aot_arm_compiler.py``. Weights are random with a fixed seed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner
from executorch.backends.arm.quantizer import (
    EthosUQuantizer,
    get_symmetric_quantization_config,
)
from executorch.exir import (
    EdgeCompileConfig,
    ExecutorchBackendConfig,
    to_edge_transform_and_lower,
)
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from harness.export.source import load_model
from harness.models import find_model


def export(target: str, name: str, *, segments: bool = False) -> bytes:
    """``segments``: put the delegate's blob into a segment instead of into the FlatBuffer."""
    torch.manual_seed(7)
    loaded = load_model(find_model(name))
    spec = EthosUCompileSpec(target)
    quantizer = EthosUQuantizer(spec)
    quantizer.set_global(get_symmetric_quantization_config(is_per_channel=True))
    captured = torch.export.export(loaded.module, loaded.examples, strict=False)
    prepared = prepare_pt2e(captured.module(check_guards=False), quantizer)
    prepared(*loaded.examples)
    quantised = torch.export.export(convert_pt2e(prepared), loaded.examples, strict=False)
    edge = to_edge_transform_and_lower(
        quantised,
        partitioner=[EthosUPartitioner(spec)],
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    )
    config = ExecutorchBackendConfig(extract_delegate_segments=segments)
    return bytes(edge.to_executorch(config=config).buffer)


def main() -> None:
    out, target, *names = sys.argv[1:]
    Path(out).mkdir(parents=True, exist_ok=True)
    for name in names:
        (Path(out) / f"{name}.pte").write_bytes(export(target, name))
        print(f"exported {target}/{name}", flush=True)


if __name__ == "__main__":
    main()
