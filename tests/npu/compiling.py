"""Compiles modules for an Ethos-U and asks the TOSA reference model for the right answer.

One compilation gives, for each delegate, the TOSA graph that Vela was given and the stream
that came out; the same graph can be compiled again for another NPU size or memory mode.
"""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tosa_reference_model
from tosa.DType import DType
from tosa.TosaGraph import TosaGraph

from tests.late import Late

torch = Late("torch")
exir = Late("executorch.exir")
arm_vela = Late("executorch.backends.arm.arm_vela")
ethosu = Late("executorch.backends.arm.ethosu")
backend = Late("executorch.backends.arm.ethosu.backend")
arm_quantizer = Late("executorch.backends.arm.quantizer.arm_quantizer")
quantize_pt2e = Late("torchao.quantization.pt2e.quantize_pt2e")

Array = np.ndarray
TOSA_TYPES = {
    DType.BOOL: np.bool_,
    DType.INT8: np.int8,
    DType.INT16: np.int16,
    DType.INT32: np.int32,
}


@dataclass(frozen=True)
class Delegate:
    """What one Ethos-U delegate was compiled from and to."""

    tosa: bytes
    blob: bytes
    target: str


def quantise(
    module: torch.nn.Module,
    example: Sequence[torch.Tensor],
    calibration: Sequence[Sequence[torch.Tensor]],
    spec: ethosu.EthosUCompileSpec,
    bits: int = 8,
    per_channel: bool = True,
) -> torch.nn.Module:
    config = (
        arm_quantizer.get_symmetric_quantization_config(is_per_channel=per_channel)
        if bits == 8
        else arm_quantizer.get_symmetric_a16w8_quantization_config(is_per_channel=per_channel)
    )
    quantizer = arm_quantizer.EthosUQuantizer(spec)
    quantizer.set_global(config)
    exported = torch.export.export(module.eval(), tuple(example), strict=False)
    prepared = quantize_pt2e.prepare_pt2e(exported.module(check_guards=False), quantizer)
    with torch.no_grad():
        for sample in calibration:
            prepared(*sample)
    return quantize_pt2e.convert_pt2e(prepared)


def compile_module(
    module: torch.nn.Module,
    example: Sequence[torch.Tensor],
    target: str,
    *,
    memory_mode: str | None = None,
    bits: int = 8,
    per_channel: bool = True,
    calibration: Sequence[Sequence[torch.Tensor]] | None = None,
    quantised: bool = True,
) -> list[Delegate]:
    """Every Ethos-U delegate of the lowered module, in order."""
    with _quiet():
        spec = ethosu.EthosUCompileSpec(target, memory_mode=memory_mode)
        ready = module.eval()
        if quantised:
            ready = quantise(module, example, calibration or [example], spec, bits, per_channel)
        exported = torch.export.export(ready, tuple(example), strict=False)
        with _recorded() as graphs:
            exir.to_edge_transform_and_lower(exported, partitioner=[ethosu.EthosUPartitioner(spec)])
    return [Delegate(tosa, blob, target) for tosa, blob in graphs]


def compile_case(case: Any, target: str) -> list[Delegate]:
    """A case of ``families``."""
    return compile_module(
        case.module,
        case.inputs,
        target,
        bits=case.bits,
        per_channel=case.per_channel,
        quantised=case.quantised,
    )


def recompile(tosa: bytes, target: str, memory_mode: str | None = None) -> Delegate:
    """The same TOSA graph for another NPU size or memory mode."""
    with _quiet():
        spec = ethosu.EthosUCompileSpec(target, memory_mode=memory_mode)
        made = arm_vela.vela_compile(tosa, list(spec.compiler_flags))
        return Delegate(tosa, made.processed_bytes, target)


def input_shapes(tosa: bytes) -> list[tuple[tuple[int, ...], type]]:
    block = TosaGraph.GetRootAs(tosa, 0).Regions(0).Blocks(0)
    tensors = {block.Tensors(i).Name(): block.Tensors(i) for i in range(block.TensorsLength())}
    found = []
    for index in range(block.InputsLength()):
        tensor = tensors[block.Inputs(index)]
        shape = tuple(tensor.Shape(i) for i in range(tensor.ShapeLength()))
        found.append((shape, TOSA_TYPES[tensor.Type()]))
    return found


def random_inputs(tosa: bytes, generator: np.random.Generator) -> list[Array]:
    return [_random(shape, kind, generator) for shape, kind in input_shapes(tosa)]


def _random(shape: tuple[int, ...], kind: type, generator: np.random.Generator) -> Array:
    if kind is np.bool_:
        return generator.random(shape) < 0.5
    limits = np.iinfo(kind)
    high = min(limits.max, 1 << 20)
    low = max(limits.min, -(1 << 20))
    return generator.integers(low, high, shape, endpoint=True).astype(kind)


def reference(tosa: bytes, inputs: Sequence[Array]) -> list[Array]:
    outputs, status = tosa_reference_model.run(
        tosa, list(inputs), verbosity="NONE", initialize_variable_tensor_from_numpy=True
    )
    assert status == tosa_reference_model.GraphStatus.TOSA_VALID
    return [np.asarray(o) for o in outputs]


@contextlib.contextmanager
def _recorded() -> Iterator[list[tuple[bytes, bytes]]]:
    graphs: list[tuple[bytes, bytes]] = []
    original = backend.EthosUBackend._compile_tosa_flatbuffer

    def record(tosa_flatbuffer: bytes, compile_spec: ethosu.EthosUCompileSpec) -> object:
        result = original(tosa_flatbuffer, compile_spec)
        graphs.append((bytes(tosa_flatbuffer), result.processed_bytes))
        return result

    backend.EthosUBackend._compile_tosa_flatbuffer = staticmethod(record)
    try:
        yield graphs
    finally:
        backend.EthosUBackend._compile_tosa_flatbuffer = staticmethod(original)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(logging.NOTSET)
