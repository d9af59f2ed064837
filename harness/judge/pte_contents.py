"""Reads what a ``.pte`` contains (``ProgramContents``), command streams of an Ethos-U included.

Layout of the tables: ``schema/program.fbs`` of ExecuTorch 1.5.1. An operation of a command stream
is its name and ``npu_parts``: what a quantiser decides (zero points and scales) as numbers, weights
and the scales of channels as digests of their bytes, and two digests of the other registers: how it
computes, and where in memory. Registers: ``harness.npu.stream``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from harness.core.errors import MalformedFile
from harness.core.tables import read_table
from harness.formats.flatbuffer import FlatBuffer, Table
from harness.formats.pte import calls_of, element_of, operator_names, place_of, plans_of
from harness.formats.schema import PTE, load_schema
from harness.judge.program_contents import (
    Operator,
    ProgramContents,
    ProgramDifference,
    Value,
    difference,
    digest_of,
)
from harness.npu.blob import WEIGHTS, Actions, Blob, read_actions, read_blob
from harness.npu.errors import EthosUError
from harness.npu.stream import RegisterState, register_set, walk
from harness.size.pte import read_header, segments_of
from harness.system.files import read_regular

ETHOS_U: Final = "EthosUBackend"
_MOST_ITEMS = 8  # of a list that is kept as it is; a longer one is a digest
_MOST_OPERATIONS = 1000  # of a stream; of a longer one only digests are kept


def difference_from(before: ProgramContents | None, pte: Path) -> ProgramDifference:
    """How a ``.pte`` differs from the kept contents of another one; None: no contents were kept."""
    if before is None:
        return ProgramDifference(other=("the accepted run kept nothing of its program to compare",))
    try:
        return difference(before, contents_of(pte))
    except MalformedFile as error:
        return ProgramDifference(other=(error.message,))


def contents_of(pte: Path) -> ProgramContents:
    """Return the contents of a program.

    Raises MalformedFile if it is not a program, OSError, and ToolMissing without the wheel, whose
    schema it is read by."""
    try:
        return _Reader(memoryview(read_regular(pte))).read()
    except IndexError as error:  # a number of something that the program does not have
        raise MalformedFile(f"{pte} contradicts itself: {error}", 0) from error


def npu_streams(content: bytes) -> list[bytes]:
    """Return the streams of an Ethos-U's delegates, in the order of their calls.

    Verdicts number them so. Raises MalformedFile if it is not a program, and ToolMissing without
    the wheel."""
    return list(dict.fromkeys(_Reader(memoryview(content)).npu_streams()))


def instruction_bytes(content: bytes) -> Iterator[int]:
    """Yield the bytes that come with each instruction of the first method.

    They are its delegate, and the constants that it is the first to read. Raises as
    ``npu_streams``."""
    reader, plan = _Reader(memoryview(content)), plans_of(content)[0]
    values = dict(enumerate(value.get("val") for value in plan.items("values")))
    for call in calls_of(plan):
        new = [values.pop(index, None) for index in (_arguments(call) if call else ())]
        tensors = [value for value in new if value and value.name == "Tensor"]
        size = sum(len(reader.constant(tensor) or b"") for tensor in tensors)
        if call is not None and call.name == "DelegateCall":
            size += len(reader.blob(plan.items("delegates")[call.get("delegate_index")]))
        yield size


class _Reader:
    def __init__(self, view: memoryview) -> None:
        schema = load_schema(PTE)
        header = read_header(view, schema)
        self._view = view
        self._program = FlatBuffer(view, schema, header.flatbuffer_size).root()
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
            for call in filter(None, calls_of(plan)):
                arguments = _arguments(call)
                operators += self._operators(plan, call, arguments, values)
                wiring.append([numbers.setdefault(a, len(numbers)) for a in arguments])
            ends = [*plan.items("inputs"), *plan.items("outputs")]
            wiring.append([numbers.setdefault(index, len(numbers)) for index in ends])
            placement.append([self._place(values[index]) for index in numbers])
            memory += plan.items("non_const_buffer_sizes")
        shared = sorted((key, digest_of(raw)) for key, raw in self._named.items())
        return ProgramContents(
            tuple(memory),
            digest_of(wiring),
            digest_of(placement),
            digest_of(shared) if shared else "",
            tuple(operators),
        )

    def npu_streams(self) -> Iterator[bytes]:
        for plan in self._program.items("execution_plan"):
            for call in filter(None, calls_of(plan)):
                if call.name == "DelegateCall":
                    delegate = plan.items("delegates")[call.get("delegate_index")]
                    if delegate.get("id") == ETHOS_U:
                        yield bytes(self.blob(delegate))

    def _operators(
        self, plan: Table, call: Table, arguments: Iterable[int], values: list[Table | None]
    ) -> list[Operator]:
        """Return the operator of a call, and for an NPU's delegate those of its command stream."""
        described = tuple(self._described(values[index], values) for index in arguments)
        if call.name == "KernelCall":
            return [(operator_names(plan)[call.get("op_index")], *described)]
        if call.name != "DelegateCall":
            return [(call.name, *described)]
        delegate = plan.items("delegates")[call.get("delegate_index")]
        backend, blob = delegate.get("id") or "", self.blob(delegate)
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
        _, dtype = element_of(tensor)
        sizes, order = list(tensor.items("sizes")), list(tensor.items("dim_order"))
        text = f"{dtype}[{','.join(map(str, sizes))}]"
        if order != sorted(order):
            text += f" in order {','.join(map(str, order))}"
        content = self.constant(tensor)
        return text if content is None else f"{text} {digest_of(content)}"

    def constant(self, tensor: Table) -> memoryview | None:
        """Return the bytes that a tensor has from the start; None if it has none in this file."""
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
        size = math.prod(tensor.items("sizes")) * element_of(tensor)[0]
        return self._segment(table.get("segment_index"))[start : start + size]

    def _segment(self, index: int) -> memoryview:
        segment = self._segments[index]
        return self._view[segment.start : segment.end]

    def blob(self, delegate: Table) -> memoryview:
        where = delegate.get("processed")
        if where is None:
            return memoryview(b"")
        if self._locations.get(where.get("location")) != "INLINE":
            return self._segment(where.get("index"))
        data = self._program.items("backend_delegate_data")[where.get("index")].get("data")
        return memoryview(b"") if data is None else data.raw()

    def _place(self, value: Table | None) -> object:
        place = None if value is None or value.name != "Tensor" else place_of(value)
        return None if place is None else [*place]


def _arguments(call: Table) -> list[int]:
    if call.name in ("KernelCall", "DelegateCall"):
        found = list(call.items("args"))
        # a kernel's result is there twice: as the argument that it writes, and as what it returns
        return found[:-1] if call.name == "KernelCall" and found[-2:-1] == found[-1:] else found
    fields = {"MoveCall": ("move_from", "move_to"), "FreeCall": ("value_index",)}
    return [call.get(name) for name in fields.get(call.name, ("cond_value_index",))]


def npu_operators(
    stream: bytes, named_data: Mapping[str, bytes]
) -> tuple[str, tuple[Operator, ...]]:
    """Return a digest of what no operation has, and the operations.

    A stream that is not understood, that branches or that is very long gives a digest of all of it,
    and no operations."""
    whole = digest_of(stream), ()
    try:
        blob = read_blob(stream, named_data)
        actions = read_actions(blob.commands)
        operators = _operators(blob, actions)
    except (MalformedFile, EthosUError):
        return whole
    if operators is None or len(operators) > _MOST_OPERATIONS:
        return whole
    io = (actions.config, blob.scratch_size, blob.inputs, blob.outputs, actions.requires)
    return digest_of(io), operators


def _operators(blob: Blob, actions: Actions) -> tuple[Operator, ...] | None:
    """Return the operations of a stream; None if it branches.

    Neighbours that differ in addresses alone are one, with how many there are."""
    state, found = RegisterState(), []
    times: list[int] = []
    last: tuple[str, int, int] | None = None
    for operation in walk(actions.words, register_set(actions.config.product), state):
        name, parameter = operation.name, operation.parameter
        if name == "BRANCH":
            return None
        if (name, parameter, state.changes) == last:
            times[-1] += 1
            continue
        last = name, parameter, state.changes
        times.append(1)
        found.append(_operator(name, parameter, {**state.others, **state.addresses}, blob))
    return tuple((name, n, *parts) for n, (name, *parts) in zip(times, found, strict=True))


def _operator(name: str, parameter: int, registers: Mapping[str, int], blob: Blob) -> Operator:
    """Without how many times it comes."""
    table = read_table(__file__)
    if name == "DMA_START":
        read = {n: v for n, v in registers.items() if n.startswith("DMA0")}
    else:
        unread = tuple(table["unread"].get(name, ()))
        read = {n: v for n, v in registers.items() if not n.startswith(unread)}
    plain = {n for alternatives in table["quantisation"] for n in alternatives}
    places = {n: v for n, v in read.items() if any(part in n for part in table["places"])}
    other = {n: v for n, v in read.items() if n not in plain and n not in places}
    size = [read.get(f"OFM_{axis}_M1", 0) + 1 for axis in ("HEIGHT", "WIDTH", "DEPTH")]
    return (
        f"Ethos-U {name}",
        "x".join(map(str, size)) if name != "DMA_START" else f"{read.get('DMA0_LEN', 0)} bytes",
        *(next((read[n] for n in each if n in read), None) for each in table["quantisation"]),
        _content(read, "WEIGHT", blob) or _copied(read, blob),
        _content(read, "SCALE", blob),
        digest_of((parameter, sorted(other.items()))),
        digest_of(sorted(places.items())),
    )


def _content(read: Mapping[str, int], what: str, blob: Blob) -> str | None:
    """Return a digest of the program's own bytes that an operation has as weights, or as scales."""
    if read.get(f"{what}_REGION") != WEIGHTS:
        return None
    spans = [
        (read[f"{what}{core}_BASE"], read[f"{what}{core}_LENGTH"])
        for core in ("", "1", "2", "3")
        if f"{what}{core}_BASE" in read and f"{what}{core}_LENGTH" in read
    ]
    return digest_of(b"".join(blob.weights[at : at + size] for at, size in spans))


def _copied(read: Mapping[str, int], blob: Blob) -> str | None:
    """Return a digest of weights that are copied to faster memory before they are used."""
    if read.get("DMA0_SRC_REGION") != WEIGHTS or "DMA0_LEN" not in read:
        return None
    at = read.get("DMA0_SRC", 0)
    return digest_of(blob.weights[at : at + read["DMA0_LEN"]])
