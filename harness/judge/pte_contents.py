"""Reads what a ``.pte`` contains (``ProgramContents``).

Layout of the tables: ``schema/program.fbs`` of ExecuTorch 1.5.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.formats.damage import DamagedFile
from harness.formats.flatbuffer import FlatBuffer, Table
from harness.formats.schema import PTE, load_schema
from harness.judge.npu_contents import ETHOS_U, Operator, Value, digest_of, npu_operators
from harness.judge.program_contents import ProgramContents
from harness.judge.program_difference import ProgramDifference, difference
from harness.size.program_tables import SCALAR_TYPES
from harness.size.pte import read_header, segments_of

_MOST_ITEMS = 8  # of a list that is kept as it is; a longer one is a digest


def difference_from(before: ProgramContents | None, pte: Path) -> ProgramDifference:
    """What a ``.pte`` is against what was kept of another one, of which little may be known."""
    if before is None:
        return ProgramDifference(other=("the accepted run kept nothing of its program to compare",))
    try:
        return difference(before, contents_of(pte))
    except DamagedFile as error:
        return ProgramDifference(other=(error.message,))


def contents_of(pte: Path) -> ProgramContents:
    """Raises DamagedFile for what is no program, OSError, and ToolMissing without the wheel, which
    has the schema."""
    try:
        return _Reader(memoryview(pte.read_bytes())).read()
    except IndexError as error:  # a number of something that the program does not have
        raise DamagedFile(f"{pte} contradicts itself: {error}", 0) from error


class _Reader:
    def __init__(self, view: memoryview) -> None:
        schema = load_schema(PTE)
        header = read_header(view, schema)
        self._view = view
        self._program = FlatBuffer(view, schema, header.flatbuffer).root()
        self._scalar_types = schema.enums["ScalarType"]
        self._locations = schema.enums["DataLocation"]
        self._segments = segments_of(self._program, header.base, len(view))
        self._named = {
            item.get("key") or "": self._segment(item.get("segment_index"))
            for item in self._program.items("named_data")
        }

    def read(self) -> ProgramContents:
        operators: list[Operator] = []
        memory: list[int] = []
        wiring: list[object] = []
        placement: list[object] = []
        for plan in self._program.items("execution_plan"):
            numbers: dict[int, int] = {}  # of values, in the order in which they are met
            values = [value.get("val") for value in plan.items("values")]
            for call, arguments in self._calls(plan):
                operators += self._operators(plan, call, arguments, values)
                wiring.append([numbers.setdefault(a, len(numbers)) for a in arguments])
            ends = [*plan.items("inputs"), *plan.items("outputs")]
            wiring.append([numbers.setdefault(index, len(numbers)) for index in ends])
            placement.append([self._place(values[index]) for index in numbers])
            memory += plan.items("non_const_buffer_sizes")
        shared = sorted((key, digest_of(raw)) for key, raw in self._named.items())
        return ProgramContents(
            tuple(operators),
            tuple(memory),
            digest_of(wiring),
            digest_of(placement),
            digest_of(shared) if shared else "",
        )

    def _calls(self, plan: Table) -> Iterator[tuple[Table, list[int]]]:
        for chain in plan.items("chains"):
            for instruction in chain.items("instructions"):
                call = instruction.get("instr_args")
                if isinstance(call, Table):
                    yield call, _arguments(call)

    def _operators(
        self, plan: Table, call: Table, arguments: Iterable[int], values: list[Table | None]
    ) -> list[Operator]:
        """One, and behind a delegate for an NPU those of its command stream."""
        described = tuple(self._described(values[index], values) for index in arguments)
        if call.name == "KernelCall":
            operator = plan.items("operators")[call.get("op_index")]
            overload = operator.get("overload")
            name = (operator.get("name") or "") + (f".{overload}" if overload else "")
            return [(name, *described)]
        if call.name != "DelegateCall":
            return [(call.name, *described)]
        delegate = plan.items("delegates")[call.get("delegate_index")]
        backend, blob = delegate.get("id") or "", self._blob(delegate)
        data = digest_of(blob)
        inside: tuple[Operator, ...] = ()
        if backend == ETHOS_U:
            named = {key: bytes(raw) for key, raw in self._named.items()}
            data, inside = npu_operators(bytes(blob), named)
        specs = [
            (s.get("key"), bytes(s.get("value").raw())) for s in delegate.items("compile_specs")
        ]
        return [(f"delegate {backend}", digest_of(specs), data, *described), *inside]

    def _described(self, value: Table | None, values: list[Table | None]) -> Value:
        if value is None or value.name == "Null":
            return None
        if value.name == "Tensor":
            return self._tensor(value)
        if value.name in ("Int", "Bool", "String"):
            found: Value = value.get(f"{value.name.lower()}_val")
            return found
        if value.name == "Double":
            number = float(value.get("double_val"))
            return number if math.isfinite(number) else str(number)  # JSON has no infinity
        items = list(value.items("items"))
        if value.name not in ("DoubleList", "BoolList"):  # the others list numbers of values
            items = [None if i < 0 else self._described(values[i], values) for i in items]
        if len(items) > _MOST_ITEMS:
            return f"{len(items)} values {digest_of(items)}"
        return repr(items)

    def _tensor(self, tensor: Table) -> str:
        name = self._scalar_types.get(tensor.get("scalar_type"), "")
        width, dtype = SCALAR_TYPES.get(name, (0, name))
        sizes, order = list(tensor.items("sizes")), list(tensor.items("dim_order"))
        text = f"{dtype}[{','.join(map(str, sizes))}]"
        if order != sorted(order):
            text += f" in order {','.join(map(str, order))}"
        content = self._constant(tensor, math.prod(sizes) * width)
        return text if content is None else f"{text} {digest_of(content)}"

    def _constant(self, tensor: Table, size: int) -> memoryview | None:
        """The bytes that a tensor has from the start; None for one that has none in this file."""
        index = tensor.get("data_buffer_idx")
        if index == 0:
            return None
        extra = tensor.get("extra_tensor_info")
        if extra is not None and extra.get("location"):
            return None  # in a .ptd, by its name
        table = self._program.get("constant_segment")
        if tensor.get("allocation_info") is not None:
            which = extra.get("mutable_data_segments_idx") if extra else 0
            table = self._program.items("mutable_data_segments")[which]
        if table is None or not len(table.items("offsets")):
            storage = self._program.items("constant_buffer")[index].get("storage")
            return None if storage is None else storage.raw()
        start = table.items("offsets")[index]
        return self._segment(table.get("segment_index"))[start : start + size]

    def _segment(self, index: int) -> memoryview:
        segment = self._segments[index]
        return self._view[segment.start : segment.end]

    def _blob(self, delegate: Table) -> memoryview:
        where = delegate.get("processed")
        if where is None:
            return memoryview(b"")
        if self._locations.get(where.get("location")) != "INLINE":
            return self._segment(where.get("index"))
        data = self._program.items("backend_delegate_data")[where.get("index")].get("data")
        return memoryview(b"") if data is None else data.raw()

    def _place(self, value: Table | None) -> object:
        where = None if value is None or value.name != "Tensor" else value.get("allocation_info")
        if where is None:
            return None
        parts = ("memory_id", "memory_offset_low", "memory_offset_high")
        return [where.get(part) for part in parts]


def _arguments(call: Table) -> list[int]:
    """The values that an instruction names, in order."""
    if call.name in ("KernelCall", "DelegateCall"):
        found = list(call.items("args"))
        # a kernel's result is there twice: as the argument that it writes, and as what it returns
        return found[:-1] if call.name == "KernelCall" and found[-2:-1] == found[-1:] else found
    fields = {"MoveCall": ("move_from", "move_to"), "FreeCall": ("value_index",)}
    return [call.get(name) for name in fields.get(call.name, ("cond_value_index",))]
