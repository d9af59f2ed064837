"""Protects that no program runs whose tensors share memory: an exported one or the user's."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.core.errors import HarnessError
from harness.core.verdict import Verdict
from harness.export.program import Program
from harness.run import pipeline
from harness.run.execution import execute
from harness.run.pipeline import RunOptions, run_cases
from harness.run.record import RunRecord
from harness.size.memory_plan import MemoryPlanError, memory_plans
from harness.system.progress import silent
from tests.size.plan_samples import with_offset

CASE = Case("corstone-300-m55", "resnet8")


@pytest.fixture
def program(
    exported: Callable[..., Program], shared_hil_home: str, monkeypatch: pytest.MonkeyPatch
) -> Program:
    """A network in which two convolutions read one tensor."""
    monkeypatch.setenv("HIL_HOME", shared_hil_home)
    return exported("resnet8")


def overwritten(program: Program) -> tuple[bytes, int]:
    """The program with the result of instruction 3 where its own input is, and that result."""
    (plan,) = memory_plans(program.pte_path, program.layers)
    made = {
        life.first: life for life in plan.tensors if life.maker == plan.instructions[life.first]
    }
    content = program.pte_path.read_bytes()
    return with_offset(content, made[3].value, made[2].start + 16), made[3].value


def refused(record: RunRecord) -> dict[str, object]:
    """The facts of the refusal; nothing was run."""
    assert (record.verdict, record.run_dir) == (Verdict.EXPORT_ERROR, None)
    assert record.cause is not None
    assert record.cause.kind == "memory_plan"
    assert record.cause.facts is not None
    return record.cause.facts


def test_an_exported_program_is_refused_with_the_layer(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, value = overwritten(program)
    shutil.copytree(program.directory, tmp_path / "program")
    (tmp_path / "program" / program.pte).write_bytes(content)
    wrong: list[Program | HarnessError] = [replace(program, directory=tmp_path / "program")]
    monkeypatch.setattr(pipeline, "export_cases", lambda *_: wrong)
    (record,) = run_cases([CASE], RunOptions())
    facts = refused(record)
    assert (facts["instruction"], facts["overwritten_by"]) == (3, value)
    assert facts["layer"] == program.layers[3]


def test_the_alignment_of_executorchs_planner_is_asked_of_an_export_alone(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (plan,) = memory_plans(program.pte_path)
    scratch = next(n for n in plan.tensors if n.start and n.maker.startswith("scratch"))
    content = with_offset(program.pte_path.read_bytes(), scratch.value, scratch.start + 1)
    shutil.copytree(program.directory, tmp_path / "program")
    file = tmp_path / "program" / program.pte
    file.write_bytes(content)
    wrong: list[Program | HarnessError] = [replace(program, directory=tmp_path / "program")]
    monkeypatch.setattr(pipeline, "export_cases", lambda *_: wrong)
    (record,) = run_cases([CASE], RunOptions())
    refused(record)
    assert record.cause is not None
    assert "is not aligned to 16 bytes" in record.cause.text


def test_a_users_program_is_refused(program: Program, tmp_path: Path) -> None:
    content, value = overwritten(program)
    (tmp_path / "mine.pte").write_bytes(content)
    (record,) = run_cases([CASE], RunOptions(pte=tmp_path / "mine.pte"))
    assert refused(record)["overwritten_by"] == value
    inputs = [program.directory / name for name in program.sets[0].inputs]
    with pytest.raises(MemoryPlanError, match="is overwritten by instruction 3"):
        execute(CASE.target, tmp_path / "mine.pte", inputs, tmp_path / "out", RunOptions(), silent)
    assert not list(tmp_path.glob("out*"))
