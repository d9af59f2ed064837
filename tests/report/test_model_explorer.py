"""Node data for Model Explorer: the ids are those of Arm's adapter, and the figures add up."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import UsageError
from harness.core.judgement import Blame
from harness.export import cache
from harness.export.program import Program
from harness.formats.pte import calls_of, plans_of
from harness.judge.pte_contents import instruction_bytes
from harness.log.events import OpTicks
from harness.report.model_explorer import node_data, write_node_data
from harness.run.record import ProgramFacts, RunRecord
from harness.size.measure import measure_file
from tests.run.test_record import record

Get = Callable[..., Program]
U55 = "ethos-u55-128"


@pytest.fixture
def program(exported: Get) -> Program:
    """Two delegates, and an operator on the CPU between them."""
    return exported("ds_cnn", U55)


def recorded(program: Program) -> RunRecord:
    facts = ProgramFacts.of(program, program.pte_path, program.pte_sha256)
    calls = calls_of(plans_of(program.pte_path.read_bytes())[0])
    ticks = tuple(OpTicks(0, number, "", 10 + number) for number in range(len(calls)))
    return replace(record(), program=facts, first_ticks=ticks)


def columns(program: Program, one: RunRecord) -> dict[str, Any]:
    graphs = [(program.directory / d.tosa).read_bytes() for d in program.delegates]
    found = node_data(one, program.pte_path.read_bytes(), graphs)
    return {
        name: {
            graph: {node: cell["value"] for node, cell in data["results"].items()}
            for graph, data in column.items()
        }
        for name, column in found.items()
    }


def blamed(one: RunRecord, **facts: object) -> RunRecord:
    return replace(one, blame=Blame("somebody", "somebody", facts))


def test_every_instruction_has_its_cost(program: Program) -> None:
    found = columns(program, recorded(program))
    instructions = found["instructions"]["forward"]
    assert instructions == {f"forward_0_{n}": 10 + n for n in range(7)}
    cost = program.npu_cost
    assert cost is not None
    calls = ["forward_0_1", "forward_0_5"]
    assert found["npu cycles"]["forward"] == dict(
        zip(calls, (e.cycles for e in cost.estimates), strict=True)
    )
    for call, estimate in zip(calls, cost.estimates, strict=True):
        inside = found["npu cycles"][f"program.pte::{call}"]
        assert sum(inside.values()) == sum(o.cycles for o in estimate.operators)
        assert all(node == "0" or node.startswith("main/op") for node in inside)
    blobs = [(program.directory / d.blob).stat().st_size for d in program.delegates]
    assert found["bytes"]["forward"] == dict(zip(calls, blobs, strict=True))
    assert found["verdict"] == {"forward": {"GraphOutputs": "PASS"}}


def test_the_first_wrong_operator_is_marked_in_each_graph(program: Program) -> None:
    one = recorded(program)
    on_cpu = columns(program, blamed(one, instruction=3))
    assert on_cpu["verdict"]["forward"]["forward_0_3"] == "first wrong"
    estimate = program.delegates[0].estimate
    assert estimate is not None
    tensor = estimate.operators[0].tensor
    found = columns(program, blamed(one, delegate=0, tensor=tensor))
    assert found["verdict"]["forward"]["forward_0_1"] == "first wrong"
    (node,) = found["verdict"]["program.pte::forward_0_1"]
    assert node in found["npu cycles"]["program.pte::forward_0_1"]
    unknown = columns(program, blamed(one, delegate=1, tensor="no such tensor"))
    assert set(unknown["verdict"]) == {"forward"}


def test_the_bytes_of_instructions_are_the_constants(exported: Get) -> None:
    for npu in ((), (U55,)):
        path = exported("ds_cnn", *npu).pte_path
        parts = measure_file(path).parts
        data = [part for part in parts if part.path[0] in ("constants", "delegates")]
        known = sum(part.bytes for part in data if "no instruction uses it" not in part.path[1])
        assert sum(instruction_bytes(path.read_bytes())) == known > 0


def test_the_folder_has_all_that_the_script_shows(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "by_pte", lambda _: program)
    script = write_node_data(tmp_path / "new" / "folder", recorded(program))
    names = sorted(file.name for file in script.parent.iterdir())
    assert names == [
        "bytes.json",
        "instructions.json",
        "npu cycles.json",
        "output_tag0_delegate1.tosa",
        "output_tag1_delegate0.tosa",
        "program.pte",
        "show.py",
        "verdict.json",
    ]
    compile(script.read_text(), "show.py", "exec")


def test_without_a_program_there_is_no_node_data(program: Program, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no program"):
        write_node_data(tmp_path, record())
    facts = replace(ProgramFacts.of(program, tmp_path / "gone.pte", ""), sha256="")
    with pytest.raises(UsageError, match=r"the program of .* is gone"):
        write_node_data(tmp_path, replace(record(), program=facts))


def test_the_adapter_has_each_of_these_nodes(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arm's adapter and Model Explorer's own classes, where they are installed."""
    adapter = pytest.importorskip("pte_adapter_model_explorer.main")
    builder = pytest.importorskip("model_explorer.node_data_builder")
    monkeypatch.setattr(cache, "by_pte", lambda _: program)
    tensor = program.delegates[1].outputs[0].name
    write_node_data(tmp_path, blamed(recorded(program), delegate=1, tensor=tensor))
    files = {"delegate_file_paths": [str(file) for file in tmp_path.glob("*.tosa")]}
    shown = adapter.PTEAdapter().convert(str(tmp_path / "program.pte"), files)
    graphs = [graph for each in shown["graphCollections"] for graph in each.graphs]
    nodes = {graph.id: {node.id for node in graph.nodes} for graph in graphs}
    for file in sorted(tmp_path.glob("*.json")):
        column = json.loads(file.read_text())
        assert column
        for graph, data in column.items():
            given = builder.GraphNodeData(**data)
            assert set(given.results) <= nodes[graph], f"{file.name}, {graph}"
            for cell in given.results.values():
                builder.NodeDataResult(**cell)
    marked = json.loads((tmp_path / "verdict.json").read_text())
    assert set(marked) == {"forward", "program.pte::forward_0_5"}
