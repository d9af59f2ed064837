"""`hil nightly page`, `--html` and `--junit`: what they write and say, and how they end."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from harness.cli.main import main
from tests.report.page.nights import two_nights


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HIL_HOME", str(tmp_path / ".hil"))
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    history, _ = two_nights(tmp_path)
    history.close()
    return f"sqlite:///{tmp_path / 'history.db'}"


def test_the_newest_night_and_an_older_one(url: str, tmp_path: Path) -> None:
    out = tmp_path / "night.html"
    words = ["nightly", "page", "-o", str(out), "--history", url]
    told = CliRunner().invoke(main, words)
    assert told.exit_code == 0, told.output
    assert (
        "night n2: 6 new failures, 1 still failing, 1 in quarantine; of 2 nothing is known"
        in told.output
    )
    assert "<!DOCTYPE html>" in out.read_text()
    older = json.loads(CliRunner().invoke(main, [*words, "n1", "--json"]).stdout)
    assert older["night"] == "n1"
    assert older["counts"]["new"] == 2


def test_shards_of_one_database_are_shown_as_a_whole(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the page alone, for there is nothing to merge: JUnit, annotations, the step's summary."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    out = [str(tmp_path / name) for name in ("n.html", "j.xml")]
    words = ["nightly", "page", "n2", "-o", out[0], "--junit", out[1], "--history", url]
    told = CliRunner().invoke(main, words)
    assert told.exit_code == 0, told.output
    assert "::error title=new%3A operator" in told.output
    assert "6 new failures" in (tmp_path / "summary.md").read_text()
    assert ElementTree.parse(out[1]).getroot().get("failures") == "7"


def test_a_night_that_there_is_not(url: str, tmp_path: Path) -> None:
    """With those that there are; and a history without any."""
    unknown = CliRunner().invoke(main, ["nightly", "page", "n7", "--history", url])
    assert unknown.exit_code == 2
    assert "the history has no night n7" in unknown.output
    assert "n2, n1" in unknown.output
    empty = f"sqlite:///{tmp_path / 'empty.db'}"
    none = CliRunner().invoke(main, ["nightly", "page", "--history", empty])
    assert none.exit_code == 2
    assert "the history has no night" in none.output


def test_a_merged_night_in_ci(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Page, JUnit, annotations and the step's summary, all of one night; the exit code is that
    of the night."""
    file = tmp_path / "shard" / "nights.db"
    file.parent.mkdir()
    words = ["history", "copy", "--from", url, "--to", str(file), "--night", "n2"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    html, junit = tmp_path / "n.html", tmp_path / "n.xml"
    merged = CliRunner().invoke(
        main,
        [
            "nightly",
            "merge",
            str(file.parent),
            "--history",
            f"sqlite:///{tmp_path / 'm.db'}",
            "--html",
            str(html),
            "--junit",
            str(junit),
        ],
    )
    assert merged.exit_code in (1, 3), merged.output
    assert "::error title=new%3A operator cortex_m%3A%3Apad.out::" in merged.stdout
    assert "operator cortex_m::pad.out" in html.read_text()
    assert ElementTree.parse(junit).getroot().get("failures") == "7"
    assert "## every night" in (tmp_path / "summary.md").read_text()
