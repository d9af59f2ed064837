"""Reads the tables of a ``.pte``: its methods, and the operators and delegates they call.

It also cuts a program after one of its instructions; the output is what that instruction computed.
Two numbers are changed in place: how many instructions the method's chain has, and which value is
its output. Everything else stays, above all the memory plan. Up to the cut, both runners do what
they do in the whole program.

Layout: ExecuTorch 1.5.1, ``schema/program.fbs`` and ``schema/scalar_type.fbs``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

from harness.core.errors import MalformedFile
from harness.formats.flatbuffer import FlatBuffer, Table, Vector
from harness.formats.schema import PTE, load_schema
from harness.system.files import read_regular

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


@dataclass(frozen=True)
class Instruction:
    """An instruction of a chain, or its end.

    ``number``: in the chain, from 0. ``operator``: the program's name for it, or the delegate's
    backend. ``values`` (those it writes) and ``arguments`` are indices into the plan's values; a
    move or a jump has none."""

    number: int
    operator: str
    values: tuple[int, ...]
    arguments: tuple[int, ...] = ()

    @property
    def is_delegate(self) -> bool:
        return self.operator.startswith("delegate ")


class CuttableProgram:
    """The bytes of a ``.pte`` and where its method's chain and outputs are.

    ``delegate_outputs``: how many outputs each call of a delegate has, in order. The file does not
    say; without it, only the last argument of a call is known to be written.

    Raises MalformedFile unless it is a program of one method with one chain, and OSError.
    """

    def __init__(self, path: Path, delegate_outputs: Sequence[int] = ()) -> None:
        self._data = read_regular(path)
        self._delegate_outputs = tuple(delegate_outputs)
        self._plan = _single(plans_of(self._data), "execution plan")
        self.values = self._plan.items("values")
        self.inputs = tuple(self._plan.items("inputs"))
        self.outputs = tuple(self._plan.items("outputs"))
        self._chain = _single(self._plan.items("chains"), "chain")

    def instructions(self) -> tuple[Instruction, ...]:
        names, calls = operator_names(self._plan), enumerate(calls_of(self._plan))
        outputs = iter(self._delegate_outputs)
        return tuple(self._described(number, call, names, outputs) for number, call in calls)

    def flow(self) -> Iterator[tuple[Instruction, dict[int, int]]]:
        """Yield each instruction with its sources, and one more that has the outputs.

        A source is, for each tensor it reads, the value last written to that memory (for a view,
        another value; scratch of another type or size does not count)."""
        slots = {
            value: (place_of(tensor), tensor.get("scalar_type"), prod(tensor.items("sizes")))
            for value, tensor in self.tensors(range(len(self.values))).items()
        }
        stored = {slots[value][0]: value for value in self.inputs if value in slots}
        steps = self.instructions()
        for step in (*steps, Instruction(len(steps), "", (), self.outputs)):
            read = [value for value in self.tensors(step.arguments) if value not in step.values]
            sources = ((value, stored.get(slots[value][0])) for value in read)
            yield step, {v: s for v, s in sources if s is not None and slots[v] == slots[s]}
            unknown = step.is_delegate and not self._delegate_outputs
            written = read if unknown else []
            stored |= {slots[v][0]: v for v in (*written, *step.values) if slots[v][0] is not None}

    def cut(self, after: Instruction, value: int) -> bytes:
        """Return the program cut after an instruction; its only output is ``value``."""
        outputs, instructions = self._plan.get("outputs"), self._chain.get("instructions")
        if not isinstance(outputs, Vector) or not len(outputs):
            raise MalformedFile("the method has no outputs", 0)
        data = bytearray(self._data)
        struct.pack_into("<I", data, instructions.data - 4, after.number + 1)
        struct.pack_into("<I", data, outputs.data - 4, 1)
        struct.pack_into("<i", data, outputs.data, value)
        return bytes(data)

    def _described(
        self, number: int, call: Table | None, names: Sequence[str], outputs: Iterator[int]
    ) -> Instruction:
        """Describe an instruction by what it writes.

        That is the last argument of an out-variant, and the last ones of a delegate; several
        results of an operator are a list of tensors."""
        written = 1
        if call is None:
            return Instruction(number, "", ())
        if call.name == "KernelCall":
            name = names[call.get("op_index")]
        elif call.name == "DelegateCall":
            name = f"delegate {self._plan.items('delegates')[call.get('delegate_index')].get('id')}"
            written = next(outputs, 1)
        else:
            return Instruction(number, call.name, ())
        arguments = tuple(call.items("args"))
        return Instruction(number, name, tuple(self.tensors(arguments[-written:])), arguments)

    def tensors(self, values: Sequence[int]) -> dict[int, Table]:
        """Return the tensors among ``values``, and in tensor lists among them, by index."""
        found: dict[int, Table] = {}
        for index in values:
            value = self.values[index].get("val") if index >= 0 else None
            if value is not None and value.name in ("TensorList", "OptionalTensorList"):
                found |= self.tensors([*value.items("items")])
            elif value is not None and value.name == "Tensor":
                found[index] = value
        return found


def _single(items: Iterable[Table], name: str) -> Table:
    tables = list(items)
    if len(tables) != 1:
        raise MalformedFile(f"it has {len(tables)} {name}s, and one is needed", 0)
    return tables[0]
