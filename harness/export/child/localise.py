"""Analyses a delegate that the NPU computes wrongly, in the export process.

To name the operator, the delegate's TOSA graph is compiled again with more outputs: first with
every quantised value as an output, which keeps a sum and its rescaling together but may undo an
optimisation of Vela's across operators. If all values are right then, each value is made the only
output, up to the first wrong one.

It is also reduced to the smallest part that is still wrong. Operators are left out as long as the
kind of wrong result stays: halves first, then smaller portions, then one by one (delta debugging).
The outputs of an omitted operator become inputs, with the values that TOSA's reference model
computes. Operators stay together if neither the reference model nor an NPU can output or input a
value between them, such as the INT48 sums of a 16-bit convolution and their RESCALE. A try costs a
compilation by Vela, so ``tries`` bounds them.

Every remaining operator is needed for the wrong result. So if two operators are combined as
``targets/npu/defects.yaml`` describes, it is that known defect of Vela.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from harness.config.npu import Defect, defects
from harness.core.errors import ExportError
from harness.core.verdict import Word
from harness.export.child.lower import compile_graph, compile_spec
from harness.export.child.tosa_graph import (
    CONSTANTS,
    Array,
    Graph,
    Operator,
    computed,
    part,
    read_graph,
    run_graph,
    with_outputs,
)
from harness.export.localise import MOST_TRIES, NewestVela, SmallestPart, WrongValue
from harness.export.program import Program, TensorSpec
from harness.export.request import NpuOptions
from harness.link.reduce import ddmin
from harness.npu.errors import AccessError, EthosUError, Unsupported, Unwritten
from harness.npu.model import Network
from harness.system.files import disk_errors

OnStage = Callable[[str], None]
_SAME_ORDER = frozenset({"RESHAPE", "IDENTITY"})
_SHAPES = _SAME_ORDER | {"TRANSPOSE"}
_PASSED_THROUGH = _SHAPES | {"RESCALE", "CLAMP", "TABLE"}
_ZERO_POINT = 3  # index of a convolution's input with the zero point


def first_wrong_value(
    on_stage: OnStage, program: Program, delegate: int, input_set: int
) -> WrongValue | None:
    """Find the first wrong value of a delegate. Raises ExportError."""
    on_stage("name the operator")
    tosa, inputs = _graph(program, delegate, input_set)
    graph = read_graph(tosa)
    observed = [t for t in computed(graph) if t.dtype in ("int8", "int16", "bool")]
    names = {t.name for t in observed}
    observed += [t for t in graph.outputs if t.name not in names and t.dtype]
    reference = run_graph(with_outputs(tosa, [t.name for t in observed]), inputs)
    indices = list(range(len(observed)))
    for group in (indices, *([index] for index in indices)):  # all together, then one by one
        instrumented = with_outputs(tosa, [observed[i].name for i in group])
        outputs = _outputs(instrumented, program.npu, inputs)
        for index, raw in zip(group, outputs, strict=False):
            tensor = observed[index]
            wrong = _first_different(tensor, reference[index], raw)
            if wrong is not None:
                operator = _operator_text(graph.producer(tensor.name), graph.operators)
                return WrongValue(operator, tensor.name, *wrong)
    return None


def smallest_part(
    on_stage: OnStage,
    program: Program,
    delegate: int,
    input_set: int,
    tries: int,
    base: Path | None,
    newest: NewestVela | None,
) -> SmallestPart | None:
    """Reduce the graph of a delegate. Raises ExportError, DiskError."""
    on_stage("reduce the graph")
    tosa, inputs = _graph(program, delegate, input_set)
    options = program.npu
    smallest = reduce(tosa, inputs, npu_trial(partial(compile_graph, options=options)), tries=tries)
    if smallest is None:
        return None
    _, product, macs = program.compile_target.split("-")[-3:]
    graph = read_graph(smallest.tosa)
    return SmallestPart(
        smallest.operators,
        smallest.whole,
        smallest.tries,
        str(smallest.trouble),
        known_vela_defect(graph, product, int(macs), smallest.trouble),
        _listing(graph),
        () if base is None else _write_files(smallest, options, base),
        "" if newest is None else _by_newest(on_stage, newest, smallest, options),
    )


def _by_newest(
    on_stage: OnStage, newest: NewestVela, smallest: Smallest, options: NpuOptions
) -> str:
    """ "wrong with Vela 5.1.0, right with Vela 5.2.0"."""
    on_stage(f"try Vela {newest.version}")
    compiled = partial(newest.compile, flags=[*compile_spec(options).compiler_flags])
    try:
        trouble = npu_trial(compiled)(smallest.tosa, smallest.inputs)
        found = "right" if trouble is None else "wrong" if trouble is smallest.trouble else trouble
    except ExportError as error:
        found = error.message
    return f"{found} with Vela {newest.version}"


def _graph(program: Program, delegate: int, input_set: int) -> tuple[bytes, list[Array]]:
    part = program.delegates[delegate]
    names = part.sets[input_set].inputs
    inputs = [
        spec.decode((program.directory / name).read_bytes())
        for spec, name in zip(part.inputs, names, strict=True)
    ]
    return (program.directory / part.tosa).read_bytes(), inputs


def _write_files(smallest: Smallest, options: NpuOptions, base: Path) -> tuple[str, ...]:
    contents = {
        f"{base}.tosa": smallest.tosa,
        f"{base}.vela": compile_graph(smallest.tosa, options),
    }
    for index, value in enumerate(smallest.inputs):
        contents[f"{base}-in{index}.bin"] = value.tobytes()
    with disk_errors("writing the reduced program"):
        for name, content in contents.items():
            Path(name).write_bytes(content)
    return tuple(contents)


def _listing(graph: Graph) -> tuple[str, ...]:

    def shown(name: str) -> str:
        tensor = graph.tensors[name]
        return f"{tensor.dtype or '?'}{list(tensor.shape)}"

    return tuple(
        f"{op.name}: {', '.join(shown(n) for n in op.inputs if n in graph.tensors)} -> "
        f"{', '.join(shown(n) for n in op.outputs)}"
        for op in graph.operators
        if op.name not in CONSTANTS
    )


def _outputs(tosa: bytes, options: NpuOptions, inputs: Sequence[Array]) -> Sequence[bytes]:
    """Return the NPU's outputs; ``()`` when Vela refuses to make these tensors outputs."""
    try:
        blob = compile_graph(tosa, options)
    except ExportError:
        return ()
    return Network(blob).run([value.tobytes() for value in inputs])[0]


def _first_different(
    tensor: TensorSpec, expected: Array, raw: bytes
) -> tuple[tuple[int, ...], int, int] | None:
    """Return the element, and its expected and actual value."""
    if len(raw) != expected.nbytes:
        raise ExportError(f"'{tensor.name}' has {len(raw)} bytes, not {expected.nbytes}")
    actual = np.frombuffer(raw, expected.dtype).reshape(expected.shape)
    different = np.argwhere(actual != expected)
    if not len(different):
        return None
    element = tuple(int(i) for i in different[0])
    return element, int(expected[element]), int(actual[element])


def _operator_text(operator: Operator, operators: Sequence[Operator]) -> str:
    """ "ADD and RESCALE": a rescaling is named with the operator that it rescales."""
    if operator.name in ("RESCALE", "CLAMP"):
        for other in operators:
            if operator.inputs[0] in other.outputs and other.name not in ("CONST", "RESCALE"):
                return f"{other.name} and {operator.name}"
    return operator.name


class WrongResult(Word):
    """How the result of a compiled graph may be wrong."""

    VALUES = "other values"  # the outputs differ from TOSA's
    OUTSIDE = "outside its memory"  # it reads or writes outside its regions
    UNWRITTEN = "an output is not written"
    MISSING = "an output is missing"
    UNVERIFIED = "an operation that is not verified"  # nobody knows what an NPU makes of it


Trial = Callable[[bytes, Sequence[Array]], "WrongResult | None"]  # graph, inputs
Compile = Callable[[bytes], bytes]  # a graph to a blob; raises ExportError


@dataclass(frozen=True)
class Smallest:
    """``operators``: those left of ``whole``, in order. ``tries``: how many graphs were tried."""

    tosa: bytes
    inputs: tuple[Array, ...]
    trouble: WrongResult
    operators: tuple[str, ...]
    whole: int
    tries: int


def reduce(
    tosa: bytes, inputs: Sequence[Array], trial: Trial, *, tries: int = MOST_TRIES
) -> Smallest | None:
    """Return None when the whole graph is right."""
    whole = _WholeGraph(tosa, inputs)
    trouble = trial(tosa, inputs)
    if trouble is None:
        return None
    outcomes: dict[tuple[int, ...], bool] = {(): False}

    def stays(units: Sequence[_Unit]) -> bool:
        key = _operators(units)
        if key not in outcomes and len(outcomes) <= tries:
            outcomes[key] = trial(*whole.cut(key)) is trouble
        return outcomes.get(key, False)

    kept, every = _operators(ddmin(whole.units, stays)), _operators(whole.units)
    graph, values = whole.cut(kept) if kept != every else (tosa, tuple(inputs))
    names = tuple(whole.graph.operators[i].name for i in kept)
    return Smallest(graph, values, trouble, names, len(every), len(outcomes) - 1)


_Unit = tuple[int, ...]  # operators that stay together, by index


def _operators(units: Iterable[_Unit]) -> tuple[int, ...]:
    return tuple(sorted(chain.from_iterable(units)))


class _WholeGraph:
    """The graph with every value that it computes.

    ``units``: operators that may be left out; the others compute constants, and stay with the
    operators that need them."""

    def __init__(self, tosa: bytes, inputs: Sequence[Array]) -> None:
        self.tosa = tosa
        self.graph: Graph = read_graph(tosa)
        known = [t.name for t in computed(self.graph) if t.dtype]
        self.values = dict(zip(known, run_graph(with_outputs(tosa, known), inputs), strict=True))
        given = [tensor.name for tensor in self.graph.inputs]
        self.values.update(zip(given, inputs, strict=True))
        self._reached = {tensor.name for tensor in computed(self.graph)} | set(given)
        self.units = self._units()

    def _units(self) -> list[_Unit]:
        between = self._reached - self.values.keys()
        units: dict[_Unit, set[str]] = {}  # with the values that keep each together
        for index, operator in enumerate(self.graph.operators):
            if self._reached.isdisjoint(operator.outputs):
                continue
            shared = between.intersection((*operator.inputs, *operator.outputs))
            joined = [unit for unit, names in units.items() if names & shared]
            for unit in joined:
                shared |= units.pop(unit)
            units[_operators([*joined, (index,)])] = shared
        return sorted(units)

    def cut(self, kept: Sequence[int]) -> tuple[bytes, tuple[Array, ...]]:
        """Return the graph of these operators, by index, and its inputs."""
        operators = self.graph.operators
        made = {name for i in kept for name in operators[i].outputs}
        needed = [name for i in kept for name in operators[i].inputs]
        inputs = [n for n in dict.fromkeys(needed) if n in self._reached and n not in made]
        wanted = {tensor.name for tensor in self.graph.outputs} | (made - set(needed))
        outputs = [n for i in kept for n in operators[i].outputs if n in wanted]
        every = {*kept, *self._constants(needed)}
        graph = part(self.tosa, every, inputs, outputs)
        return graph, tuple(self.values[name] for name in inputs)

    def _constants(self, names: Iterable[str]) -> set[int]:
        constants: set[int] = set()
        wanted = {n for n in names if n not in self._reached}
        for index in reversed(range(len(self.graph.operators))):
            operator = self.graph.operators[index]
            if wanted.intersection(operator.outputs):
                constants.add(index)
                wanted.update(operator.inputs)
        return constants


def npu_trial(compiled: Compile) -> Trial:
    """Return a trial that compiles a graph with Vela and compares the model of the NPU with TOSA.

    A graph that Vela or TOSA refuses, or the model for its size, counts as right."""

    def run(tosa: bytes, inputs: Sequence[Array]) -> WrongResult | None:
        try:
            expected = run_graph(tosa, inputs)
            network = Network(compiled(tosa))
        except Unsupported:
            return WrongResult.UNVERIFIED
        except (ExportError, EthosUError):
            return None
        if len(network.blob.inputs) != len(inputs):
            return None  # Vela drops inputs that no operator reads
        if len(network.blob.outputs) != len(expected):
            return WrongResult.MISSING
        try:
            outputs, _ = network.run([value.tobytes() for value in inputs])
        except Unwritten:
            return WrongResult.UNWRITTEN
        except AccessError:
            return WrongResult.OUTSIDE
        except Unsupported:
            return WrongResult.UNVERIFIED
        except EthosUError:
            return None
        same = all(a == b.tobytes() for a, b in zip(outputs, expected, strict=True))
        return None if same else WrongResult.VALUES

    return run


def known_vela_defect(graph: Graph, product: str, macs: int, trouble: WrongResult) -> str:
    """Return the name of the first known defect that fits the graph; "" when none does."""
    for name, defect in defects().defects.items():
        on_npu = product in defect.products and (not defect.macs or macs in defect.macs)
        if on_npu and trouble in defect.trouble and _fits(graph, defect):
            return name
    return ""


def _fits(graph: Graph, defect: Defect) -> bool:
    return defect.to is None or any(
        operator.name in defect.to and _operator_fits(graph, operator, defect)
        for operator in graph.operators
    )


def _operator_fits(graph: Graph, operator: Operator, defect: Defect) -> bool:
    if defect.padded and not any(operator.padding):
        return False
    if defect.beside is not None and not _beside(graph, operator, defect.beside):
        return False
    if defect.from_ is None:
        return True
    if defect.via is not None:
        through = _sources(graph, operator, defect.via, _SAME_ORDER)
        return any(_sources(graph, one, defect.from_, ()) for one in through)
    if defect.dimensions:
        through = _sources(graph, operator, defect.from_, ())
        return any(_dimensions(graph, one) >= defect.dimensions for one in through)
    sources = _sources(graph, operator, defect.from_)
    return any(defect.fill is None or _fill_is_not_zero_point(graph, s, operator) for s in sources)


def _dimensions(graph: Graph, operator: Operator) -> int:
    """Count the dimensions of its first input, from the first one on that is not 1."""
    shape = graph.tensors[operator.inputs[0]].shape
    return len(shape) - next((n for n, size in enumerate(shape) if size > 1), len(shape))


def _sources(
    graph: Graph,
    operator: Operator,
    names: Collection[str],
    passed_through: Collection[str] = _PASSED_THROUGH,
) -> list[Operator]:
    """Return the operators of these names whose value reaches the operator."""
    sources, waiting = [], [operator]
    while waiting:
        reader = waiting.pop()
        for producer in graph.operators:
            if not set(producer.outputs).intersection(reader.inputs):
                continue
            if producer.name in names:
                sources.append(producer)
            elif producer.name in passed_through:
                waiting.append(producer)
    return sources


def _beside(graph: Graph, operator: Operator, names: Collection[str]) -> bool:
    """Return whether such an operator touches one of ``operator``'s values, maybe reshaped."""
    aliases, grown = {*operator.inputs, *operator.outputs} & _computed(graph), True
    while grown:
        grown = False
        for other in graph.operators:
            both = {*other.inputs[:1], *other.outputs}
            if other.name in _SHAPES and both & aliases and not both <= aliases:
                aliases |= both
                grown = True
    return any(
        other.name in names and aliases.intersection((*other.inputs[:1], *other.outputs))
        for other in graph.operators
    )


def _computed(graph: Graph) -> set[str]:
    made = {n for o in graph.operators if o.name not in CONSTANTS for n in o.outputs}
    return made | {tensor.name for tensor in graph.inputs}


def _fill_is_not_zero_point(graph: Graph, pad: Operator, operator: Operator) -> bool:
    fill = graph.numbers.get(pad.inputs[2], (0,))
    return fill != graph.numbers.get(operator.inputs[_ZERO_POINT], (0,))
