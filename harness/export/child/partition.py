"""Which operators of a model stay on the CPU, of which layer they are, and who left them there.

For an Ethos-U the reasons are ExecuTorch's own: each check of its partitioner reports one for a
node that it refuses (``WhyNoPartitionReporter``). ``_tag_module`` is where the partitioner hands a
reporter to the checks (1.5.1); nothing else of it is used. For all targets the quantiser's
annotations say whether it chose the operator, and the quantised model's operator in its place
whether a decomposition made it.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner
from executorch.exir import EdgeProgramManager, ExecutorchProgramManager
from executorch.exir.backend.utils import WhyNoPartitionReporter

from harness.export.child.bounds import operator_name, schema_name
from harness.export.program import CpuOperator, Delegation, LeftBy, OperatorOrigin
from harness.export.request import LOWERINGS, ExportRequest

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_COMPILERS = {"torch", "torchao", "backends", "exir"}  # folders of torch's and ExecuTorch's files
_CONVERSIONS = ("quantize_per_", "dequantize_per_")


@dataclass(frozen=True)
class _Node:
    """A node of the graph that was partitioned.

    ``source``: its name in the quantised model; ``operator``: as ``schema_name`` has it; ``why``:
    the reason, "" for one of the NPU."""

    source: str
    operator: str
    on_npu: bool
    why: str


class _Reasons(WhyNoPartitionReporter):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.first: dict[torch.fx.Node, str] = {}

    def report_reject(self, node: torch.fx.Node, reason: str) -> None:
        self.first.setdefault(node, " ".join(reason.split()))
        super().report_reject(node, reason)


class ReportingPartitioner(EthosUPartitioner):  # type: ignore[misc]
    """Remembers what it left to the CPU.

    ``quantised``: the model that is partitioned; ``lines``: those of the model that ``lines_of``
    found before it was quantised."""

    def __init__(
        self, spec: EthosUCompileSpec, quantised: torch.fx.Graph, lines: CallSites
    ) -> None:
        super().__init__(spec)
        self._quantised = quantised
        self._named = {node.name: node for node in quantised.nodes}
        self._lines = lines
        self._nodes: tuple[_Node, ...] = ()

    def _tag_module(self, module: Any, program: Any, reporter: Any, *rest: Any) -> set[str]:
        """Tag a graph; torch calls it for the body of each loop or branch, too."""
        reasons = reporter if isinstance(reporter, _Reasons) else _Reasons()
        tags: set[str] = super()._tag_module(module, program, reasons, *rest)
        sources = sources_of(module.graph, self._quantised)
        self._nodes = tuple(
            _Node(
                sources[n.name],
                schema_name(n.target),
                "delegation_tag" in n.meta,
                reasons.first.get(n, ""),
            )
            for n in module.graph.nodes
            if schema_name(n.target) and not _is_conversion(n)
        )
        return tags

    @property
    def rules(self) -> dict[str, str]:
        """The first reason for each operator that is left, by its name in the schema."""
        left = [each for each in self._nodes if each.why]
        return {each.operator: each.why for each in reversed(left)}

    def refused(self) -> tuple[CpuOperator, ...]:
        """Those without instructions: of a program that was not made."""
        return tuple(
            self._described(self._named[each.source], each.why)
            for each in self._nodes
            if not each.on_npu and each.source in self._named
        )

    def delegation(self, program: ExecutorchProgramManager) -> Delegation:
        """Read the finished program: an operator that a later pass removed is on neither side."""
        graph = program.exported_program().graph
        sources = sources_of(graph, self._quantised)
        reasons = {each.source: each.why for each in self._nodes if not each.on_npu}
        of_source: dict[str, list[torch.fx.Node]] = {}
        for node in graph.nodes:
            if instruction_of(node) is not None and not _is_conversion(node):
                of_source.setdefault(sources[node.name] or node.name, []).append(node)
        on_cpu = []
        for source, made in of_source.items():
            described = self._described(self._named.get(source, made[0]), reasons.get(source, ""))
            near = {n for node in made for n in (*node.all_input_nodes, *node.users)}
            own, around = _numbers(made), _numbers(filter(_is_conversion, near))
            on_cpu.append(replace(described, instructions=own, conversions=around))
        return Delegation(sum(each.on_npu for each in self._nodes), tuple(on_cpu))

    def _described(self, node: torch.fx.Node, why: str) -> CpuOperator:
        """Describe a node; one that a pass has replaced has only the lines of the pass."""
        found = replace(located(node, self._lines.home), why=why)
        call = self._lines.calls.get((found.layer, found.operator))
        if found.file is None and call is not None:
            return replace(found, file=call.file, line=call.line)
        return found


def located(node: torch.fx.Node, home: Path | None) -> CpuOperator:
    """Return its operator, layer and the line that calls it. ``home``: see ``place``."""
    return CpuOperator(operator_name(node), layer_of(node), *place(node, home))


@dataclass(frozen=True)
class CallSites:
    """Where a model calls its operators, by layer and operator. ``home``: see ``place``."""

    home: Path | None
    calls: dict[tuple[str, str], CpuOperator]

    @classmethod
    def of(cls, captured: torch.fx.Graph, home: Path | None) -> CallSites:
        calls = (located(n, home) for n in captured.nodes if n.op == "call_function")
        return cls(home, {(call.layer, call.operator): call for call in calls})


def sources_of(graph: torch.fx.Graph, origin: torch.fx.Graph) -> dict[str, str]:
    """Return the node of ``origin`` that each node was made from, by name; "" for none.

    It is the last of several. torch keeps them in ``from_node``."""
    places = {node.name: number for number, node in enumerate(origin.nodes)}

    def names(sources: Iterable[Any]) -> Iterator[str]:
        for source in sources:
            if source.graph_id == id(origin) and source.name in places:
                yield source.name
            yield from names(source.from_node)

    return {
        n.name: max(names(n.meta.get("from_node") or ()), key=places.__getitem__, default="")
        for n in graph.nodes
    }


def layer_of(node: torch.fx.Node) -> str:
    """Return the path of its module, "" for the model's own forward."""
    stack = [*node.meta.get("nn_module_stack", {}).values()]
    return str(stack[-1][0]) if stack else ""


def place(node: torch.fx.Node, home: Path | None) -> tuple[str | None, int | None]:
    """Return file and line that call it.

    They are the innermost line of the user's folder ``home``, else of any file that is not
    installed, else of an installed one that is not a compiler's."""
    trace = node.meta.get("stack_trace") or ""
    frames = [(Path(file), int(line)) for file, line in _FRAME.findall(trace)]
    own = [f for f in frames if home is not None and f[0].is_relative_to(home)]
    others = [f for f in frames if "site-packages" not in f[0].parts]
    models = [f for f in frames if not _COMPILERS.intersection(f[0].parts)]
    file, line = next(iter((own or others or models)[::-1]), (None, None))
    return (None if file is None else file.name), line


def instruction_of(node: torch.fx.Node) -> int | None:
    """Return its number, the node's debug handle (``_Emitter._add_debug_handle``)."""
    number = node.meta.get("debug_handle")
    return number if hasattr(node.target, "_schema") and isinstance(number, int) else None


def _numbers(nodes: Iterable[torch.fx.Node]) -> tuple[int, ...]:
    return tuple(sorted(n for node in nodes if (n := instruction_of(node)) is not None))


def _is_conversion(node: torch.fx.Node) -> bool:
    return operator_name(node).startswith(_CONVERSIONS)


def origins_of(
    edge: EdgeProgramManager,
    quantised: torch.fx.GraphModule,
    request: ExportRequest,
    rules: dict[str, str],
) -> dict[str, OperatorOrigin]:
    """Return where the first call of each operator comes from, except Cortex-M's own."""
    graph = edge.exported_program().graph
    sources = sources_of(graph, quantised.graph)
    made_from = {node.name: node for node in quantised.graph.nodes}
    found: dict[str, OperatorOrigin] = {}
    for node in graph.nodes:
        name = schema_name(node.target)
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
) -> OperatorOrigin:
    stack = list(node.meta.get("nn_module_stack", {}).values())
    path, kind = stack[-1] if stack else ("", "")
    layer = f"{path} ({str(kind).rpartition('.')[2]})" if path else "the model's own forward"
    file, line = place(node, request.home)
    written = "" if source is None else schema_name(source.target)
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
    return OperatorOrigin(
        layer, file, line, str(dtype or "").removeprefix("torch."), left_by, made, rule
    )


def _plain(name: str) -> str:
    """Name the operator without its form: a copy, a functional or an inner form is the same."""
    return name.replace("::_", "::").removesuffix("_").removesuffix("_copy")


def culprit_of(request: ExportRequest, error: BaseException) -> CpuOperator | None:
    """Return the operator that was being worked on when ExecuTorch raised.

    The innermost interpreter or pass, or one of the exceptions that led to ``error``, holds it as a
    variable of its functions."""
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
    operator = schema_name(found.target).partition("::")[2]
    return replace(located(found, request.home), operator=operator)
