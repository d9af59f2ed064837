"""Protects the verbs of nights as they are typed: words, exit codes, JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.main import main
from harness.firmware.choice import FirmwareChoice, sources_of
from harness.nightly.history.compare import Comparison
from harness.nightly.history.database import open_history
from harness.nightly.history.nights import Origin, Row
from harness.nightly.history.store import History
from harness.nightly.pool import Task
from harness.system.paths import import_root
from tests.firmware.executorch.small import small_checkout
from tests.nightly.history.made import KNOWN, TARGET, night, row
from tests.report.services import Service, running

CASE = f"{TARGET}/add"


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    """Three nights; in the last one the case failed."""
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HIL_HISTORY", f"sqlite:///{tmp_path}/h.db")
    made = open_history()
    for day, verdict in enumerate(("PASS", "INFRA", "OVER_BUDGET"), 1):
        made.begin(night(day, CASE))
        grown = {"pte_bytes": 2000 + 100 * (day - 1), "ticks_set0": 1690}
        made.append([row(day, verdict, metrics=grown)])
    return made


def said(*words: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(main, [*map(str, words)])
    assert result.exit_code == code, result.output
    if "--json" in words:
        assert json.loads(result.stdout)["version"] == 1
    return result.output


def test_a_case_alone_shows_its_runs(there: History) -> None:
    told = said("history", CASE, code=1)
    assert told == said("history", "show", CASE, code=1)
    runs = [line.split() for line in told.splitlines() if line.startswith("20")]
    assert [words[2] for words in runs] == ["PASS", "INFRA", "OVER_BUDGET"]
    assert {"2,000", "1,690"} < {*runs[0]}
    assert {"2,200", "1,690"} < {*runs[2]}
    assert len(json.loads(said("history", CASE, "-n", "2", "--json", code=1))["runs"]) == 2


def test_a_growth_is_reported_with_the_run_before_it(there: History) -> None:
    told = said("history", CASE, code=1)
    assert "first bad  2026-03-03 02:00  night n3  OVER_BUDGET" in told
    assert "last good  2026-03-01 02:00  night n1" in told
    assert "runs between them that say nothing of the product: 1" in told
    assert "pte_bytes 2,000 -> 2,200 (+200, +10.0%)" in told
    assert "nothing that the history knows of differs" in told
    found = json.loads(said("history", CASE, "--json", code=1))
    assert found["figures"] == {"pte_bytes": [2000, 2200]}


def test_since_when_it_fails_of_a_cause_and_on_a_branch(there: History) -> None:
    from harness.core.judgement import Cause

    there.append([row(4, "FAULT", cause=Cause("bad_target", "typo")), row(5, "OVER_BUDGET")])
    topic = Origin("topic", "c9")
    there.append([row(2, "HANG", origin=topic, night="t2")])
    told = said("history", CASE, "--cause", "typo", code=1)
    assert "first bad  2026-03-04 02:00  night n4  FAULT" in told
    assert "before, of another cause: 2026-03-03 02:00  night n3" in told
    assert "night n3  OVER_BUDGET" in said("history", CASE, code=1)
    assert "HANG" not in said("history", CASE, code=1)
    found = json.loads(said("history", CASE, "--branch", "topic", "--json", code=1))
    assert [each["night"] for each in found["runs"]] == ["t2"]
    assert (found["suite"], found["branch"]) == ("suite", "topic")
    assert "has no run of" in said("history", CASE, "--suite", "weekly", code=2)


def test_commits_of_a_checkout_lead_to_bisect(there: History) -> None:
    from dataclasses import replace

    from tests.nightly.history.made import KNOWN

    good, bad = "a" * 40, "b" * 40
    there.append(
        [
            row(4, identity=replace(KNOWN, sources=good)),
            row(5, "FAULT", identity=replace(KNOWN, sources=bad)),
        ]
    )
    told = said("history", CASE, code=1)
    assert f"next: hil bisect {TARGET} add --good {good[:12]} --bad {bad[:12]}" in told
    assert f"firmware sources: {good[:12]}… -> {bad[:12]}…" in told


def test_a_case_that_nobody_ran_is_reported_with_what_was_meant(there: History) -> None:
    told = said("history", f"{TARGET}/adt", code=2)
    assert f"the history has no run of {TARGET}/adt" in told
    assert f"did you mean {CASE}" in told


def test_a_history_is_copied_to_a_file_and_back(there: History, tmp_path: Path) -> None:
    said("history", "copy", "--to", tmp_path / "x.db")
    other = f"sqlite:///{tmp_path}/other.db"
    words = ("history", "copy", "--from", tmp_path / "x.db", "--to", other)
    assert "3 nights and 3 rows are new, 0 were known" in said(*words)
    assert "0 nights and 0 rows are new, 6 were known" in said(*words)
    assert said("history", CASE, "--history", other, code=1) == said("history", CASE, code=1)
    (tmp_path / "x.jsonl").write_text('{"night": {}}\n' * 100)
    assert "is not a database for a history" in said(
        "history", "copy", "--from", tmp_path / "x.jsonl", code=2
    )
    assert "there is no file" in said("history", "copy", "--from", tmp_path / "n.db", code=2)
    assert "name --from or --to" in said("history", "copy", code=2)


def test_one_night_is_copied_alone(there: History, tmp_path: Path) -> None:
    """As a shard does it, whose history has others, too."""
    said("history", "copy", "--to", tmp_path / "x.db", "--night", "n2")
    exported = open_history(f"sqlite:///{tmp_path}/x.db")
    assert [n.id for n in exported.nights()] == ["n2"]
    assert [r.night for r in exported.every()] == ["n2"]
    exported.close()
    told = said("history", "copy", "--to", tmp_path / "y.db", "--night", "n9", code=2)
    assert "the history has no night n9" in told
    assert not (tmp_path / "y.db").exists()


@pytest.mark.parametrize("age", ["90", "d", "3m", "-1d"])
def test_an_age_that_is_none_removes_nothing(there: History, age: str) -> None:
    assert f"'{age}' is not a number with" in said("prune", f"--nights-older-than={age}", code=2)
    assert len(there.nights()) == 3


def test_pruning_says_what_is_gone(there: History) -> None:
    words = ("prune", "--nights-older-than", "1d")
    assert "would remove 3 nights with 3 rows of the history" in said(*words, "--dry-run")
    assert len(there.nights()) == 3
    assert "removed 3 nights with 3 rows of the history" in said(*words)
    assert there.nights() == []


def test_flaky_is_reported_with_its_verdicts(there: History) -> None:
    told = said("history", code=1)
    assert f"{CASE}: 1 PASS, 1 INFRA, 1 OVER_BUDGET of 3 equal runs" in told


def test_what_waited_for_the_database_is_delivered_by_any_verb(there: History) -> None:
    from harness.nightly.history.database import Recorder

    waiting = open_history(f"sqlite:///{Recorder(there).outbox}")
    waiting.append([row(4)])
    waiting.close()
    assert "n4" in said("history", CASE)


def test_merging_tells_what_is_missing(there: History, tmp_path: Path) -> None:
    shard = open_history(f"sqlite:///{tmp_path}/s1/x.db")
    shard.begin(night(9, "t/a", "t/b", CASE, shards=2))
    shard.append([row(9, case="t/a")])
    shard.close()
    told = said("nightly", "merge", tmp_path / "s1", code=3)
    assert "shard 1/2 is missing, or did not end" in told
    assert "missing (2)\n  t/b" in told


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--resume", "--night", "x"), "both name the night"),
        (("suite.yaml", "--firmware", "both"), "the suite names its own"),
        (("suite.yaml", "--shard", "3/2"), "'3/2' is not a shard"),
        (("suite.yaml", "--shard", "1/2"), "--shard needs the --night that it is of"),
        (("nowhere.yaml",), "there is no file nowhere.yaml"),
        (("suite.yaml", "--history", "x.db"), "x.db is not a database for a history"),
        (("suite.yaml", "--resume"), "no unfinished night of suite"),
    ],
)
def test_what_cannot_be_run_is_refused_before_any_work(
    words: tuple[str, ...], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HIL_HOME", str(tmp_path))
    Path("suite.yaml").write_text("cases:\n  - {targets: [host], models: [add]}\n")
    assert why in said("nightly", *words, code=2)


def test_help_teaches() -> None:
    assert "quarantine:" in said("nightly", "--help")
    assert "since when it fails" in said("history", "-h")
    assert "--shard" in said("nightly", "run", "--help")


NEED_THE_EXTRA = (
    ("history", CASE),
    ("history",),
    ("history", "copy", "--to", "x"),
    ("prune", "--nights-older-than", "1d"),
    ("nightly", "suite.yaml"),
    ("nightly", "merge", "."),
)
WITHOUT_IT = f"""
import json, sys
sys.modules["sqlalchemy"] = None
from click.testing import CliRunner
from harness.cli.main import main
for words in {NEED_THE_EXTRA!r}:
    done = CliRunner().invoke(main, words)
    print(json.dumps([done.exit_code, done.stderr]))
"""


def test_without_the_extra_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text("cases:\n  - {targets: [host], models: [add]}\n")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_IT],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "HIL_HOME": str(tmp_path), "PYTHONPATH": str(import_root())},
    )
    ended = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(ended) == len(NEED_THE_EXTRA), done.stderr
    for words, (code, errors) in zip(NEED_THE_EXTRA, ended, strict=True):
        assert code == 3, (words, errors)
        assert "the history needs the Python package sqlalchemy" in errors
        assert "pip install 'alembic" in errors


def test_a_run_imports_nothing_of_the_history() -> None:
    """Start-up of the main job does not change, and SQLAlchemy is an extra."""
    asked = "import sys, harness.cli.run, harness.run.pipeline; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True, env=os.environ
    ).stdout.split()
    assert not [
        m for m in modules if m.startswith(("sqlalchemy", "alembic", "harness.nightly.history"))
    ]


def test_json_of_a_page_and_of_a_merge(
    there: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert json.loads(said("nightly", "page", "--json"))["night"] == "n3"
    (tmp_path / "shard").mkdir()
    said("history", "copy", "--to", tmp_path / "shard" / "lines.db")
    merged = CliRunner().invoke(main, ["nightly", "merge", str(tmp_path / "shard"), "--json"])
    assert {"night", "cases", "missing_shards"} <= json.loads(merged.stdout).keys()


def test_a_night_is_told_to_whom_the_suite_names(
    there: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once more by hand; of a pull request nothing is sent; what does not arrive is no success."""
    suite = tmp_path / "suite.yaml"
    cases = f"cases: [{{targets: [{TARGET}], models: [add]}}]\n"
    suite.write_text(cases)
    assert "neither notify: nor issues:" in said("nightly", "page", "--tell", suite, code=2)
    suite.write_text(cases + 'notify: ["json://127.0.0.1:$CHAT/x"]\nissues: true\n')
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    monkeypatch.delenv("CHAT", raising=False)
    text = said("nightly", "page", "--tell", suite)
    assert "hil: issues are not kept: $GITHUB_TOKEN" in text
    assert "hil: not sent to json: $CHAT is not set" in text
    with running(Service()) as chat:
        monkeypatch.setenv("CHAT", str(chat.port))
        said("nightly", "page", "n3", "--tell", suite)
        assert "new: corstone-300-m55/add: OVER_BUDGET" in chat.received[0][2]["message"]
        pull = night(4, CASE, origin=Origin("topic", "c4", pull_request="7"))
        there.begin(pull)
        there.append([row(4, "FAULT")])
        said("nightly", "page", "n4", "--tell", suite)
        chat.fails = 500
        assert "not sent to json" in said("nightly", "page", "n3", "--tell", suite, code=3)
        assert len(chat.received) == 2


class Scripted:
    """Workers of which every case fails, with the firmware of commit b."""

    room = 1

    def __init__(self, *_: object) -> None: ...

    def run(self, task: Task) -> tuple[Row, ...]:
        (planned,) = task.job.planned
        identity = replace(KNOWN, sources="b" * 40)
        more = {"identity": identity, "source": "executorch", "origin": task.night.origin}
        failed = row(2, "MISMATCH", planned.case, night=task.night.id, model="qadd", **more)
        return (failed,)

    def close(self) -> None: ...


def test_a_night_bisects_what_is_new_and_tells_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the checkout, its parts and the minutes that command line and suite name; the commit is
    in terminal, JSON and message. The same night once more has nothing to run and nothing to tell.
    """
    root, parts = small_checkout(tmp_path / "executorch")
    suite, case = tmp_path / "suite.yaml", f"{TARGET}/qadd [executorch]"
    suite.write_text(
        f"cases: [{{targets: [{TARGET}], models: [qadd], firmware: executorch}}]\n"
        'bisect: 7\nnotify: ["json://127.0.0.1:$CHAT/x"]\n'
    )
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HIL_HISTORY", f"sqlite:///{tmp_path}/h.db")
    nowhere = Origin()
    history = open_history()
    history.begin(night(1, case, origin=nowhere))
    good = replace(KNOWN, sources="a" * 40)
    history.append(
        [row(1, case=case, model="qadd", source="executorch", identity=good, origin=nowhere)]
    )
    asked: list[tuple[object, ...]] = []

    def bisected(page: Comparison, *rest: object) -> Iterator[tuple[str, str]]:
        asked.append(([c.case for c in page.cases if c.state.is_new], *rest[:2]))
        yield case, "the first bad commit is bbbb (somebody)"

    monkeypatch.setattr("harness.nightly.night.culprits", bisected)
    monkeypatch.setattr("harness.cli.nightly.LocalPool", Scripted)
    words = ["nightly", suite, "--night", "n2", "--executorch", root]
    words += [word for name, part in parts.items() for word in ("--part", f"{name}={part}")]
    with running(Service()) as chat:
        monkeypatch.setenv("CHAT", str(chat.port))
        assert "the first bad commit is bbbb" in said(*words, code=1)
        again = said(*words, "--json", code=1)
    firmware = FirmwareChoice(sources_of("executorch"), root, parts)
    assert asked == [([case], firmware, 7)]
    assert json.loads(again)["cases"][0]["culprit"] == "the first bad commit is bbbb (somebody)"
    (message,) = chat.received
    assert "the first bad commit is bbbb (somebody)" in message[2]["message"]


def test_the_table_of_nights(there: History, tmp_path: Path) -> None:
    told = said("nightly", "page", "--index", tmp_path / "pages")
    assert told.strip() == str(tmp_path / "pages" / "index.html")
    assert 'href="night-n3.html"' in (tmp_path / "pages" / "index.html").read_text()
