"""Quantise and lower a module to an ExecuTorch program, for each kind of target.

For all targets, unlike in ExecuTorch's own scripts, capture is non-strict and inference-mode
dropout is removed before quantising. torch 2.13 turns dropout into a clone, and the two clones of
ds_cnn survive into the program, against ExecuTorch's own test_ds_cnn.py (it fails with these
versions).

Cortex-M: the steps are those of ``_to_edge_cortex_m`` in ExecuTorch 1.5.1's
``backends/arm/scripts/aot_arm_compiler.py``, with differences that leave the program the same
(``tests/export/test_lower.py`` compares) and take half the time: one capture instead of three,
and ``to_edge`` instead of ``to_edge_transform_and_lower``, which runs everything twice to leave
operators to delegates that a Cortex-M does not have.

Ethos-U: the steps are those of ``_to_edge_TOSA_delegate`` in the same file. Inputs keep the layout
that the model was written for, and the quantisers that stay on the CPU become those of Cortex-M;
for a driver under Linux (its ``--direct_drive``) they stay as they are.

A CPU under an operating system: the steps are those of ``examples/xnnpack/aot_compiler.py``. The
quantiser is XNNPACK's for all runtimes; XNNPACK runs what its partitioner takes. PyTorch computes
the expected outputs, as floats. No runtime adds floats in PyTorch's order, so they cannot be exact:
``output_steps`` has the unit in which a difference is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import executorch.kernels.quantized  # noqa: F401 - the out variants of quantized_decomposed
import numpy as np
import torch
from executorch.backends.arm import quantizer as arm
from executorch.backends.arm.arm_vela import vela_compile
from executorch.backends.arm.ethosu import EthosUCompileSpec
from executorch.backends.arm.ethosu.backend import EthosUBackend
from executorch.backends.cortex_m.passes.cortex_m_pass_manager import CortexMPassManager
from executorch.backends.cortex_m.passes.replace_quant_nodes_pass import ReplaceQuantNodesPass
from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer
from executorch.backends.cortex_m.target_config import CortexMTargetConfig
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer import xnnpack_quantizer as xnnpack
from executorch.exir import (
    EdgeCompileConfig,
    EdgeProgramManager,
    ExecutorchBackendConfig,
    ExecutorchProgramManager,
    to_edge,
    to_edge_transform_and_lower,
)
from executorch.exir.backend.partitioner import Partitioner
from torch.utils import _pytree as pytree
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer import Quantizer

from harness.config.models import CalibrationType, Layout, Quantization
from harness.core.errors import ExportError, InfraError, UsageError
from harness.export.child.calibrate import calibrate
from harness.export.child.partition import sources_of
from harness.export.child.samples import Sample
from harness.export.estimates import Estimate, read_estimate
from harness.export.failures import VelaFailed
from harness.export.localise import newest_vela
from harness.export.request import CpuLowering, NpuOptions
from harness.system.files import DiskError, disk_full

if TYPE_CHECKING:  # older checkouts have no such name
    from executorch.backends.arm.arm_vela import VelaCompileResult

# Vela's further flags for ExecuTorch's ``--direct_drive``.
_DIRECT_DRIVE = ("--separate-io-regions", "--cop-format=COP2")
_STEPS_OF_INT8 = 255
_ULPS = 8  # of float32: sums in another order, layer upon layer


def capture(module: torch.nn.Module, example: Sample) -> torch.fx.GraphModule:
    """Return the module as a graph, in the memory format of the example."""
    exported = torch.export.export(module, example, strict=False)
    graph_module: torch.fx.GraphModule = exported.module(check_guards=False)
    dropouts = {torch.ops.aten.dropout.default, torch.ops.aten.dropout_.default}
    for node in list(graph_module.graph.nodes):
        if node.target in dropouts and not node.args[2]:
            node.replace_all_uses_with(node.args[0])
            graph_module.graph.erase_node(node)
    graph_module.recompile()
    return graph_module


def quantise(
    graph_module: torch.fx.GraphModule,
    quantizer: Quantizer,
    samples: Sequence[Sample],
    calibration: CalibrationType,
    check: Callable[[torch.fx.GraphModule], None] = lambda _: None,
) -> tuple[torch.fx.GraphModule, str]:
    """Quantises to int8, with scales that the observers derive from the calibration samples.

    Also returns why the program is not reproducible, or "". ``check`` is given the graph that is
    going to be quantised."""
    observed = prepare_pt2e(graph_module, quantizer)
    check(observed)
    why = calibrate(observed, samples, calibration)
    return convert_pt2e(observed), why


def ethos_u_quantizer(spec: EthosUCompileSpec, quantization: Quantization) -> Quantizer:
    """Quantises weights with a scale per output channel."""
    config = arm.get_symmetric_quantization_config
    if quantization is Quantization.A16W8:
        config = arm.get_symmetric_a16w8_quantization_config
    return arm.EthosUQuantizer(spec).set_global(config(is_per_channel=True))


def cortex_m_quantizer(quantization: Quantization, layout: Layout) -> Quantizer:
    """Wide activations where ExecuTorch's passes have them, which is a division (1.5.1)."""
    options = _cortex_m_options(layout)
    if quantization is Quantization.A8W8:
        return CortexMQuantizer(**options)
    from executorch.backends.cortex_m.quantizer import quantization_configs  # new in 1.5

    return CortexMQuantizer(quantization_configs.INT16_PER_TENSOR_CONFIG, **options)


def _cortex_m_options(layout: Layout) -> dict[str, bool]:
    """Options of the quantizer and the passes; older checkouts have no such parameter."""
    return {"use_explicit_layout": True} if layout is Layout.EXPLICIT else {}


def cpu_quantizer() -> Quantizer:
    """Quantises weights with a scale per output channel."""
    config = xnnpack.get_symmetric_quantization_config(is_per_channel=True)
    return xnnpack.XNNPACKQuantizer().set_global(config)


def target_config(compile_target: str) -> CortexMTargetConfig:
    try:
        return CortexMTargetConfig.from_target_string(compile_target)
    except ValueError as error:
        raise UsageError(f"ExecuTorch cannot compile for '{compile_target}': {error}") from error


def to_cortex_m(
    quantised: torch.fx.GraphModule,
    example: Sample,
    config: CortexMTargetConfig,
    layout: Layout = Layout.CHANNELS_LAST,
) -> EdgeProgramManager:
    """Return the edge program in terms of the ``cortex_m::`` operators."""
    exported = torch.export.export(quantised, example, strict=False)
    edge = to_edge(exported, compile_config=edge_config())
    options = _cortex_m_options(layout)
    passes = CortexMPassManager(edge.exported_program(), target_config=config, **options)
    edge._edge_programs["forward"] = passes.transform()
    return edge


def cortex_m_stages(
    quantised: torch.fx.GraphModule,
    example: Sample,
    config: CortexMTargetConfig,
    layout: Layout,
    origins: frozenset[str],
) -> Iterator[tuple[str, EdgeProgramManager | None]]:
    """Yield the stages that an operator goes through, with the program of those that can run.

    Between the passes, scales and zero points are only notes on the graph. ``origins``: its nodes
    in the quantised model; the last stage is the pass that changes it last."""
    exported = torch.export.export(quantised, example, strict=False)
    edge = to_edge(exported, compile_config=edge_config())
    yield "ExecuTorch's to_edge", edge
    program = edge.exported_program()
    options = _cortex_m_options(layout)
    before, last = None, ""
    for each in CortexMPassManager(program, target_config=config, **options).passes:
        program = CortexMPassManager(program, passes=[each], target_config=config).transform()
        sources = sources_of(program.graph, quantised.graph)
        after = [
            (str(n.target), [a for a in n.args if not isinstance(a, torch.fx.Node)])
            for n in program.graph.nodes
            if sources[n.name] in origins
        ]
        before, last = after, last if after == before else each.__name__
    yield f"ExecuTorch's {last}", None


def edge_config() -> EdgeCompileConfig:
    """ExecuTorch's own configuration since its pull request 21826 (August 2026).

    Before that, ``aot_arm_compiler.py`` of a checkout has the same values inline."""
    try:
        from executorch.backends.cortex_m import edge_compile_config
    except ImportError:
        aten = torch.ops.aten
        kept = (aten.linear, aten.hardsigmoid, aten.hardsigmoid_, aten.hardswish, aten.hardswish_)
        return EdgeCompileConfig(
            preserve_ops=[op.default for op in (*kept, aten.silu)], _check_ir_validity=False
        )
    return edge_compile_config.cortex_m_edge_compile_config()


def compile_spec(options: NpuOptions) -> EthosUCompileSpec:
    return EthosUCompileSpec(
        options.compile_target,
        system_config=options.system_config,
        memory_mode=options.memory_mode,
        extra_flags=[*_DIRECT_DRIVE] if options.direct_drive else None,
    )


def to_ethos_u(
    quantised: torch.fx.GraphModule,
    example: Sample,
    partitioner: Partitioner,
    options: NpuOptions,
    on_vela: Callable[[], None],
) -> tuple[EdgeProgramManager, dict[bytes, bytes], dict[bytes, Estimate | None]]:
    """Return the edge program, and by blob the TOSA graphs and Vela's estimates.

    ``on_vela`` is called when Vela begins with one."""
    with _recorded(options, on_vela) as (graphs, estimates):
        edge = _to_edge_with(partitioner, quantised, example)
    if not options.direct_drive:
        edge = edge.transform([ReplaceQuantNodesPass()])
    return edge, graphs, estimates


@contextmanager
def _recorded(
    options: NpuOptions, on_vela: Callable[[], None]
) -> Iterator[tuple[dict[bytes, bytes], dict[bytes, Estimate | None]]]:
    """Record Vela's inputs and outputs.

    ExecuTorch can dump the TOSA graphs into a directory, but the directory of a compile spec is
    compiled into the program, which would be different every time. Here the spec is already in the
    program, and only Vela's call still reads it."""
    graphs: dict[bytes, bytes] = {}
    estimates: dict[bytes, Estimate | None] = {}
    original = EthosUBackend._compile_tosa_flatbuffer

    def record(tosa: bytes, spec: EthosUCompileSpec) -> VelaCompileResult:
        on_vela()
        with TemporaryDirectory() as folder:
            spec.dump_intermediate_artifacts_to(folder)
            spec.compiler_flags.append("--verbose-performance")
            try:
                result = original(tosa, spec)
            except (Exception, SystemExit) as error:  # foreign code: any exception is possible
                if disk_full(error):
                    raise
                raise _tried_with_newest(tosa, spec.compiler_flags) from error
            blob = blob_of(result)
            graphs[blob] = bytes(tosa)
            estimates[blob] = read_estimate(Path(folder) / "output", "out", options)
        return result

    EthosUBackend._compile_tosa_flatbuffer = staticmethod(record)
    try:
        yield graphs, estimates
    finally:
        EthosUBackend._compile_tosa_flatbuffer = staticmethod(original)


def _tried_with_newest(tosa: bytes, flags: Sequence[str]) -> VelaFailed:
    try:
        newest = newest_vela()
        newest.compile(tosa, flags)
    except InfraError:  # no index, or a sandbox
        return VelaFailed("")
    except ExportError as error:
        return VelaFailed(error.message.splitlines()[0])
    return VelaFailed(f"Vela {newest.version} compiles this graph", newest.version)


def blob_of(compiled: VelaCompileResult | bytes) -> bytes:
    """Return the bytes of the delegate.

    They are all that ExecuTorch gives before its pull request 21893 (August 2026)."""
    return bytes(getattr(compiled, "processed_bytes", compiled))


def compile_graph(tosa: bytes, options: NpuOptions) -> bytes:
    """Compiles a graph with the installed Vela, as ExecuTorch does, to a blob.

    Raises ExportError when Vela refuses the graph, DiskError.
    """
    flags = list(compile_spec(options).compiler_flags)
    try:
        return blob_of(vela_compile(tosa, flags))
    except (Exception, SystemExit) as error:  # foreign code: any exception is possible
        if full := disk_full(error):
            raise DiskError("compiling a graph with Vela", full) from error
        raise ExportError(f"Vela does not compile the graph: {error}") from error


def to_cpu(
    module: torch.fx.GraphModule, example: Sample, lowering: CpuLowering
) -> EdgeProgramManager:
    return _to_edge_with(XnnpackPartitioner() if lowering.xnnpack else None, module, example)


def _to_edge_with(
    partitioner: Partitioner | None,
    module: torch.fx.GraphModule,
    example: Sample,
) -> EdgeProgramManager:
    return to_edge_transform_and_lower(
        torch.export.export(module, example, strict=False),
        partitioner=[] if partitioner is None else [partitioner],
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    )


def to_program(edge: EdgeProgramManager) -> ExecutorchProgramManager:
    return edge.to_executorch(config=ExecutorchBackendConfig(extract_delegate_segments=False))


def output_steps(
    module: torch.fx.GraphModule, outputs: Sequence[Sample]
) -> tuple[float | None, ...]:
    """Return the unit in which an output's difference is measured; None if it has no floats.

    For an output of a dequantise it is the scale. Otherwise it is the step of an int8 over the
    range of the output's values in a quantised module, else a few units in the last place of the
    output's largest value."""
    (node,) = (node for node in module.graph.nodes if node.op == "output")
    quantised = any(_is_dequantise(node) for node in module.graph.nodes)
    return tuple(
        float(leaf.args[1])
        if _is_dequantise(leaf)
        else _step([sample[n] for sample in outputs], quantised=quantised)
        for n, leaf in enumerate(pytree.tree_leaves(node.args[0]))
    )


def _is_dequantise(node: object) -> bool:
    return (
        isinstance(node, torch.fx.Node)
        and node.op == "call_function"
        and node.target is torch.ops.quantized_decomposed.dequantize_per_tensor.default
    )


def _step(values: Sequence[torch.Tensor], *, quantised: bool) -> float | None:
    if not values[0].is_floating_point():
        return None
    # the range of an int8 includes 0
    every = torch.cat([torch.zeros(1), *(value.flatten() for value in values)])
    low, high = float(every.min()), float(every.max())
    if quantised:
        return (high - low) / _STEPS_OF_INT8 or None
    return _ULPS * float(np.spacing(np.float32(max(abs(high), abs(low)))))
