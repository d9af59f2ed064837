"""Is this a defect that Vela is known for? Looked up in a graph of which nothing can be left out.

In such a graph every operator is needed for the trouble, so that two operators that stand
together as ``targets/npu/defects.yaml`` says are no accident.
"""

from __future__ import annotations

from collections.abc import Collection

from harness.config.npu import Defect, defects
from harness.export.child.reduce import Trouble
from harness.export.child.tosa_graph import Graph, Operator

_SHAPES = frozenset({"RESHAPE", "TRANSPOSE", "IDENTITY"})
_THROUGH = _SHAPES | {"RESCALE", "CLAMP", "TABLE"}
_ZERO_POINT = 3  # which input of a convolution has it


def known_defect(graph: Graph, product: str, macs: int, trouble: Trouble) -> str:
    """The name of the first that fits; empty when none does."""
    for name, defect in defects().defects.items():
        on_npu = product in defect.products and (not defect.macs or macs in defect.macs)
        seen = defect.trouble is None or defect.trouble == trouble
        if on_npu and seen and _fits(graph, defect):
            return name
    return ""


def _fits(graph: Graph, defect: Defect) -> bool:
    if defect.to is None:
        return True
    for operator in graph.operators:
        if operator.name in defect.to and _is_it(graph, operator, defect):
            return True
    return False


def _is_it(graph: Graph, operator: Operator, defect: Defect) -> bool:
    if defect.dilation > max(operator.attributes.get("Dilation", (0,))):
        return False
    if defect.beside is not None and not _beside(graph, operator, defect.beside):
        return False
    if defect.from_ is None:
        return True
    sources = _sources(graph, operator, defect.from_)
    return any(defect.fill is None or _other_fill(graph, s, operator) for s in sources)


def _sources(graph: Graph, operator: Operator, names: Collection[str]) -> list[Operator]:
    """Operators of these names whose value reaches the operator."""
    found, waiting = [], [operator]
    while waiting:
        reader = waiting.pop()
        for producer in graph.operators:
            if not set(producer.outputs).intersection(reader.inputs):
                continue
            if producer.name in names:
                found.append(producer)
            elif producer.name in _THROUGH:
                waiting.append(producer)
    return found


def _beside(graph: Graph, operator: Operator, names: Collection[str]) -> bool:
    """Whether an operator of these names reads, or gives, a value that in some shape is one of its
    inputs or its result."""
    same, grown = {*operator.inputs, *operator.outputs} & _computed(graph), True
    while grown:
        grown = False
        for other in graph.operators:
            both = {*other.inputs[:1], *other.outputs}
            if other.name in _SHAPES and both & same and not both <= same:
                same |= both
                grown = True
    return any(
        other.name in names and same.intersection((*other.inputs[:1], *other.outputs))
        for other in graph.operators
    )


def _computed(graph: Graph) -> set[str]:
    made = {n for o in graph.operators if o.name not in ("CONST", "CONST_SHAPE") for n in o.outputs}
    return made | {tensor.name for tensor in graph.inputs}


def _other_fill(graph: Graph, pad: Operator, operator: Operator) -> bool:
    fill = graph.numbers.get(pad.inputs[2], (0,))
    return fill != graph.numbers.get(operator.inputs[_ZERO_POINT], (0,))
