"""Protects programs that read ``--json``: an answer keeps its keys, and has a version."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from harness.cli.main import main
from harness.cli.verb import JSON_VERSION
from harness.export.program import Program
from tools.reference import JSON_FIELDS, json_fields

CASE = {
    *("case", "verdict", "verdict_text", "cause", "notes", "metrics", "worst_lsb"),
    *("tolerance_lsb", "firmware", "exporter", "simulator", "differences", "oracles", "run_dir"),
    *("input_sets", "by_design", "differential"),
}
LOG = {
    *("log", "verdict", "cause", "notes", "unknown", "lines", "progress", "metrics", "pmu"),
    *("bundle_passes", "outputs", "stop", "versions"),
}
ERROR = {"verdict", "cause", "hint", "metrics", "run_dir"}
# In this order, in one folder: a program, a log, and the run that the first row makes.
ANSWERS = {
    "run host add": {*CASE, "cases"},
    "judge {run}": CASE,
    "judge run.log": LOG,
    "gate host/add": {"failed", "gates"},
    "size add.pte": {
        "file",
        "kind",
        "total",
        "unknown",
        "parts",
        "memory",
        "dropped",
        "notes",
        "memory_plan",
    },
    "size add.pte add.pte --why 10": {
        *("old", "new", "old_total", "new_total", "delta", "parts", "memory", "why"),
    },
    "link explain link.log": {
        *("source", "failed", "linked", "stopped", "output", "objects_read", "failures", "more"),
    },
    "doctor": {"tools", "zephyr", "boards", "missing", "state"},
    "history": ERROR,  # it is empty
    "why host/add": {*CASE, "time", "meaning", "do", "console"},
    "accept host/add --reason test --dry-run": ERROR,  # there is no place for it
    "exec host add.pte {inputs} -o out": {
        *("verdict", "cause", "metrics", "firmware", "outputs", "run_dir"),
    },
    "targets": {"targets"},
    "models": {"models", "unavailable"},
    # without an answer
    "run host": ERROR,
    "size none.pte": ERROR,
}


def row_of(line: str) -> str:
    """The row of the reference that has the fields of ``line``'s answer."""
    by_words = {"judge {run}": "judge RUN_DIR", "judge run.log": "judge LOG"}
    by_words |= {"size add.pte": "size FILE", "size add.pte add.pte --why 10": "size OLD NEW"}
    words = line.split()
    pairs = (by_words.get(line, ""), " ".join(words[:2]), words[0])
    return next(row for row in pairs if row in JSON_FIELDS)


def test_the_reference_has_every_verb() -> None:
    """``docs/reference/json.md`` is made of these rows."""
    context = click.Context(main, info_name="hil")
    verbs: set[str] = set()
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        below = command.commands if isinstance(command, click.Group) else {"": command}
        verbs |= {f"{name} {verb}".strip() for verb in below}
    rows = JSON_FIELDS.keys() | {"history show", "judge", "size", "suite"}
    assert verbs <= rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, add: Program) -> Path:
    made = tmp_path_factory.mktemp("json")
    (made / "add.pte").write_bytes(add.pte_path.read_bytes())
    (made / "run.log").write_text("I [executorch:runner.cpp:1] Model executed successfully.\n")
    (made / "link.log").write_text(
        "/usr/bin/ld: x.o: in function `g':\nundefined reference to `f'\n"
    )
    return made


@pytest.mark.parametrize("line", ANSWERS)
def test_an_answer_has_its_keys(
    line: str,
    folder: Path,
    inputs: list[str],
    shared_hil_home: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HIL_HOME", shared_hil_home)
    monkeypatch.setenv("HIL_HISTORY", f"sqlite:///{folder}/nights.db")
    words = line
    if "{run}" in line:
        printed = CliRunner().invoke(main, ["run", "host", "add", "--json"]).stdout
        words = line.format(run=json.loads(printed)["run_dir"])
    words = words.format(inputs=shlex.join(inputs))
    done = CliRunner().invoke(main, [*shlex.split(words), "--json"])
    answer = json.loads(done.stdout)
    assert answer["version"] == JSON_VERSION
    assert ANSWERS[line] <= answer.keys()
    if ANSWERS[line] is not ERROR:
        assert answer.keys() - {"version"} <= json_fields(row_of(line))
    if "cause" in answer and answer["cause"] is not None:
        assert answer["cause"].keys() == {"kind", "text", "line", "facts"}
