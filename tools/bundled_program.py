"""Writes Programs as ExecuTorch's BundledPrograms (``.bpte``), such as that of Zephyr's sample:
``python -m tools.bundled_program FOLDER DIRECTORY...``, with the name of each one's model.

ExecuTorch's own bundler stores every tensor in NCHW order, even when the method takes NHWC
(executorch/devtools/bundled_program/core.py, 1.5.1), so the tables are filled here, with the
bytes and dimension orders of the method.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import executorch.devtools.bundled_program.schema as schema
from executorch.devtools.bundled_program.serialize import (
    serialize_from_bundled_program_to_flatbuffer,
)
from executorch.devtools.bundled_program.version import BUNDLED_PROGRAM_SCHEMA_VERSION
from executorch.exir.scalar_type import ScalarType

from harness.export.program import DTYPES, Program, TensorSpec, load_program

_TYPES = {ours: ScalarType[theirs] for theirs, ours in DTYPES.items()}


@dataclass(frozen=True)
class _Bundle:
    """What the serialiser calls on a BundledProgram."""

    tables: schema.BundledProgram

    def serialize_to_schema(self) -> schema.BundledProgram:
        return self.tables


def bundled(program: Program) -> bytes:
    """The program with its input sets and expected outputs."""
    cases = [
        schema.BundledMethodTestCase(
            inputs=_values(program, program.inputs, input_set.inputs),
            expected_outputs=_values(program, program.outputs, input_set.expected),
        )
        for input_set in program.sets
    ]
    tables = schema.BundledProgram(
        version=BUNDLED_PROGRAM_SCHEMA_VERSION,
        method_test_suites=[schema.BundledMethodTestSuite("forward", cases)],
        program=program.pte_path.read_bytes(),
    )
    return bytes(serialize_from_bundled_program_to_flatbuffer(_Bundle(tables)))


def _values(
    program: Program, specs: Sequence[TensorSpec], files: Sequence[str]
) -> list[schema.Value]:
    return [
        schema.Value(
            val=schema.Tensor(
                scalar_type=_TYPES[spec.dtype],
                sizes=list(spec.shape),
                data=(program.directory / file).read_bytes(),
                dim_order=list(spec.dim_order),
            )
        )
        for spec, file in zip(specs, files, strict=True)
    ]


def main(folder: str, *directories: str) -> None:
    for directory in directories:
        program = load_program(Path(directory))
        assert program is not None, f"no program in {directory}"
        (Path(folder) / f"{program.model}.bpte").write_bytes(bundled(program))


if __name__ == "__main__":
    main(*sys.argv[1:])
