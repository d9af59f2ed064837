"""Node data for Model Explorer: what each node of a run's program costs, and which one is wrong.

Arm's adapter for programs (pte-adapter-model-explorer 0.2.0) shows a method as a graph of its
name, with a node METHOD_CHAIN_INSTRUCTION for each instruction; an Ethos-U's delegate is the graph
FILE::NODE, made from its TOSA graph by tosa-adapter-model-explorer 0.1.0, with a node REGION/opN
for each operator. A file of node data is one column (ai-edge-model-explorer 0.1.34,
``node_data_builder.py``): values by graph and node.

The adapter takes the graphs of delegates from files named ``output_tagN_…``, the largest N first
executed. Model Explorer's own page does not let one name them, so a script does.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.core.errors import UsageError
from harness.export import cache
from harness.formats.flatbuffer import FlatBuffer
from harness.formats.pte import calls_of, plans_of
from harness.formats.schema import read_schema
from harness.judge.pte_contents import ETHOS_U, instruction_bytes
from harness.run.record import RunRecord
from harness.system.files import disk_errors, write_whole
from harness.system.paths import executorch_package

_SCRIPT = Path(__file__).with_name("model_explorer.txt")
_PROGRAM, _OPEN = "program.pte", "show.py"
_IN, _OUT = "0", "GraphOutputs"  # the adapters' nodes of a TOSA graph's inputs, a method's outputs
_GRADIENT = [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#f28e2b"}]
_RIGHT, _WRONG = "#8cd17d", "#e15759"

Cells = dict[str, dict[str, Any]]  # by graph and node


def write_node_data(folder: Path, record: RunRecord) -> Path:
    """The program, its delegates' graphs, a file for each column, and the script that shows them,
    which is returned. Raises UsageError without a program, MalformedFile, and DiskError."""
    facts = record.program
    if facts is None:
        raise UsageError(f"{record.title} has no program: it ended before that")
    try:
        content = Path(facts.pte).read_bytes()
    except OSError as error:
        raise UsageError(f"the program of {record.title} is gone: {error}") from error
    program = cache.by_pte(facts.sha256)  # without it, delegates are shown closed
    graphs = (
        [(program.directory / d.tosa).read_bytes() for d in program.delegates] if program else []
    )
    with disk_errors("writing the node data"):
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / _PROGRAM, content)
        for number, graph in enumerate(graphs):
            tag = len(graphs) - 1 - number
            write_whole(folder / f"output_tag{tag}_delegate{number}.tosa", graph)
        for name, column in node_data(record, content, graphs).items():
            write_whole(folder / f"{name}.json", json.dumps(column, indent=1) + "\n")
        write_whole(folder / _OPEN, _SCRIPT.read_bytes())
    return folder / _OPEN


def node_data(record: RunRecord, content: bytes, graphs: Sequence[bytes]) -> dict[str, Any]:
    """By column, as Model Explorer reads it. ``graphs``: of the delegates, in the order of their
    calls; none if they are not known. Raises MalformedFile for ``content``, a ``.pte``."""
    plan = plans_of(content)[0]
    method = plan.get("name") or ""
    sizes = [len(chain.items("instructions")) for chain in plan.items("chains")]
    nodes = [f"{method}_{chain}_{n}" for chain, size in enumerate(sizes) for n in range(size)]
    ids = [delegate.get("id") for delegate in plan.items("delegates")]
    calls = [
        nodes[number]
        for number, call in enumerate(calls_of(plan))
        if call and call.name == "DelegateCall" and ids[call.get("delegate_index")] == ETHOS_U
    ]
    written = {f"{_PROGRAM}::{call}": _writers(g) for call, g in zip(calls, graphs, strict=False)}
    ticks = {nodes[t.instruction]: t.ticks for t in record.first_ticks}
    own = {node: size for node, size in zip(nodes, instruction_bytes(content), strict=True) if size}
    columns = {
        "instructions": _coloured({method: ticks}),
        "npu cycles": _coloured({method: {}, **_cycles(record, calls, written)}),
        "bytes": _coloured({method: own}),
    }
    cells: Cells = {method: {_OUT: _judged(record.verdict_text, right=record.verdict.passed)}}
    for graph, node in _wrong(record, method, nodes, calls, written):
        cells.setdefault(graph, {})[node] = _judged("first wrong", right=False)
    return {**columns, "verdict": {graph: {"results": cell} for graph, cell in cells.items()}}


def _writers(tosa: bytes) -> dict[str, str]:
    """The node of each tensor that an operator of a TOSA graph writes."""
    schema = read_schema(executorch_package() / "backends/arm/tosa/schemas/tosa_1.0.fbs")
    return {
        output: f"{region.get('name')}/op{number}"
        for region in FlatBuffer(memoryview(tosa), schema, len(tosa)).root().items("regions")
        for block in region.items("blocks")
        for number, operator in enumerate(block.items("operators"))
        for output in operator.items("outputs")
    }


def _cycles(
    record: RunRecord, calls: Sequence[str], written: Mapping[str, Mapping[str, str]]
) -> Cells:
    """Vela's estimates. What Vela adds ("#355") is of the operator before."""
    cost = None if record.program is None else record.program.npu_cost
    cells: Cells = {}
    for call, estimate in zip(calls, () if cost is None else cost.estimates, strict=False):
        graph = f"{_PROGRAM}::{call}"
        cells.setdefault(call.rsplit("_", 2)[0], {})[call] = estimate.cycles
        cycles, node = Counter[str](), _IN
        for operator in estimate.operators if graph in written else ():
            node = written[graph].get(operator.tensor, node)
            cycles[node] += operator.cycles
        cells[graph] = dict(cycles)
    return cells


def _wrong(
    record: RunRecord,
    method: str,
    nodes: Sequence[str],
    calls: Sequence[str],
    written: Mapping[str, Mapping[str, str]],
) -> Iterator[tuple[str, str]]:
    """Graph and node of the first wrong instruction, and of the operator in its delegate."""
    facts = {} if record.blame is None else record.blame.facts
    if (instruction := facts.get("instruction")) is not None:
        yield method, nodes[instruction]
    if (delegate := facts.get("delegate")) is not None:
        yield method, calls[delegate]
        graph = f"{_PROGRAM}::{calls[delegate]}"
        if node := written.get(graph, {}).get(facts.get("tensor", "")):
            yield graph, node


def _judged(text: str, *, right: bool) -> dict[str, str]:
    return {"value": text, "bgColor": _RIGHT if right else _WRONG}


def _coloured(cells: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    return {
        graph: {"results": {n: {"value": v} for n, v in cell.items()}, "gradient": _GRADIENT}
        for graph, cell in cells.items()
    }
