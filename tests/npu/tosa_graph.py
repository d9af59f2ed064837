"""Writes TOSA graphs by hand, and compiles them with Vela: an operator costs milliseconds.

The graphs are of the kind that ExecuTorch 1.5.1 lowers to (``backends/arm/operators``): TOSA 1.0,
integers only, quantisation as RESCALE around the operators.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tosa_serializer as ts
from ethosu.vela import vela

from tests.npu.assembling import blob, tensors

Array = np.ndarray
BOOL, INT8, INT16, INT32, INT48 = (
    ts.DType.BOOL,
    ts.DType.INT8,
    ts.DType.INT16,
    ts.DType.INT32,
    ts.DType.INT48,
)
_NUMPY = {BOOL: np.bool_, INT8: np.int8, INT16: np.int16, INT32: np.int32}
LIMITS = {INT8: (-128, 127), INT16: (-32768, 32767)}
_SYSTEMS = {
    "u55": ("Ethos_U55_High_End_Embedded", "Shared_Sram"),
    "u65": ("Ethos_U65_High_End", "Sram_Only"),
    "u85": ("Ethos_U85_SYS_DRAM_Mid", "Sram_Only"),
}


@dataclass(frozen=True)
class Value:
    """A tensor of the graph."""

    name: str
    shape: tuple[int, ...]
    dtype: Any


def attributes(kind: str, **facts: Any) -> Any:
    result = ts.TosaSerializerAttribute()
    getattr(result, f"{kind}Attribute")(**facts)
    return result


class Graph:
    """One TOSA graph. ``wanted`` has the values of the inputs that may not be just any."""

    def __init__(self) -> None:
        self._graph = ts.TosaSerializer(
            "", targetMajor=1, targetMinor=0, targetPatch=0, targetDraft=False
        )
        self._count = 0
        self._in_main = True
        self.inputs: list[Value] = []
        self.wanted: dict[str, Array] = {}

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}_{self._count}"

    def input(self, shape: Sequence[int], dtype: Any, values: Array | None = None) -> Value:
        value = Value(self._name("input"), tuple(shape), dtype)
        if self._in_main:
            self.inputs.append(value)
        if values is not None:
            self.wanted[value.name] = values.astype(_NUMPY[dtype])
        self._graph.addInputTensor(ts.TosaSerializerTensor(value.name, list(shape), dtype))
        return value

    def const(self, values: Any, dtype: Any) -> Value:
        array = np.asarray(values)
        name = self._name("const")
        self._graph.addConst(list(array.shape), dtype, array.reshape(-1).tolist(), name=name)
        return Value(name, array.shape, dtype)

    def shape(self, dims: Sequence[int]) -> Value:
        name = self._name("shape")
        self._graph.addConst([len(dims)], ts.DType.SHAPE, list(dims), name=name)
        return Value(name, (len(dims),), ts.DType.SHAPE)

    def op(
        self, kind: str, inputs: Sequence[Value], shape: Sequence[int], dtype: Any, attr: Any
    ) -> Value:
        return self.ops(kind, inputs, [(shape, dtype)], attr)[0]

    def ops(
        self, kind: str, inputs: Sequence[Value], outputs: Sequence[tuple[Any, Any]], attr: Any
    ) -> list[Value]:
        """An operator with several results, each a shape and a type."""
        results = []
        for shape, dtype in outputs:
            name = self._graph.addIntermediate(list(shape), dtype).name
            results.append(Value(name, tuple(shape), dtype))
        names = [value.name for value in inputs]
        self._graph.addOperator(getattr(ts.Op, kind), names, [r.name for r in results], attr)
        return results

    def region(self, name: str) -> None:
        """What follows belongs to a branch or to a part of a loop."""
        self._in_main = False
        self._graph.startRegion(name)
        self._graph.currRegion.addBasicBlock(name)

    def output(self, value: Value) -> None:
        self._graph.addOutputTensor(
            self._graph.currRegion.currBasicBlock.getTensorByName(value.name)
        )

    def rescale(
        self,
        value: Value,
        dtype: Any,
        scales: Sequence[tuple[int, int]],
        zero_points: tuple[int, int] = (0, 0),
    ) -> Value:
        """``scales``: (multiplier, shift), one or one per channel of the last axis."""
        wide = value.dtype != INT48
        parts = (
            value,
            self.const([m for m, _ in scales], INT32 if wide else INT16),
            self.const([s for _, s in scales], INT8),
            self.const([zero_points[0]], value.dtype),
            self.const([zero_points[1]], dtype),
        )
        attr = attributes(
            "Rescale",
            scale32=wide,
            rounding_mode=ts.RoundingMode.SINGLE_ROUND,
            per_channel=len(scales) > 1,
            input_unsigned=False,
            output_unsigned=False,
        )
        return self.op("RESCALE", parts, value.shape, dtype, attr)

    def sample(self, generator: np.random.Generator) -> list[Array]:
        """One value for each input; 32-bit ones keep away from the ends of their type."""
        found = []
        for value in self.inputs:
            low, high = LIMITS.get(value.dtype, (-(1 << 20), 1 << 20))
            drawn = generator.integers(low, high + 1, value.shape).astype(_NUMPY[value.dtype])
            found.append(self.wanted.get(value.name, drawn))
        return found

    def serialise(self) -> bytes:
        result: bytes = self._graph.serialize()
        return result


def compile_tosa(tosa: bytes, target: str, options: Sequence[str] = ()) -> bytes:
    """The stream of ExecuTorch's delegate, from Vela's raw output."""
    system, mode = _SYSTEMS[target.split("-")[1]]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "g.tosa"
        source.write_bytes(tosa)
        arguments = [
            f"--accelerator-config={target}",
            "--config=Arm/vela.ini",
            "--output-format=raw",
            f"--system-config={system}",
            f"--memory-mode={mode}",
            f"--output-dir={folder}",
            *options,
            str(source),
        ]
        with contextlib.redirect_stdout(io.StringIO()):
            vela.main(arguments)
        with np.load(Path(folder) / "g_vela.npz", allow_pickle=False) as data:
            return blob(
                data["cmd_data"].tobytes(),
                weights=data["weight_data"].tobytes(),
                scratch=int(data["scratch_shape"][0]),
                inputs=_places(data, "input"),
                outputs=_places(data, "output"),
            )


def _places(data: Any, kind: str) -> bytes:
    columns = [data[f"{kind}_{part}"] for part in ("shape", "elem_size", "offset", "region")]
    return tensors(
        *(
            (tuple(int(d) for d in shape), int(size), int(offset), int(region))
            for shape, size, offset, region in zip(*columns, strict=True)
        )
    )
