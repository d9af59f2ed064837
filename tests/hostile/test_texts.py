"""Targets, budgets, known failures of suites, references, entries of the cache, console logs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.config import strict_yaml
from harness.config.case import Case
from harness.config.case_budgets import read_model_file
from harness.config.loading import load_target
from harness.export import cache
from harness.export.program import Program, TensorSpec
from harness.judge.console_log import judge_file
from harness.judge.reference import load_reference, reference_path, render
from harness.report.terminal import judged_log_text
from harness.suites import suites
from harness.suites.suites import read_known_failures
from tools.clone import project_root

from . import altered, as_json, bounded, edited, refused

TARGETS = project_root() / "targets"
BASES = ["corstone-300-m55", "corstone-300-u55-128", "host"]
BUDGET = b"""budgets:
  limits: {pte_bytes: 65536, elf_ITCM: 0x80000}
  slack: {bytes: 256, share: 0.005}
  slacks: {elf_ITCM: {bytes: 0, share: 0.0}}
"""
REFERENCE = {
    "program": {"pte_bytes": 2288},
    "firmware": {"gcc 12": {"elf_text": 92124}},
    "pte_sha256": "aa",
    "outputs": [["11"], ["22"]],
    "truth": True,
    "history": [{"when": "2026-01-01", "why": "first", "toolchain": "gcc 12", "what": {}}],
    "anatomies": {},
}
LOG = b"""I [executorch:arm_executor_runner.cpp:700] Model in 0x70000000 $
I [executorch:arm_executor_runner.cpp:800] Running 1 inferences
E [executorch:method.cpp:788] kernel 'aten::exp.out' not found.
E [executorch:memory_allocator.h:85] Memory allocation failed: 6144000B requested, 2000B left
I [executorch:arm_perf_monitor.cpp:180] NPU total cycles : 1234
Output[0][0]: (float) 1.5
I [executorch:arm_executor_runner.cpp:900] Program complete, exiting.
Hard fault! CFSR 0x00008200 HFSR 0x40000000 PC 0x1234
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@bounded(60)
@given(data=st.data(), name=st.sampled_from(BASES))
def test_a_target(folder: Path, data: st.DataObject, name: str) -> None:
    file = folder / "t.yaml"
    file.write_bytes(data.draw(edited((TARGETS / f"{name}.yaml").read_bytes())))
    error = refused(lambda: load_target(str(file)).limits.scaled(2.0))
    assert error is None or error.exit_code == 2


@bounded(100)
@given(content=st.one_of(st.binary(max_size=60), edited(BUDGET)))
def test_yaml(folder: Path, content: bytes) -> None:
    file = folder / "y.yaml"
    file.write_bytes(content)
    for read in (strict_yaml.read, read_model_file):
        error = refused(read, file)
        assert error is None or error.exit_code == 2


@bounded(60)
@given(data=st.data())
def test_known_failures_of_a_suite(folder: Path, data: st.DataObject) -> None:
    whole = (Path(suites.__file__).parent / "ethos_u55.yaml").read_bytes()[:1500]
    file = folder / "k.yaml"
    file.write_bytes(data.draw(edited(whole)))
    error = refused(read_known_failures, file)
    assert error is None or error.exit_code == 2


@bounded(100)
@given(content=st.one_of(edited(as_json(REFERENCE)), altered(REFERENCE).map(as_json)))
def test_a_reference(folder: Path, content: bytes) -> None:
    case = Case("host", "add")
    file = reference_path(folder, case)
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)

    def use() -> None:
        reference = load_reference(folder, case)
        assert reference is not None
        assert json.loads(render(reference))["program"] == reference.program

    error = refused(use)
    assert error is None or error.exit_code == 2


@pytest.fixture(scope="module")
def entry(folder: Path) -> Path:
    """One of the cache, whole."""

    def write(directory: Path) -> Program:
        (directory / "program.pte").write_bytes(b"pte")
        spec = (TensorSpec("x", "int8", (1,), (0,)),)
        return Program(directory, "m", "c", "program.pte", "aa", "", spec, spec, (), (), (), {}, 0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HIL_HOME", str(folder / "home"))
        with cache.locked("key"):
            return cache.store("key", lambda place: (write(place), cache.NO_INPUTS)).directory


@bounded(60)
@given(data=st.data(), name=st.sampled_from(["entry.json", "program.json"]))
def test_an_entry_of_the_cache(entry: Path, data: st.DataObject, name: str) -> None:
    """It is whole, or it is not used."""
    whole = (entry / name).read_bytes()
    fields = json.loads(whole)
    content = data.draw(st.one_of(edited(whole), altered(fields).map(as_json)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HIL_HOME", str(entry.parents[2]))
        (entry / name).write_bytes(content)
        found = cache.load("key")
        (entry / name).write_bytes(whole)
    assert found is None or (name == "entry.json" and json.loads(content) == fields)


@bounded(100)
@given(content=st.one_of(st.binary(max_size=80), edited(LOG)))
def test_a_console_log(folder: Path, content: bytes) -> None:
    file = folder / "fvp.log"
    file.write_bytes(content)
    log = judge_file(file)
    json.dumps(log.summary())
    assert judged_log_text(log, verbose=True)
    assert not log.judgement.passed
