"""Protects the issues of GitHub: one for a case and a cause, up to date, closed when it passes, and
nobody else's. The API is a server of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.core.judgement import Cause
from harness.nightly.history.compare import Comparison, compare
from harness.nightly.history.database import open_history
from harness.nightly.history.nights import Row
from harness.report.notify import LABEL, Issues, NotDelivered, issues_of, update_issues
from tests.nightly.history.made import TARGET, night, row

from .services import GitHub, running

ADD, MUL = f"{TARGET}/add", f"{TARGET}/mul"
OWNERS = {"npu-team": "@o/npu"}
OTHER = Cause("outputs_differ", "output 1 has another shape", 7)


@pytest.fixture
def github() -> Iterator[GitHub]:
    with running(GitHub()) as service:
        assert isinstance(service, GitHub)
        yield service


def after(folder: Path, *nights: list[Row]) -> Comparison:
    """The last of these nights, with those before it."""
    history = open_history(f"sqlite:///{folder}/h.db")
    for day, rows in enumerate(nights, 1):
        history.begin(last := night(day, ADD, MUL))
        history.append(rows)
    page = compare(history, last)
    history.close()
    return page


def both(day: int, verdict: str, **more: object) -> list[Row]:
    return [row(day, verdict, ADD, **more), row(day, case=MUL)]


def kept(page: Comparison, github: GitHub, **environ: str) -> dict[str, int]:
    issues = Issues(github.url, "o/r", "secret")
    return {what: n for what, n in update_issues(page, issues, OWNERS, environ).items() if n}


def test_an_issue_from_its_first_night_to_its_last(github: GitHub, tmp_path: Path) -> None:
    nights = [both(1, "PASS"), both(2, "MISMATCH", owner="npu-team")]
    job = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_REPOSITORY": "o/r",
        "GITHUB_RUN_ID": "77",
    }
    assert kept(after(tmp_path, *nights), github, **job) == {"opened": 1}
    (issue,) = github.issues
    assert (issue["title"], issue["labels"]) == (f"{ADD}: MISMATCH outputs_differ", [LABEL])
    for words in (
        "off by 3",
        "It fails since the night n2 and last passed in n1; nights so far: 1.",
        f"    hil run {TARGET} add",
        "Owner: @o/npu",
        "https://github.example/o/r/actions/runs/77",
    ):
        assert words in issue["body"]
    # the same night again is nothing new; the next one is
    assert kept(after(tmp_path, *nights), github, **job) == {}
    nights.append(both(3, "MISMATCH", owner="npu-team"))
    assert kept(after(tmp_path, *nights), github) == {"updated": 1}
    assert "nights so far: 2." in github.issues[0]["body"]
    # another cause is another issue; what says nothing of the product closes none
    nights.append(both(4, "MISMATCH", cause=OTHER))
    assert kept(after(tmp_path, *nights), github) == {"opened": 1}
    nights.append(both(5, "INFRA"))
    assert kept(after(tmp_path, *nights), github) == {}
    nights.append(both(6, "PASS"))
    assert kept(after(tmp_path, *nights), github) == {"closed": 2}
    assert {each["state"] for each in github.issues} == {"closed"}
    assert github.comments == [(n, "It passes in the night n6, c1.") for n in (1, 2)]
    assert kept(after(tmp_path, *nights), github) == {}


def test_an_issue_of_a_case_that_left_is_closed(github: GitHub, tmp_path: Path) -> None:
    """The case failed when it was last run: nobody will see it pass."""
    failing = after(tmp_path, both(1, "MISMATCH"))
    assert kept(failing, github) == {"opened": 1}
    history = open_history(f"sqlite:///{tmp_path}/h.db")
    history.begin(last := night(2, MUL))
    history.append([row(2, case=MUL)])
    page = compare(history, last)
    history.close()
    assert [case.state.name for case in page.cases] == ["PASSING", "LOST"]
    weekly = replace(page, night=replace(page.night, suite="weekly"))
    assert kept(weekly, github) == {}
    assert kept(page, github) == {"closed": 1}
    assert github.comments == [(1, "The case is not in the night n2, c1.")]
    (issue,) = github.issues
    assert (issue["state"], issue["state_reason"]) == ("closed", "not_planned")
    assert kept(page, github) == {}


def test_issues_of_others_stay(github: GitHub, tmp_path: Path) -> None:
    """Of people, and of another suite and branch."""
    github.issues.append({"number": 1, "state": "open", "labels": [LABEL], "body": None})
    page = after(tmp_path, both(1, "MISMATCH"))
    weekly = replace(page, night=replace(page.night, suite="weekly"))
    assert kept(weekly, github) == {"opened": 1}
    assert kept(after(tmp_path, both(1, "MISMATCH"), both(2, "PASS")), github) == {}
    assert {each["state"] for each in github.issues} == {"open"}


def test_one_fault_that_breaks_everything_opens_ten(github: GitHub, tmp_path: Path) -> None:
    """And none twice, however many pages of the API are open."""
    for number in range(1, 151):
        github.issues.append({"number": number, "state": "open", "labels": [LABEL], "body": ""})
    names = [f"{TARGET}/m{number}" for number in range(12)]
    history = open_history(f"sqlite:///{tmp_path}/h.db")
    history.begin(only := night(1, *names))
    history.append([row(1, "FAULT", name) for name in names])
    page = compare(history, only)
    history.close()
    assert kept(page, github) == {"opened": 10, "left": 2}
    assert kept(page, github) == {"opened": 2}
    assert kept(page, github) == {}
    assert len({each["title"] for each in github.issues[150:]}) == 12


def test_what_a_log_says_mentions_nobody(github: GitHub, tmp_path: Path) -> None:
    evil = Cause("operator_missing", "<!-- hil-night --> @everyone [x](http://evil) ![](y)", 7)
    kept(after(tmp_path, both(1, "FAULT", cause=evil)), github)
    body = github.issues[0]["body"]
    assert body.count("<!--") == 1
    assert " @everyone" not in body
    assert "[x]" not in body.replace("\\[", "")


def test_a_refusal_is_told(github: GitHub, tmp_path: Path) -> None:
    page = after(tmp_path, both(1, "FAULT"))
    with pytest.raises(NotDelivered, match="GitHub's issues: 401 Unauthorized"):
        update_issues(page, Issues(github.url, "o/r", "wrong"), OWNERS, {})
    github.fails = 403
    with pytest.raises(NotDelivered, match=r"403 .*permissions: issues: write"):
        kept(page, github)
    github.fails = 0
    with pytest.raises(NotDelivered, match="Connection refused"):
        update_issues(page, Issues("http://127.0.0.1:9", "o/r", "secret"), OWNERS, {})


def test_without_a_token_there_are_none() -> None:
    job = {"GITHUB_TOKEN": "t", "GITHUB_REPOSITORY": "o/r", "GITHUB_API_URL": "https://ghe/api/v3"}
    assert issues_of(job) == Issues("https://ghe/api/v3", "o/r", "t")
    assert issues_of({"GITHUB_REPOSITORY": "o/r"}) is None
