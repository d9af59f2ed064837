"""A Program as ExecuTorch's BundledProgram (``.bpte``). Imports no torch before one is made.

ExecuTorch's own bundler stores every tensor in NCHW order, even when the method takes NHWC
(executorch/devtools/bundled_program/core.py, 1.5.1), so the tables are filled here, with the
bytes and dimension orders of the method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.export import cache, quiet
from harness.export.program import Program, TensorSpec

if TYPE_CHECKING:
    import executorch.devtools.bundled_program.schema as schema


def bundle(program: Program) -> Path:
    """The Program as a ``.bpte``: with its input sets and expected outputs inside.

    Made on first use, in the cached Program's own directory.
    """
    name = "program.bpte"
    with cache.locked(program.directory.name, wait=True):
        if not cache.has(program.directory, name):
            with quiet.captured():
                content = _serialised(program)
            cache.add(program.directory, name, content)
    return program.directory / name


@dataclass(frozen=True)
class _Bundle:
    """All that the serialiser asks of a BundledProgram."""

    tables: schema.BundledProgram

    def serialize_to_schema(self) -> schema.BundledProgram:
        return self.tables


def _serialised(program: Program) -> bytes:
    import executorch.devtools.bundled_program.schema as schema
    from executorch.devtools.bundled_program.serialize import (
        serialize_from_bundled_program_to_flatbuffer,
    )
    from executorch.devtools.bundled_program.version import BUNDLED_PROGRAM_SCHEMA_VERSION

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
    content: bytes = serialize_from_bundled_program_to_flatbuffer(_Bundle(tables))
    return content


def _values(
    program: Program, specs: Sequence[TensorSpec], files: Sequence[str]
) -> list[schema.Value]:
    import executorch.devtools.bundled_program.schema as schema
    from executorch.exir.scalar_type import ScalarType

    from harness.export.exported import DTYPES

    types = {ours: ScalarType[theirs] for theirs, ours in DTYPES.items()}
    return [
        schema.Value(
            val=schema.Tensor(
                scalar_type=types[spec.dtype],
                sizes=list(spec.shape),
                data=(program.directory / file).read_bytes(),
                dim_order=list(spec.dim_order),
            )
        )
        for spec, file in zip(specs, files, strict=True)
    ]
