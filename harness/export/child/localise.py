"""Analyses a delegate that the NPU computes wrongly, in the export process.

To name the operator, the delegate's TOSA graph is compiled again with more outputs: first with
every quantised value as an output, which keeps a sum and its rescaling together but may undo an
optimisation of Vela's across operators. If all values are right then, each value is made the only
output, up to the first wrong one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from harness.core.errors import ExportError
from harness.export.child.lower import compile_graph, compile_spec
from harness.export.child.reduce import Smallest, known_vela_defect, npu_trial, reduce
from harness.export.child.tosa_graph import (
    CONSTANTS,
    Array,
    Graph,
    Operator,
    computed,
    read_graph,
    run_graph,
    with_outputs,
)
from harness.export.localise import SmallestPart, WrongValue
from harness.export.newest_vela import NewestVela
from harness.export.program import Program, TensorSpec
from harness.export.request import NpuOptions
from harness.npu.model import Network
from harness.system.files import disk_errors

OnStage = Callable[[str], None]


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
    """Return a delegate's TOSA graph, and its inputs in the oracle's run."""
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
    """Return a line for each operator: its name, inputs and outputs."""

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
