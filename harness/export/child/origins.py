"""Asks the exporter who left each operator to a kernel on the CPU, and for which layer.

The quantiser's annotations say whether it chose the operator, and the quantised model's operator in
its place whether a decomposition made it. The NPU's partitioner is asked for its rule when it has
decided.
"""

from __future__ import annotations

import traceback
from typing import Any

import torch
from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner
from executorch.backends.arm.operator_support.tosa_supported_operators import tosa_support_factory
from executorch.backends.arm.tosa.specification import TosaLoweringContext
from executorch.exir import EdgeProgramManager
from executorch.exir.backend.partitioner import Partitioner, PartitionResult
from executorch.exir.backend.utils import WhyNoPartitionReporter
from torch.export import ExportedProgram

from harness.export.child.lower import sources_of, user_place
from harness.export.failures import Culprit
from harness.export.program import LeftBy, Origin
from harness.export.request import LOWERINGS, ExportRequest


class _Reasons(WhyNoPartitionReporter):  # type: ignore[misc]  # executorch has no types
    """The first reason that the partitioner's checks give for the node that was asked about."""

    reason = ""

    def report_reject(self, node: torch.fx.Node, reason: str) -> None:
        self.reason = self.reason or reason


class AskedPartitioner(Partitioner):  # type: ignore[misc]
    """An Ethos-U's partitioner, which then says why each operator is left. ``rules``: the first
    reason for an operator, by its name in the schema; "" where its checks give none."""

    def __init__(self, spec: EthosUCompileSpec) -> None:
        super().__init__()
        self._own, self._spec = EthosUPartitioner(spec), spec
        self.delegation_spec = self._own.delegation_spec
        self.rules: dict[str, str] = {}

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        result = self._own.partition(exported_program)
        with TosaLoweringContext(self._spec.tosa_spec):
            for node in exported_program.graph.nodes:
                name = _schema_name(node)
                if name and "delegation_tag" not in node.meta and name not in self.rules:
                    self.rules[name] = self._rule(node, exported_program)
        return result

    def _rule(self, node: torch.fx.Node, program: ExportedProgram) -> str:
        reasons = _Reasons()
        checks = tosa_support_factory(self._spec.tosa_spec, program, reasons)
        taken = checks.is_node_supported({}, node)
        return "" if taken else reasons.reason or "it is not in the list of what it takes"

    def ops_to_not_decompose(self, ep: ExportedProgram) -> Any:
        return self._own.ops_to_not_decompose(ep)

    def transform_for_pre_decomposition(self, exported_program: ExportedProgram) -> ExportedProgram:
        return self._own.transform_for_pre_decomposition(exported_program)


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
        name = _schema_name(node)
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
    file, line = user_place(request, node.meta.get("stack_trace") or "")
    written = "" if source is None else _schema_name(source)
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


def _schema_name(node: torch.fx.Node) -> str:
    schema = getattr(node.target, "_schema", None)
    return "" if node.op != "call_function" or schema is None else str(schema.name)


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
    stack = list(found.meta.get("nn_module_stack", {}).values())
    place = user_place(request, found.meta.get("stack_trace") or "")
    return Culprit(_schema_name(found).partition("::")[2], stack[-1][0] if stack else "", *place)
