"""A ``.pte`` of one delegate, without an export: whatever Vela makes of a TOSA graph, run whole."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from harness.system import toolchain
from harness.system.paths import executorch_package

Array = np.ndarray[Any, Any]
_TYPES = {"uint8": "BYTE", "int8": "CHAR", "int16": "SHORT", "int32": "INT", "bool": "BOOL"}
_ALIGNMENT = 16


@dataclass
class _Plan:
    """Every tensor in a place of its own, in the one planned buffer."""

    values: list[dict[str, Any]] = field(default_factory=list)
    end: int = 0

    def add(self, tensor: Array) -> int:
        place = {"memory_id": 1, "memory_offset_low": self.end, "memory_offset_high": 0}
        self.end += -(-max(tensor.nbytes, 1) // _ALIGNMENT) * _ALIGNMENT
        value = {
            "scalar_type": _TYPES[str(tensor.dtype)],
            "sizes": list(tensor.shape),
            "dim_order": list(range(tensor.ndim)),
            "allocation_info": place,
        }
        self.values.append({"val_type": "Tensor", "val": value})
        return len(self.values) - 1


def program_of(
    blob: bytes,
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    specs: Mapping[str, bytes] | None = None,
) -> bytes:
    """``inputs`` and ``outputs``: tensors of the shapes and types that the delegate has; ``specs``:
    the delegate's compile specs."""
    said = [{"key": key, "value": list(value)} for key, value in (specs or {}).items()]
    processed = {"location": "INLINE", "index": 0}
    plan = _Plan()
    going = [plan.add(tensor) for tensor in inputs]
    coming = [plan.add(tensor) for tensor in outputs]
    call = {"delegate_index": 0, "args": going + coming}
    method = {
        "name": "forward",
        "values": plan.values,
        "inputs": going,
        "outputs": coming,
        "chains": [{"instructions": [{"instr_args_type": "DelegateCall", "instr_args": call}]}],
        "operators": [],
        "delegates": [{"id": "EthosUBackend", "processed": processed, "compile_specs": said}],
        "non_const_buffer_sizes": [0, plan.end],
    }
    program = {
        "version": 0,
        "execution_plan": [method],
        "constant_segment": {"segment_index": 0, "offsets": [0]},
        "backend_delegate_data": [{"data": list(blob)}],
    }
    return _serialised(program)


def _serialised(program: dict[str, Any]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "program.json"
        text.write_text(json.dumps(program))
        schema = executorch_package() / "schema" / "program.fbs"
        subprocess.run(
            [str(toolchain.locate("flatc")), "--binary", "-o", folder, schema, text],
            check=True,
        )
        (made,) = (path for path in Path(folder).iterdir() if path != text)
        return made.read_bytes()
