"""Protects whoever reads ``--json``: the answers of every verb keep to its schema, with a version.

``hil(...).json`` of all other tests here is held against the schema, too.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from harness.bisect.search import Bisection
from harness.cli import contract
from harness.cli.main import main
from harness.cli.outputs import OUTPUTS, schema
from harness.dev.bench.ratios import Results
from harness.export.program import Program
from harness.link.failure import Failure, FailureKind
from harness.link.smaller.reduce import Reduced
from tests.report.test_bisect import BAD, COMMITS, GOOD
from tests.report.test_conformance import REPORT

from .schemas import keeps_to_schema, verb_of

# In this order, in one folder: a program, a log, and the run that the first row makes.
ANSWERED = (
    "run host add",
    "exec host add.pte {inputs} -o out",
    "why host/add",
    "why",
    "judge {run}",
    "judge run.log",
    "accept host/add --reason test --dry-run",
    "accept host/runner --reason test --dry-run",
    "size add.pte",
    "size {run}",
    "size diff add.pte add.pte --why 10",
    "gate host/add",
    "open add.pte",
    "link explain link.log",
    "standin install fvp",
    "targets",
    "models",
    "bundle {run} -o kept.tar.zst",
    "replay kept.tar.zst",
    "prune --dry-run",
    "history flaky",
    "history export nights.jsonl",
    "history import nights.jsonl",
    "history prune --keep 90d",
    "doctor",
    "init mine",
    "zephyr init zephyr --dry-run",
    "completion fish",
    "schema run",
    "test --only list",
    # without an answer
    "run host",
    "npu stats add.pte",
    "size none.pte",
)
_FAILURE = Failure(FailureKind.UNDEFINED_SYMBOL, "gnu", 1, "undefined reference to `f'", symbol="f")
# What takes longer than a test should: what the verb prints, made from what it found.
MADE: dict[str, Callable[[], dict[str, Any]]] = {
    "bisect": lambda: {
        "case": "host/add", "command": "hil run host add",
        **Bisection(COMMITS[0], COMMITS[2], BAD, (COMMITS[1],), (BAD, GOOD)).summary(),
    },
    "conformance": REPORT.as_json,
    "bench": lambda: Results((), ()).summary(),
    "link reduce": lambda: Reduced(Path("r"), _FAILURE, ("a.o",), (), 9, 3, "m").summary(),
}  # fmt: skip
# By tests that have what it takes: (file of tests/cli, a word in it)
ELSEWHERE = {
    "history show": "test_nightly.py", "history first-bad": "test_nightly.py",
    "nightly page": "test_nightly.py", "nightly merge": "test_nightly.py",
    "nightly run": "../nightly/test_two_nights.py",
    "npu run": "test_npu.py", "npu disasm": "test_npu.py", "npu stats": "test_npu.py",
    "npu reduce": "test_npu.py", "npu compare": "test_npu.py", "link check": "test_link.py",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, add: Program) -> Path:
    made = tmp_path_factory.mktemp("json")
    (made / "add.pte").write_bytes(add.pte_path.read_bytes())
    (made / "run.log").write_text("I [executorch:runner.cpp:1] Model executed successfully.\n")
    (made / "link.log").write_text(
        "/usr/bin/ld: x.o: in function `g':\nundefined reference to `f'\n"
    )
    return made


@pytest.mark.parametrize("line", ANSWERED)
def test_an_answer_keeps_to_its_schema(
    line: str,
    folder: Path,
    inputs: list[str],
    shared_hil_home: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HIL_HOME", shared_hil_home)
    monkeypatch.setenv("HIL_HISTORY", f"sqlite:///{folder}/nights.db")
    if "{run}" in line:
        said = CliRunner().invoke(main, ["run", "host", "add", "--json"]).stdout
        line = line.format(run=json.loads(said)["run_dir"])
    words = shlex.split(line.format(inputs=shlex.join(inputs)))
    done = CliRunner().invoke(main, [*words, "--json"])
    answer = json.loads(done.stdout)
    assert answer["version"] == contract.VERSION
    keeps_to_schema(verb_of(words), answer)


@pytest.mark.parametrize("verb", MADE)
def test_what_a_long_run_would_print(verb: str) -> None:
    keeps_to_schema(verb, json.loads(json.dumps(contract.answer(verb, MADE[verb]()))))


def test_every_verb_has_a_schema_and_is_held_against_it() -> None:
    context = main.make_context("hil", ["targets"])
    verbs = set()
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        below = getattr(command, "commands", None)
        verbs |= {name} if below is None else {f"{name} {part}" for part in below}
    assert verbs == set(OUTPUTS)
    tried = {verb_of(line.split()) for line in ANSWERED} | MADE.keys() | ELSEWHERE.keys()
    assert tried == verbs
    for verb, file in ELSEWHERE.items():
        word = verb.split()[0 if verb in ("history show", "nightly run") else 1]
        assert f'"{word}"' in (Path(__file__).parent / file).read_text()


@pytest.mark.parametrize("verb", OUTPUTS)
def test_a_schema_is_one(verb: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(verb))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"verdict": "PASS"}, schema(verb))


def test_what_is_to_go_is_announced() -> None:
    """In the answers that have it, and in the schema."""
    row = contract.Deprecated("models", "unavailable", "read `models`", "9.9")
    said = contract.answer("models", {"models": [], "unavailable": []}, [row])
    assert said["deprecations"] == ["unavailable is deprecated since 9.9: read `models`"]
    jsonschema.validate(said, schema("models"))
    assert "deprecations" not in contract.answer("targets", {"unavailable": []}, [row])
    fields = schema("models", [row])["$defs"]["Models"]["properties"]
    assert fields["unavailable"]["deprecated"] is True
    assert "deprecated" not in fields["models"]
