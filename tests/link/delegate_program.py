"""Programs that call Ethos-U delegates and nothing else, and what their tensors need copied.

The Vela streams are the recorded ones of tests/npu, so no exporter is needed; flatc makes the
program around them from ExecuTorch's own schema.
"""

from __future__ import annotations

import json
import math
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.formats.flatbuffer import FlatBuffer, Table
from harness.formats.schema import PTE, load_schema
from harness.npu.blob import IoTensor, read_blob
from harness.system.paths import executorch_package

_TYPES = {1: "CHAR", 2: "SHORT", 4: "INT"}
_SIZES = {0: 1, 1: 1, 2: 2, 3: 4, 11: 1}  # of ScalarType, in bytes
_ALIGNMENT = 16


@dataclass(frozen=True)
class Copies:
    """What one execution of a delegate moves between its tensors and the NPU's scratch."""

    calls: int
    bytes: int


@dataclass(frozen=True)
class Step:
    """A delegate with tensors of its own. ``kept`` is how many elements of a row of the first
    output the program takes; None for all, which is the rule."""

    blob: bytes
    kept: int | None = None

    def outputs(self) -> list[list[int]]:
        shapes = [list(tensor.shape) for tensor in read_blob(self.blob).outputs]
        if self.kept is not None:
            shapes[0][-1] = self.kept
        return shapes


def delegate_program(steps: Sequence[Step]) -> bytes:
    """A ``.pte`` whose one method calls the delegates one after the other."""
    values: list[Any] = []
    inputs, outputs, calls, end = [], [], [], 0
    for number, step in enumerate(steps):
        blob = read_blob(step.blob)
        shapes = [*(list(t.shape) for t in blob.inputs), *step.outputs()]
        args = []
        for tensor, sizes in zip((*blob.inputs, *blob.outputs), shapes, strict=True):
            args.append(len(values))
            values.append(_tensor(tensor, sizes, end))
            end += -(-math.prod(sizes) * tensor.element_size // _ALIGNMENT) * _ALIGNMENT
        inputs += args[: len(blob.inputs)]
        outputs += args[len(blob.inputs) :]
        calls.append(
            {
                "instr_args_type": "DelegateCall",
                "instr_args": {"delegate_index": number, "args": args},
            }
        )
    plan = {
        "name": "forward",
        "values": values,
        "inputs": inputs,
        "outputs": outputs,
        "chains": [{"inputs": [], "outputs": [], "instructions": calls}],
        "operators": [],
        "delegates": [
            {
                "id": "EthosUBackend",
                "processed": {"location": "INLINE", "index": n},
                "compile_specs": [],
            }
            for n in range(len(steps))
        ],
        "non_const_buffer_sizes": [0, end],
    }
    blobs = [{"data": list(step.blob)} for step in steps]
    return _flatbuffer(
        {
            "version": 0,
            "execution_plan": [plan],
            "constant_buffer": [{}],
            "backend_delegate_data": blobs,
            "segments": [],
        }
    )


def _tensor(tensor: IoTensor, sizes: Sequence[int], offset: int) -> dict[str, Any]:
    return {
        "val_type": "Tensor",
        "val": {
            "scalar_type": _TYPES[tensor.element_size],
            "sizes": list(sizes),
            "dim_order": list(range(len(sizes))),
            "data_buffer_idx": 0,
            "shape_dynamism": "STATIC",
            "allocation_info": {"memory_id": 1, "memory_offset_low": offset},
        },
    }


def _flatbuffer(program: dict[str, Any]) -> bytes:
    schema = executorch_package() / "schema" / "program.fbs"
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "program.json"
        source.write_text(json.dumps(program))
        subprocess.run(["flatc", "-b", "-o", scratch, str(schema), str(source)], check=True)
        return (Path(scratch) / "program.pte").read_bytes()


def needed_copies(pte: bytes) -> list[Copies]:
    """For every call of a delegate, from the program's tensors and the delegate's stream alone.

    One copy for each tensor; an output whose rows are padded in the scratch is copied row by row
    (EthosUBackend in ExecuTorch's backends/arm/runtime).
    """
    root = FlatBuffer(memoryview(pte), load_schema(PTE), len(pte)).root()
    data = [bytes(each.get("data").raw()) for each in root.items("backend_delegate_data")]
    plan: Table = next(iter(root.items("execution_plan")))
    blobs = [data[d.get("processed").get("index")] for d in plan.items("delegates")]
    values = list(plan.items("values"))
    found = []
    for instruction in next(iter(plan.items("chains"))).items("instructions"):
        call = instruction.get("instr_args")
        if call.name.endswith("DelegateCall"):
            tensors = [values[i].get("val") for i in call.get("args")]
            found.append(_copies(tensors, blobs[call.get("delegate_index")]))
    return found


def _copies(tensors: Sequence[Table], blob: bytes) -> Copies:
    stream = read_blob(blob)
    sizes = [_bytes(tensor) for tensor in tensors]
    calls = sum(size > 0 for size in sizes[: len(stream.inputs)])
    for size, tensor in zip(sizes[len(stream.inputs) :], stream.outputs, strict=True):
        rows = tensor.size // (tensor.shape[-1] * tensor.element_size)
        calls += (1 if size == tensor.size else rows) if size else 0
    return Copies(calls, sum(sizes))


def _bytes(tensor: Table) -> int:
    return math.prod(tensor.get("sizes") or ()) * _SIZES[tensor.get("scalar_type")]
