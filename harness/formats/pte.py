"""Reads the tables of a ``.pte``: its methods, and the operators and delegates they call.

Layout: ExecuTorch 1.5.1, ``schema/program.fbs`` and ``schema/scalar_type.fbs``.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.formats.flatbuffer import FlatBuffer, Table
from harness.formats.schema import PTE, load_schema

# ScalarType: bytes of an element, and its usual name.
SCALAR_TYPES = {
    "BYTE": (1, "uint8"),
    "CHAR": (1, "int8"),
    "SHORT": (2, "int16"),
    "INT": (4, "int32"),
    "LONG": (8, "int64"),
    "HALF": (2, "float16"),
    "FLOAT": (4, "float32"),
    "DOUBLE": (8, "float64"),
    "BOOL": (1, "bool"),
    "QINT32": (4, "qint32"),
    "BITS16": (2, "bits16"),
    "BFLOAT16": (2, "bfloat16"),
    "UINT16": (2, "uint16"),
    "UINT32": (4, "uint32"),
    "UINT64": (8, "uint64"),
}


def plans_of(content: bytes) -> Sequence[Table]:
    """Return the execution plans. Raises MalformedFile; reading the plans may raise it too."""
    program = FlatBuffer(memoryview(content), load_schema(PTE), len(content)).root()
    return list(program.items("execution_plan"))


def operator_names(plan: Table) -> list[str]:
    """Return the full name of each entry of ``operators``: "namespace::name.overload"."""
    names = []
    for operator in plan.items("operators"):
        overload = operator.get("overload")
        names.append((operator.get("name") or "") + (f".{overload}" if overload else ""))
    return names


def calls_of(plan: Table) -> list[Table | None]:
    """Return each instruction's KernelCall, DelegateCall, move or jump; None if empty."""
    chains = plan.items("chains")
    return [each.get("instr_args") for chain in chains for each in chain.items("instructions")]


def element_of(tensor: Table) -> tuple[int, str]:
    """Bytes of an element, and its type's name; an unknown type counts 8 bytes, the most of all."""
    kind = tensor.buffer.schema.enums["ScalarType"].get(tensor.get("scalar_type"), "?")
    return SCALAR_TYPES.get(kind, (8, kind.lower()))


def place_of(tensor: Table) -> tuple[int, int, int] | None:
    """Buffer and offset in planned memory; None for a constant and an unplanned tensor."""
    allocation = tensor.get("allocation_info")
    if allocation is None:
        return None
    low, high = allocation.get("memory_offset_low"), allocation.get("memory_offset_high")
    return allocation.get("memory_id"), low, high
