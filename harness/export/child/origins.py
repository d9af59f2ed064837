"""Asks the exporter who left each operator to a kernel on the CPU, and for which layer.

The quantiser's annotations say whether it chose the operator, and the quantised model's operator in
its place whether a decomposition made it. The rules are the NPU partitioner's (``partition``).
"""

from __future__ import annotations

import traceback

import torch
from executorch.exir import EdgeProgramManager

from harness.export.child.partition import layer_of, place, schema_name, sources_of
from harness.export.failures import Culprit
from harness.export.program import LeftBy, Origin
from harness.export.request import LOWERINGS, ExportRequest


def origins_of(
    edge: EdgeProgramManager,
    quantised: torch.fx.GraphModule,
    request: ExportRequest,
    rules: dict[str, str],
) -> dict[str, Origin]:
    """Where the first call of each operator comes from that is not one of Cortex-M's own, by the
    operator's name without overload."""
    graph = edge.exported_program().graph
    sources = sources_of(graph, quantised.graph)
    made_from = {node.name: node for node in quantised.graph.nodes}
    found: dict[str, Origin] = {}
    for node in graph.nodes:
        name = schema_name(node)
        if name and name not in found and not name.startswith("cortex_m::"):
            source = made_from.get(sources[node.name])
            found[name] = _origin(node, name, source, request, rules.get(name, ""))
    return found


def _origin(
    node: torch.fx.Node,
    name: str,
    source: torch.fx.Node | None,
    request: ExportRequest,
    rule: str,
) -> Origin:
    stack = list(node.meta.get("nn_module_stack", {}).values())
    path, kind = stack[-1] if stack else ("", "")
    layer = f"{path} ({str(kind).rpartition('.')[2]})" if path else "the model's own forward"
    file, line = place(node, request.home)
    written = "" if source is None else schema_name(source)
    made = written if written and _plain(written) != _plain(name) else ""
    value = node.meta.get("val")
    value = value[0] if isinstance(value, list | tuple) and value else value
    dtype = getattr(value, "dtype", None)
    if rule:
        left_by = LeftBy.PARTITIONER
    elif request.compile_target in LOWERINGS or dtype is None or not dtype.is_floating_point:
        left_by = LeftBy.MODEL
    elif source is not None and "quantization_annotation" in source.meta:
        left_by = LeftBy.PASSES
    else:
        left_by = LeftBy.QUANTISER
    return Origin(layer, file, line, str(dtype or "").removeprefix("torch."), left_by, made, rule)


def _plain(name: str) -> str:
    """A copy, a functional or an inner form of an operator is the same operator."""
    return name.replace("::_", "::").removesuffix("_").removesuffix("_copy")


def culprit_of(request: ExportRequest, error: BaseException) -> Culprit | None:
    """The operator that the innermost interpreter or pass was working on when it raised, or one of
    the exceptions that led to ``error``: they hold it as a variable of their functions."""
    chain: list[BaseException] = [error]
    while (before := chain[-1].__cause__ or chain[-1].__context__) is not None:
        chain.append(before)
    found = None
    for each in reversed(chain):
        for frame, _ in traceback.walk_tb(each.__traceback__):
            nodes = [v for v in frame.f_locals.values() if isinstance(v, torch.fx.Node)]
            found = next((n for n in nodes if n.op == "call_function"), found)
        if found is not None:
            break
    if found is None:
        return None
    operator = schema_name(found).partition("::")[2]
    return Culprit(operator, layer_of(found), *place(found, request.home))
