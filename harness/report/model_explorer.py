"""Node data for Model Explorer: what each node of a run's program costs, and which one is wrong.

Arm's adapter for programs (pte-adapter-model-explorer 0.2.0) has a graph METHOD with a node
METHOD_CHAIN_INSTRUCTION for each instruction; an Ethos-U's delegate is the graph FILE::NODE with a
node REGION/opN for each TOSA operator (tosa-adapter-model-explorer 0.1.0). Its TOSA graphs are in
files ``output_tagN_…``, the largest N first executed, which Model Explorer's page cannot name: a
script does. A file of node data is one column (``node_data_builder.py`` of ai-edge-model-explorer
0.1.34): values by graph and node.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.core.errors import UsageError
from harness.export import cache
from harness.export.estimates import NpuOperator
from harness.formats.flatbuffer import FlatBuffer
from harness.formats.pte import calls_of, plans_of
from harness.formats.schema import read_schema
from harness.judge.pte_contents import ETHOS_U, instruction_bytes
from harness.run.record import RunRecord
from harness.system.files import disk_errors, read_regular, write_whole
from harness.system.paths import executorch_package

_SCRIPT = Path(__file__).with_name("model_explorer.txt")
_PROGRAM, _CALL = "program.pte", "DelegateCall"
_IN, _OUT = "0", "GraphOutputs"  # the adapters' nodes of a TOSA graph's inputs, a method's outputs
_GRADIENT = [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#f28e2b"}]
_RIGHT, _WRONG, _FIRST = "#8cd17d", "#e15759", "first wrong"

Cells = dict[str, dict[str, Any]]  # by graph and node


def write_node_data(folder: Path, record: RunRecord) -> Path:
    """Write the program, its delegates' graphs, a file for each column, and a script.

    Returns the script, which shows them. Raises UsageError without a program, MalformedFile, and
    DiskError."""
    facts = record.program
    if facts is None:
        raise UsageError(f"{record.title} has no program: it ended before that")
    try:
        content = read_regular(Path(facts.pte))
    except OSError as error:
        raise UsageError(f"the program of {record.title} is gone: {error}") from error
    program = cache.by_pte(facts.sha256)  # without it, delegates are shown closed
    files = [program.directory / d.tosa for d in program.delegates] if program else []
    graphs = [read_regular(file) for file in files]
    with disk_errors("writing the node data"):
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("output_tag*.tosa"):
            old.unlink()
        write_whole(folder / _PROGRAM, content)
        for tag, graph in enumerate(graphs[::-1]):
            write_whole(folder / f"output_tag{tag}_delegate{len(graphs) - 1 - tag}.tosa", graph)
        for name, column in node_data(record, content, graphs).items():
            write_whole(folder / f"{name}.json", json.dumps(column, indent=1) + "\n")
        write_whole(folder / "show.py", _SCRIPT.read_bytes())
    return folder / "show.py"


def node_data(record: RunRecord, content: bytes, graphs: Sequence[bytes]) -> dict[str, Any]:
    """By column, as Model Explorer reads it.

    ``graphs``: of the delegates, in the order of their calls; none if they are not known. Raises
    MalformedFile for ``content``, a ``.pte``."""
    plan = plans_of(content)[0]
    method = plan.get("name") or ""
    sizes = [len(chain.items("instructions")) for chain in plan.items("chains")]
    nodes = [f"{method}_{chain}_{n}" for chain, size in enumerate(sizes) for n in range(size)]
    ids = [delegate.get("id") for delegate in plan.items("delegates")]
    every = ((n, c) for n, c in zip(nodes, calls_of(plan), strict=True) if c and c.name == _CALL)
    calls = [node for node, call in every if ids[call.get("delegate_index")] == ETHOS_U]
    inside = {call: _writers(graph) for call, graph in zip(calls, graphs, strict=False)}
    cost, blame = record.program and record.program.npu_cost, record.blame
    cycles: Cells = {method: {}}
    for call, estimate in zip(calls, cost.estimates if cost else (), strict=False):
        cycles[method][call] = estimate.cycles
        if call in inside:
            cycles[f"{_PROGRAM}::{call}"] = _by_node(estimate.operators, inside[call])
    verdict: Cells = {method: {_OUT: record.verdict_text}}
    facts = {} if blame is None else blame.facts
    if (instruction := facts.get("instruction")) is not None:
        verdict[method][nodes[instruction]] = _FIRST
    if (delegate := facts.get("delegate")) is not None:
        verdict[method][calls[delegate]] = _FIRST
        if node := inside.get(calls[delegate], {}).get(facts["tensor"]):
            verdict[f"{_PROGRAM}::{calls[delegate]}"] = {node: _FIRST}
    own = zip(nodes, instruction_bytes(content), strict=True)
    colour = _RIGHT if record.verdict.passed else _WRONG
    return {
        "instructions": _column(
            {method: {nodes[t.instruction]: t.ticks for t in record.first_ticks}}
        ),
        "npu cycles": _column(cycles),
        "bytes": _column({method: {node: size for node, size in own if size}}),
        "verdict": _column(verdict, bgColor=colour),
    }


def _writers(tosa: bytes) -> dict[str, str]:
    """Return the node of each tensor that an operator of a TOSA graph writes."""
    schema = read_schema(executorch_package() / "backends/arm/tosa/schemas/tosa_1.0.fbs")
    return {
        output: f"{region.get('name')}/op{number}"
        for region in FlatBuffer(memoryview(tosa), schema, len(tosa)).root().items("regions")
        for block in region.items("blocks")
        for number, operator in enumerate(block.items("operators"))
        for output in operator.items("outputs")
    }


def _by_node(operators: Iterable[NpuOperator], writers: Mapping[str, str]) -> dict[str, int]:
    """Vela's cycle estimates. An operator that Vela adds ("#355") counts for the one before."""
    cycles, node = Counter[str](), _IN
    for each in operators:
        cycles[node := writers.get(each.tensor, node)] += each.cycles
    return dict(cycles)


def _column(cells: Cells, **style: str) -> dict[str, Any]:
    styled = {
        graph: {node: {"value": value, **style} for node, value in values.items()}
        for graph, values in cells.items()
    }
    return {graph: {"results": cell, "gradient": _GRADIENT} for graph, cell in styled.items()}
