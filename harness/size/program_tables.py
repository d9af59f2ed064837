"""Claims the tables of a ``.pte``: operators, tensors, values, instructions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod

from harness.formats.flatbuffer import Table
from harness.formats.pte import element_of, operator_names, place_of
from harness.size.anatomy import Numbering, Part, PartPath, Span, Tally, sweep
from harness.size.claims import Claims

SHARED_INDEX = 0  # data_buffer_idx of a tensor without data


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
    """What a program's plans say of its data.

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
        self._claim_operators()
        self._claim_delegates()
        self._claim_chains()
        self._claim_values()
        plan, path, claims = self._plan, self._path, self._claims
        claims.field(plan, "name", (*path, "names", "method"))
        claims.field(plan, "container_meta_type", (*path, "debug", "container metadata"))
        for name in ("inputs", "outputs", "non_const_buffer_sizes", "non_const_buffer_device"):
            claims.field(plan, name, (*path, name.replace("_", " ")))
        for name in ("operators", "values", "chains", "delegates"):
            claims.field(plan, name, (*path, f"index of {name}"))
        claims.table(plan, (*path, "table"))

    def _claim_operators(self) -> None:
        numbering = Numbering()
        for operator, name in zip(self._plan.items("operators"), self._operators, strict=True):
            self._claims.table(operator, (*self._path, "operators", numbering.name(name)))

    def _claim_delegates(self) -> None:
        numbering = Numbering()
        for delegate in self._plan.items("delegates"):
            self._plans.delegates.append(delegate)
            name = numbering.name(delegate.get("id") or "")
            for spec in delegate.items("compile_specs"):
                key = spec.get("key") or ""
                self._claims.table(spec, (*self._path, "compile specs", name, key))
            self._claims.table(delegate, (*self._path, "delegates", name))

    def _claim_chains(self) -> None:
        path = (*self._path, "instructions")
        for chain in self._plan.items("chains"):
            self._claims.field(chain, "stacktrace", (*self._path, "debug", "stack traces"))
            for number, instruction in enumerate(chain.items("instructions")):
                self._claims.table(instruction, (*path, self._describe(instruction, number)))
            self._claims.table(chain, (*path, "chain"))

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
            if content is not None and content.name == "Tensor":
                self._claim_tensor(index, value, content)
            elif content is not None and content.name == "String":
                text = content.get("string_val") or ""
                self._claims.table(value, (*self._path, "strings", text))
            else:
                kind = "Null" if content is None else content.name
                self._claims.table(value, (*self._path, "values", kind))
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

    def _claim_tensor(self, index: int, value: Table, tensor: Table) -> None:
        sizes = list(tensor.items("sizes"))
        item_size, dtype = element_of(tensor)
        shape = f"{dtype}{sizes}".replace(" ", "")
        size = prod(max(0, s) for s in sizes) * item_size
        extra, place = tensor.get("extra_tensor_info"), place_of(tensor)
        full_name = extra.get("fully_qualified_name") if extra else None
        if extra is not None and full_name:
            self._claims.field(extra, "fully_qualified_name", (*self._path, "names", full_name))
        data = tensor.get("data_buffer_idx")
        kind = "constant" if data != SHARED_INDEX else "planned" if place else "unplanned"
        self._claims.table(value, (*self._path, "tensors", f"{kind} {shape}"))
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
