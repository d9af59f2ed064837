"""Gives each byte of a FlatBuffer to exactly one path, and names the tables of a ``.pte``.

The caller claims the things that it has names for, the specific before the general. A claim of a
table or field takes everything below it that is still unclaimed, so that shared things (mostly
strings) belong to their first claimant. ``account`` then finds the bytes that were claimed twice or
never. Nothing is visited twice, so even a hostile file takes time proportional to its size.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

from harness.core.errors import MalformedFile
from harness.formats.flatbuffer import MOST_PARTS, FlatBuffer, Table, Vector
from harness.formats.pte import element_of, operator_names, place_of
from harness.formats.schema import Field
from harness.size.anatomy import UNKNOWN, Numbering, Part, PartPath, Span, Tally, sweep

INSIDE_TABLES = ("padding", "inside tables")
SHARED_INDEX = 0  # data_buffer_idx of a tensor without data
_FLATBUFFER_ALIGNMENT = 32  # force_align of the program inside a .bpte
_LARGEST_ALIGNMENT = 1 << 16  # larger than any page size that a file is aligned to


class Claims:
    """The owners of the bytes of ``buffer``. Vtables and inner padding go to ``general``/..."""

    def __init__(self, buffer: FlatBuffer, general: PartPath) -> None:
        self.buffer = buffer
        self._general = general
        self._tables: dict[int, int] = {}  # position -> type
        self._runs: dict[int, int] = {}  # position -> end, of vectors and strings
        self._things: dict[PartPath, int] = defaultdict(int)
        self._padding: dict[PartPath, int] = defaultdict(int)
        # Start, end and owner; None: the caller accounts for the bytes itself.
        self._spans: list[tuple[int, int, PartPath | None]] = []

    def table(self, table: Table | None, path: PartPath) -> None:
        """Give the table, and everything unclaimed below it, to ``path``."""
        if table is not None:
            self._things[path] += 1
            self._claim_all([(table.pos, table.type)], path)

    def field(self, table: Table, name: str, path: PartPath) -> None:
        """Give the target of a field (not its slot in the table) to ``path``."""
        offset = self.buffer.layout(table.type, table.pos).offsets.get(name)
        if offset is not None:
            self._things[path] += 1
            field = self.buffer.schema.tables[table.type].by_name[name]
            self._claim_all([*self._targets(table.pos, table.type, offset, field, path)], path)

    def bytes(self, start: int, end: int, path: PartPath) -> None:
        if len(self._spans) >= MOST_PARTS:
            raise MalformedFile(f"more than {MOST_PARTS:,} tables, vectors and strings", start)
        self._spans.append((start, end, path))

    def reserve(self, vector: Vector, path: PartPath) -> bool:
        """Leave a vector's elements to the caller; False if it was claimed before."""
        start, end = vector.data - 4, vector.end
        if start in self._runs:
            return False
        self._runs[start] = end
        self._spans += (start, start + 4, path), (start + 4, end, None)
        return True

    def _claim_all(self, pending: list[tuple[int, int]], path: PartPath) -> None:
        while pending:
            pos, kind = pending.pop()
            claimed_kind = self._tables.get(pos)
            if claimed_kind == kind:
                continue
            if claimed_kind is not None:
                names = self.buffer.schema.tables
                raise MalformedFile(
                    f"one table is both a {names[claimed_kind].name} and a {names[kind].name}", pos
                )
            self._tables[pos] = kind
            layout = self.buffer.layout(kind, pos)
            self.bytes(pos, pos + layout.size, path)
            self._padding[path] += layout.padding
            for offset, reference in layout.references:
                pending += self._targets(pos, kind, offset, reference, path)

    def _targets(
        self, pos: int, kind: int, offset: int, field: Field, path: PartPath
    ) -> Iterator[tuple[int, int]]:
        """Claims what a field points to; of tables it yields position and type instead."""
        position = pos + offset
        if field.kind == "union":
            member = self.buffer.union_member(Table(self.buffer, kind, pos), field, position)
            if member is not None:
                yield member.pos, member.type
            return
        target = self.buffer.follow(position)
        if field.kind == "table":
            yield target, field.index
        elif field.kind == "string":
            self._string(target, path)
        else:
            yield from self._vector(target, field, path)

    def _string(self, pos: int, path: PartPath) -> None:
        buffer = self.buffer
        _, end = buffer.vector_extent(pos, 1)
        if end >= buffer.limit or buffer.view[end] != 0:
            raise MalformedFile("a string does not end in a zero byte", end)
        self._run(pos, end + 1, path)

    def _vector(self, pos: int, field: Field, path: PartPath) -> Iterator[tuple[int, int]]:
        _, end = self.buffer.vector_extent(pos, field.size)
        if not self._run(pos, end, path) or field.kind == "vector of scalar":
            return
        for slot in range(pos + 4, end, 4):
            if field.kind == "vector of table":
                yield self.buffer.follow(slot), field.index
            elif field.kind == "vector of string":
                self._string(self.buffer.follow(slot), path)

    def _run(self, start: int, end: int, path: PartPath) -> bool:
        """Claim bytes; return False when the same ones were claimed before."""
        claimed_end = self._runs.get(start)
        if claimed_end == end:
            return False
        if claimed_end is not None:
            raise MalformedFile("two objects of different size start here", start)
        self._runs[start] = end
        self.bytes(start, end, path)
        return True

    def account(self, tally: Tally) -> None:
        """Add claims and gaps to ``tally``. Raises MalformedFile if two claim one byte."""
        for pos, (end, kind) in self.buffer.vtables.items():
            name = self.buffer.schema.tables[kind].name
            self._run(pos, end, (*self._general, "vtables", name))
        sizes = dict.fromkeys((path for *_, path in self._spans if path is not None), 0)
        gaps, position = [], 0
        for start, end, path in sorted(self._spans, key=lambda span: span[0]):
            if start < position:
                raise MalformedFile("two objects overlap", start)
            gaps.append((position, start))
            position = end
            if path is not None:
                sizes[path] += end - start
        for path, size in sizes.items():
            padding = self._padding[path]
            tally.add(path, size - padding, max(1, self._things[path]))
            tally.add((*self._general, *INSIDE_TABLES), padding)
        view, unknown_fields = self.buffer.view, self.buffer.has_unknown_fields
        for low, high in (*gaps, (position, self.buffer.limit)):
            classify_gap(view, low, high, self._general, tally, unknown_fields=unknown_fields)


def classify_gap(
    view: memoryview,
    start: int,
    end: int,
    where: PartPath,
    tally: Tally,
    *,
    unknown_fields: bool = False,
) -> None:
    """Accounts for ``[start, end)``.

    Padding is zero, and shorter than the largest alignment inside a FlatBuffer or than the
    alignment of what follows it. Other bytes are unreferenced, or unknown if ``unknown_fields``:
    the file has fields that the schema lacks, which may refer to them.
    """
    if end <= start:
        return
    size = end - start
    aligned = size < _FLATBUFFER_ALIGNMENT or end & -end > size  # the alignment of ``end``
    padding = size < _LARGEST_ALIGNMENT and aligned and not any(view[start:end])
    kind = "padding" if padding else UNKNOWN if unknown_fields else "unreferenced"
    tally.add((kind, *where), size)


@dataclass
class Constant:
    """The data of a constant tensor.

    ``used``: some instruction has a tensor with this data among its arguments. ``user``: the first
    such instruction; "conv2d #3" is the third conv2d."""

    name: str
    size: int
    used: bool
    user: str = ""

    @property
    def label(self) -> str:
        return self.name if self.used else f"{self.name} (no instruction uses it)"


@dataclass
class Plans:
    """The names of a program's data, from its plans.

    ``layers``: of the model, by instruction of its method. Names and sizes of the constant tensors,
    by index of their data: ``constants`` in ``Program.constant_segment`` (or the old
    ``constant_buffer``); ``mutable`` by index of ``mutable_data_segments``, of tensors that only
    start with this data."""

    layers: Sequence[str] = ()
    constants: dict[int, Constant] = field(default_factory=dict)
    mutable: dict[int, dict[int, Constant]] = field(default_factory=dict)
    memory: list[Part] = field(default_factory=list)
    delegates: list[Table] = field(default_factory=list)


def claim_program(
    program: Table, claims: Claims, general: PartPath, layers: Sequence[str] = ()
) -> Plans:
    """Claims everything below the root table that has a name; the rest goes to ``general``."""
    plans = Plans(layers)
    for plan in program.items("execution_plan"):
        _Method(plan, plans, claims, general).claim()
    for item in program.items("named_data"):
        claims.table(item, (*general, "named data keys", item.get("key") or ""))
    for name in (
        "segments",
        "constant_segment",
        "mutable_data_segments",
        "named_data",
        "constant_buffer",
        "backend_delegate_data",
        "execution_plan",
    ):
        claims.field(program, name, (*general, f"index of {name.replace('_', ' ')}"))
    claims.table(program, (*general, "root"))
    return plans


class _Method:
    def __init__(self, plan: Table, plans: Plans, claims: Claims, general: PartPath) -> None:
        self._plan, self._plans, self._claims = plan, plans, claims
        self._name = plan.get("name") or "(no name)"
        self._path = (*general, self._name)
        self._operators = operator_names(plan)
        self._users: dict[int, str] = {}  # value -> the first operator that takes it
        self._layers: dict[int, str] = {}  # the same, with the operator's number
        self._calls = Numbering()
        self._boundary = {*plan.items("inputs"), *plan.items("outputs")}
        self._planned: dict[int, list[Span]] = {}  # by buffer
        self._shapes = Numbering()  # of constants without a name

    def claim(self) -> None:
        plan, path, claims = self._plan, self._path, self._claims
        numbering = Numbering()
        for operator, name in zip(plan.items("operators"), self._operators, strict=True):
            claims.table(operator, (*path, "operators", numbering.name(name)))
        self._claim_delegates()
        for chain in plan.items("chains"):
            claims.field(chain, "stacktrace", (*path, "debug", "stack traces"))
            for number, instruction in enumerate(chain.items("instructions")):
                described = self._describe(instruction, number)
                claims.table(instruction, (*path, "instructions", described))
            claims.table(chain, (*path, "instructions", "chain"))
        self._claim_values()
        claims.field(plan, "name", (*path, "names", "method"))
        claims.field(plan, "container_meta_type", (*path, "debug", "container metadata"))
        for name in ("inputs", "outputs", "non_const_buffer_sizes", "non_const_buffer_device"):
            claims.field(plan, name, (*path, name.replace("_", " ")))
        for name in ("operators", "values", "chains", "delegates"):
            claims.field(plan, name, (*path, f"index of {name}"))
        claims.table(plan, (*path, "table"))

    def _claim_delegates(self) -> None:
        numbering = Numbering()
        for delegate in self._plan.items("delegates"):
            self._plans.delegates.append(delegate)
            name = numbering.name(delegate.get("id") or "")
            for spec in delegate.items("compile_specs"):
                key = spec.get("key") or ""
                self._claims.table(spec, (*self._path, "compile specs", name, key))
            self._claims.table(delegate, (*self._path, "delegates", name))

    def _describe(self, instruction: Table, number: int) -> str:
        call = instruction.get("instr_args")
        if call is None:
            return "nothing"
        name = str(call.name)
        if name == "KernelCall":
            index = call.get("op_index")
            name = self._operators[index] if 0 <= index < len(self._operators) else f"#{index}"
        if name == "MoveCall":
            self._users.setdefault(call.get("move_from"), name)
        elif call.name in ("KernelCall", "DelegateCall"):
            layer = self._calls.name(name.partition("::")[2] or name)
            if known := "".join(self._plans.layers[number : number + 1]):
                layer += f" ({known})"
            for value in call.items("args"):
                self._users.setdefault(value, name)
                self._layers.setdefault(value, layer)
        return name

    def _claim_values(self) -> None:
        values = [(value, value.get("val")) for value in self._plan.items("values")]
        self._use_list_items([content for _, content in values])
        for index, (value, content) in enumerate(values):
            kind = "Null" if content is None else content.name
            path = (*self._path, "values", kind)
            if content is not None and kind == "Tensor":
                path = self._tensor(index, content)
            elif content is not None and kind == "String":
                path = (*self._path, "strings", content.get("string_val") or "")
            self._claims.table(value, path)
        for number, size in enumerate(self._plan.items("non_const_buffer_sizes")):
            group = (f"planned buffer {number} of {self._name}",)
            if size > 0:
                self._plans.memory.extend(_memory_parts(group, size, self._planned.get(number, ())))

    def _use_list_items(self, contents: list[Table | None]) -> None:
        for index, content in enumerate(contents):
            user = self._users.get(index)
            if user and content and content.name in ("TensorList", "OptionalTensorList"):
                for value in content.items("items"):
                    self._users.setdefault(value, user)

    def _tensor(self, index: int, tensor: Table) -> PartPath:
        """Note what the tensor is for, and return its path."""
        sizes = list(tensor.items("sizes"))
        item_size, dtype = element_of(tensor)
        shape = f"{dtype}{sizes}".replace(" ", "")
        size = prod(max(0, s) for s in sizes) * item_size
        extra, place = tensor.get("extra_tensor_info"), place_of(tensor)
        full_name = extra.get("fully_qualified_name") if extra else None
        if extra is not None and full_name:
            self._claims.field(extra, "fully_qualified_name", (*self._path, "names", full_name))
        data = tensor.get("data_buffer_idx")
        if data != SHARED_INDEX:
            constants = self._plans.constants
            if place is not None:
                segment = extra.get("mutable_data_segments_idx") if extra else 0
                constants = self._plans.mutable.setdefault(segment, {})
            if data not in constants:
                constants[data] = Constant(full_name or self._shapes.name(shape), size, False)
            constants[data].used |= index in self._users or index in self._boundary
            constants[data].user = constants[data].user or self._layers.get(index, "")
        if place is not None:
            buffer, low, high = place
            offset = low | high << 32
            user = self._users.get(index)
            name = f"{full_name or shape} of {user}" if user else full_name or shape
            planned = self._planned.setdefault(buffer, [])
            planned.append(Span(offset, offset + size, -size, name))
        kind = "constant" if data != SHARED_INDEX else "planned" if place else "unplanned"
        return (*self._path, "tensors", f"{kind} {shape}")


def _memory_parts(buffer: PartPath, size: int, tensors: Iterable[Span]) -> tuple[Part, ...]:
    """Parts under ``buffer`` that sum to ``size``.

    Tensors that do not live at the same time share memory, so their sizes do not add up to the
    buffer's. Every byte belongs to the largest tensor that is ever planned over it; a byte that no
    tensor covers is a gap.
    """
    tally = Tally()
    counted: set[Span | None] = set()
    for length, tensor in sweep(tensors, size):
        name = "gap" if tensor is None else tensor.name
        tally.add((*buffer, name), length, int(tensor is None or tensor not in counted))
        counted.add(tensor)
    return tally.parts()
