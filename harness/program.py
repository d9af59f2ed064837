"""A Program: one exported model with inputs and expected outputs, on disk and as data.

Nothing here imports torch; a cached Program loads in milliseconds. Layout of a Program's
directory (``.hil/cache/programs/<key>``)::

    program.pte            the program
    set<k>/i<n>.bin        raw input n of set k, in *method* layout (NHWC where dim_order says so)
    set<k>/expected<n>.bin raw output n the oracle computed for set k, in method layout
    program.json           this description; written last, so its presence means "complete"
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # numpy takes longer to import than a warm run may take
    import numpy.typing as npt

DTYPE_BYTES = {
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "float32": 4,
    "float64": 8,
    "bool": 1,
}


@dataclass(frozen=True)
class TensorSpec:
    """One method input or output.

    ``shape`` is logical (NCHW for an image); ``dim_order`` lists dimensions from outermost to
    innermost in memory. ``scale`` and ``zero_point`` are those of the quantiser next to the
    boundary (the model's first quantise, last dequantise), None when there is none; an output's
    ``scale`` is the size of one LSB when it is judged.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    dim_order: tuple[int, ...]
    scale: float | None = None
    zero_point: int | None = None

    @property
    def nbytes(self) -> int:
        return self.numel * DTYPE_BYTES[self.dtype]

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    def check_size(self, raw: bytes) -> None:
        """Raises ValueError when ``raw`` is not exactly one such tensor."""
        if len(raw) != self.nbytes:
            raise ValueError(f"{self.name}: expected {self.nbytes} bytes, got {len(raw)}")

    def decode(self, raw: bytes) -> npt.NDArray[Any]:
        """Raw bytes in memory order to an array in logical order.

        Raises ValueError when the number of bytes is wrong.
        """
        import numpy as np

        self.check_size(raw)
        physical = np.frombuffer(raw, np.dtype(self.dtype)).reshape(
            [self.shape[d] for d in self.dim_order]
        )
        return physical.transpose(np.argsort(self.dim_order)) if self.shape else physical


@dataclass(frozen=True)
class InputSet:
    """File names relative to the Program's directory."""

    inputs: tuple[str, ...]
    expected: tuple[str, ...]


@dataclass(frozen=True)
class Program:
    directory: Path
    model: str
    compile_target: str  # the exporter's name: "cortex-m55", "ethos-u55-128"
    pte: str  # file name in the directory
    pte_sha256: str
    oracle: str  # who computed the expected outputs
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    sets: tuple[InputSet, ...]
    operators: tuple[str, ...]  # "namespace::name.overload"
    planned_buffers: tuple[int, ...]  # bytes by mem_id, from index 1
    versions: dict[str, str]
    seed: int

    @property
    def pte_path(self) -> Path:
        return self.directory / self.pte

    def save(self) -> None:
        """Write ``program.json`` atomically; everything it names must already be there."""
        fields = asdict(self)
        del fields["directory"]
        text = json.dumps(fields, indent=1, sort_keys=True) + "\n"
        temporary = self.directory / f".program.json.{os.getpid()}"
        temporary.write_text(text)
        temporary.replace(self.directory / "program.json")


def load_program(directory: Path) -> Program | None:
    """The Program in a directory; None when there is no complete one."""
    try:
        fields = json.loads((directory / "program.json").read_text())
    except (FileNotFoundError, NotADirectoryError):
        return None

    def spec(item: dict[str, Any]) -> TensorSpec:
        return TensorSpec(
            **{**item, "shape": tuple(item["shape"]), "dim_order": tuple(item["dim_order"])}
        )

    return Program(
        **{
            **fields,
            "directory": directory,
            "inputs": tuple(map(spec, fields["inputs"])),
            "outputs": tuple(map(spec, fields["outputs"])),
            "sets": tuple(
                InputSet(tuple(s["inputs"]), tuple(s["expected"])) for s in fields["sets"]
            ),
            "operators": tuple(fields["operators"]),
            "planned_buffers": tuple(fields["planned_buffers"]),
        }
    )
