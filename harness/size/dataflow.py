"""Derives what each instruction of a method reads and writes.

A ``.pte`` has the arguments of an instruction, but not their direction. That follows from how
ExecuTorch writes it (``exir/emit/_emitter.py``, 1.5.1):

- An out-variant lists its results, and what it returns once more, as the last argument.
- An operator whose name ends in "_" changes its first argument.
- The outputs of a delegate are the last of its arguments. No other instruction writes them.
- A static view is not an instruction: nothing writes it; it has the place of an earlier value.
- A move copies no bytes: from there on the value stands for the tensor that it was moved from.
- Mutable buffers come before the inputs, or have data. The next run needs them.
- Memory to work in is an argument that nothing writes, of type uint8 in ``cortex_m``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple, TypeGuard

from harness.formats.flatbuffer import Table
from harness.formats.pte import calls_of, element_of, operator_names, place_of

_COPY, _COPY_INDEX = "aten::copy_", "executorch_prim::et_copy_index"
_VIEW = "executorch_prim::et_view"
_WITHOUT_SCRATCH = ("aten::", "executorch_prim::", "dim_order_ops::", "quantized_decomposed::")


class BufferRange(NamedTuple):
    """Bytes ``[start, end)`` of a planned buffer."""

    buffer: int
    start: int
    end: int

    def overlaps(self, other: BufferRange) -> bool:
        return self.buffer == other.buffer and self.start < other.end and other.start < self.end

    def __str__(self) -> str:
        return f"[{self.start:#x}, {self.end:#x}) of buffer {self.buffer}"


@dataclass
class DataflowStep:
    """An instruction; also what comes before the first, number -1, and after the last.

    Values are by number: ``overwrites``, whose bytes it changes; ``binds``, those that have other
    contents after it. ``following``: indices in the list of steps."""

    number: int
    operator: str
    following: tuple[int, ...] = ()
    layer: str = ""
    reads: set[int] = field(default_factory=set)
    overwrites: set[int] = field(default_factory=set)
    binds: set[int] = field(default_factory=set)

    @property
    def name(self) -> str:
        return f"{self.operator}, {self.layer}" if self.layer else self.operator

    def __str__(self) -> str:
        inside = self.number >= 0 and self.following
        return f"instruction {self.number} ({self.name})" if inside else self.operator


class Dataflow:
    """The steps of an execution plan, views replaced by what they are views of.

    ``places``: of the planned tensors that have bytes. ``inputs``, and ``states``, the mutable
    buffers, are written before the first instruction. Raises MalformedFile, and LookupError for a
    plan that contradicts itself."""

    def __init__(self, plan: Table, layers: Sequence[str] = ()) -> None:
        self._plan, self._layers, self._operators = plan, layers, operator_names(plan)
        self.values = [value.get("val") for value in plan.items("values")]
        tensors = (n for n, value in enumerate(self.values) if _is(value, "Tensor"))
        self.places = {n: place for n in tensors if (place := self._place(n)) is not None}
        self._alike: dict[tuple[BufferRange, int], list[int]] = defaultdict(list)
        for number, place in self.places.items():
            self._alike[place, self.values[number].get("scalar_type")].append(number)
        self._viewed: dict[int, int] = {}
        self._moved: dict[int, set[int]] = defaultdict(set)
        self.inputs = self._tensors(plan.items("inputs"))
        first = max(self.inputs, default=0)
        early = (n for n in self.places if n < first or self.values[n].get("data_buffer_idx"))
        self.states = [n for n in early if n not in self.inputs]
        self.steps = self._read()

    def spots(self, value: int) -> dict[int, BufferRange]:
        """Return the planned tensors that a value may stand for: itself, or its sources."""
        found, waiting = {value}, [value]
        while waiting:
            sources = {self._resolved(n) for n in self._moved.get(waiting.pop(), ())}
            waiting += sources - found
            found |= sources
        return {n: self.places[n] for n in found - self._moved.keys() if n in self.places}

    def _place(self, number: int) -> BufferRange | None:
        tensor = self.values[number]
        place, sizes = place_of(tensor), (max(0, size) for size in tensor.items("sizes"))
        size = prod(sizes) * element_of(tensor)[0]
        if place is None or not size:
            return None
        start = place[1] | place[2] << 32
        return BufferRange(place[0], start, start + size)

    def _tensors(self, values: Iterable[int]) -> list[int]:
        """Return the tensors among values, and in lists among them."""
        found: list[int] = []
        for number in values:
            value = self.values[number] if number >= 0 else None
            is_list = _is(value, "TensorList") or _is(value, "OptionalTensorList")
            items = value.items("items") if value is not None and is_list else (number,)
            found += (n for n in items if n >= 0 and _is(self.values[n], "Tensor"))
        return found

    def _read(self) -> list[DataflowStep]:
        calls = calls_of(self._plan)
        kernels = [[*call.items("args")] for call in calls if _is(call, "KernelCall")]
        computed = {args[-1] for args in kernels if args}
        before, written = (
            DataflowStep(-1, "the method's inputs", (1,)),
            {*self.inputs, *self.states},
        )
        before.overwrites, before.binds = written, {*written}
        steps = [before, *(self._step(n, call, computed) for n, call in enumerate(calls))]
        needed = {*self._tensors(self._plan.items("outputs")), *self.states}
        steps.append(DataflowStep(len(calls), "the end of the method", reads=needed))
        for index, call in enumerate(calls, start=1):
            if _is(call, "DelegateCall"):
                self._split(steps, index, self._tensors(call.items("args")))
        self._resolve(steps)
        return steps

    def _step(self, number: int, call: Table | None, computed: set[int]) -> DataflowStep:
        layer = "".join(self._layers[number : number + 1])
        step = DataflowStep(number, "nothing" if call is None else call.name, (number + 2,), layer)
        if _is(call, "KernelCall"):
            step.operator = self._operators[call.get("op_index")]
            self._read_kernel(step, [*call.items("args")])
        elif _is(call, "DelegateCall"):
            delegate = self._plan.items("delegates")[call.get("delegate_index")]
            step.operator = f"delegate {delegate.get('id')}"
            step.reads.update(self._tensors(call.items("args")))
        elif _is(call, "MoveCall"):
            step.reads, step.binds = {call.get("move_from")}, {call.get("move_to")}
            self._moved[call.get("move_to")].add(call.get("move_from"))
        elif _is(call, "JumpFalseCall"):
            condition, jump = call.get("cond_value_index"), call.get("destination_instruction") + 1
            always = _is(self.values[condition], "Bool") and condition not in computed
            step.reads.update(self._tensors([condition]))
            step.following = (jump,) if always else (number + 2, jump)
        return step

    def _read_kernel(self, step: DataflowStep, args: list[int]) -> None:
        operands, results = args[:-1], self._tensors(args[-1:])
        if step.operator.startswith(_COPY_INDEX):  # the first argument grows by the second
            operands, results = args[:2], self._tensors(args[:1])
        elif step.operator.startswith(_VIEW):
            self._view(args[-1], args[0])
            operands, results = args[:1], []
        elif step.operator.partition(".")[0].endswith("_"):
            operands = operands[1:] if step.operator.startswith(_COPY) else operands
            results = self._tensors(args[:1])
        else:  # the results are as many arguments, or a list of them
            for count in {1, len(results)}:
                if self._tensors(operands[-count:]) == results:
                    operands = operands[:-count]
        step.reads.update(self._tensors(operands))
        step.overwrites, step.binds = {*results}, {*results}

    def _split(self, steps: Sequence[DataflowStep], index: int, args: Sequence[int]) -> None:
        """Find the outputs of a delegate: what nothing else writes.

        One before the last is taken for a view, though, where it has the place of a value that is
        still to be read by others."""
        written, outputs = {value for step in steps for value in step.binds}, {*args[-1:]}
        needed = {value for step in steps[index + 1 :] for value in step.reads}.difference(args)
        outputs |= {value for value in args if needed.isdisjoint(self._before(value))}
        outputs -= written
        steps[index].reads -= outputs
        steps[index].overwrites, steps[index].binds = outputs, {*outputs}

    def _before(self, value: int) -> list[int]:
        """Return the earlier values of its type that have its place."""
        if value not in self.places:
            return []
        alike = self._alike[self.places[value], self.values[value].get("scalar_type")]
        return [n for n in alike if n < value]

    def _resolve(self, steps: Sequence[DataflowStep]) -> None:
        """Replace views, and finds what is only worked in."""
        written = {value for step in steps for value in step.binds}
        for step in steps:
            for value in (step.reads - written - self._viewed.keys()) & self.places.keys():
                # What a view shows: the last of what was there before it.
                base = next((n for n in reversed(self._before(value)) if n in written), None)
                byte = element_of(self.values[value])[1] == "uint8"
                known = _WITHOUT_SCRATCH if byte else (*_WITHOUT_SCRATCH, "cortex_m::")
                if base is not None:
                    self._view(value, base)
                elif "::" in step.operator and not step.operator.startswith(known):
                    step.reads.discard(value)
                    step.overwrites.add(value)
            for values in (step.reads, step.overwrites, step.binds):
                resolved = {self._resolved(value) for value in values}
                values.clear()
                values |= resolved

    def _view(self, value: int, base: int) -> None:
        if self._resolved(base) != value:  # else it would be a view of itself
            self._viewed.setdefault(value, base)

    def _resolved(self, value: int) -> int:
        while value in self._viewed:
            value = self._viewed[value]
        return value


def _is(table: Table | None, name: str) -> TypeGuard[Table]:
    return table is not None and table.name == name
