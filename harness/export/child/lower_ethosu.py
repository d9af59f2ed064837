"""Quantise and lower a module to an ExecuTorch program that an Ethos-U executes.

The steps are those of ``_to_edge_TOSA_delegate`` in ExecuTorch 1.5.1's
``backends/arm/scripts/aot_arm_compiler.py``: inputs keep the layout that the model was written
for, and the quantisers that stay on the CPU become those of Cortex-M; for a driver under Linux (its
``--direct_drive``) they stay as they are. As for Cortex-M (``lower.py``), capture is non-strict and
inference-mode dropout is removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from executorch.backends.arm.arm_vela import vela_compile
from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner
from executorch.backends.arm.ethosu.backend import EthosUBackend
from executorch.backends.arm.quantizer import (
    EthosUQuantizer,
    get_symmetric_quantization_config,
)
from executorch.backends.cortex_m.passes.replace_quant_nodes_pass import ReplaceQuantNodesPass
from executorch.exir import EdgeCompileConfig, EdgeProgramManager, to_edge_transform_and_lower

from harness.config.models import Calibration
from harness.core.errors import ExportError
from harness.export.child.lower import Quantised, quantise_with
from harness.export.child.samples import Sample
from harness.export.request import NpuOptions

if TYPE_CHECKING:  # older checkouts have no such name
    from executorch.backends.arm.arm_vela import VelaCompileResult


# What its ``--direct_drive`` tells Vela besides.
_DIRECT_DRIVE = ("--separate-io-regions", "--cop-format=COP2")


@dataclass(frozen=True)
class Lowered:
    """``graphs``: the TOSA graph that Vela was given, by the blob that it made of it."""

    edge: EdgeProgramManager
    graphs: dict[bytes, bytes]


def compile_spec(options: NpuOptions) -> EthosUCompileSpec:
    return EthosUCompileSpec(
        options.compile_target,
        system_config=options.system_config,
        memory_mode=options.memory_mode,
        extra_flags=[*_DIRECT_DRIVE] if options.direct_drive else None,
    )


def quantise(
    graph_module: torch.fx.GraphModule,
    samples: Sequence[Sample],
    spec: EthosUCompileSpec,
    calibration: Calibration,
) -> Quantised:
    """int8, with a scale per output channel for weights."""
    quantizer = EthosUQuantizer(spec)
    quantizer.set_global(get_symmetric_quantization_config(is_per_channel=True))
    return quantise_with(graph_module, quantizer, samples, calibration)


def to_ethos_u(
    quantised: torch.fx.GraphModule,
    example: Sample,
    spec: EthosUCompileSpec,
    *,
    direct_drive: bool = False,
) -> Lowered:
    exported = torch.export.export(quantised, example, strict=False)
    with _recorded() as graphs:
        edge = to_edge_transform_and_lower(
            exported,
            partitioner=[EthosUPartitioner(spec)],
            compile_config=EdgeCompileConfig(_check_ir_validity=False),
        )
    return Lowered(edge if direct_drive else edge.transform([ReplaceQuantNodesPass()]), graphs)


@contextmanager
def _recorded() -> Iterator[dict[bytes, bytes]]:
    """Notes what goes into Vela and what comes out.

    ExecuTorch can dump the TOSA graphs into a directory, but then that directory's name is
    compiled into the program, which would be different every time.
    """
    graphs: dict[bytes, bytes] = {}
    original = EthosUBackend._compile_tosa_flatbuffer

    def record(tosa: bytes, spec: EthosUCompileSpec) -> VelaCompileResult:
        result = original(tosa, spec)
        graphs[bytes(result.processed_bytes)] = bytes(tosa)
        return result

    EthosUBackend._compile_tosa_flatbuffer = staticmethod(record)
    try:
        yield graphs
    finally:
        EthosUBackend._compile_tosa_flatbuffer = staticmethod(original)


def compile_graph(tosa: bytes, options: NpuOptions) -> bytes:
    """The command stream that the installed Vela makes, as ExecuTorch calls it.

    Raises ExportError when Vela refuses the graph.
    """
    flags = list(compile_spec(options).compiler_flags)
    try:
        blob: bytes = vela_compile(tosa, flags).processed_bytes
    except (Exception, SystemExit) as error:  # foreign code: any exception is possible
        raise ExportError(f"Vela does not compile the graph: {error}") from error
    return blob
