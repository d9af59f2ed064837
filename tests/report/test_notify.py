"""Protects the message of a night: one, with what is new, its owners and its commit; to a server of
this machine, through apprise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from harness.nightly.history.compare import Comparison
from harness.nightly.suite import FollowUp
from harness.report.notify import Issues, NotDelivered, announce, message_of, send
from tests.report.page.nights import EVIL, M55, U85, compared

from .services import GitHub, Service, running

pytest.importorskip("apprise")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    return compared(tmp_path_factory.mktemp("nights"))


@pytest.fixture
def chat() -> Iterator[Service]:
    with running(Service()) as service:
        yield service


def test_one_message_with_all_of_it(page: Comparison, chat: Service) -> None:
    """The URL's secret is a variable's."""
    url = "json://127.0.0.1:${PORT}/$ROOM"
    text = message_of(page, {}, {})
    assert text.endswith("night n2\n")
    assert send(page, [url], text, {"PORT": str(chat.port), "ROOM": "hil"}) == []
    ((method, path, body),) = chat.received
    assert (method, path) == ("POST", "/hil")
    assert body["title"] == f"every night: {page.verdict}"
    assert f"new: {M55}/ds_cnn: MISMATCH outputs_differ: output 0 of" in body["message"]
    assert f"    hil run {M55} ds_cnn" in body["message"]
    assert f"still failing: {U85}/resnet8" in body["message"]


def test_owners_are_mentioned(page: Comparison) -> None:
    cases = [
        replace(each, tries=tuple(replace(t, owner="kernels") for t in each.tries))
        for each in page.cases
    ]
    owned = replace(page, cases=tuple(cases))
    job = {"CI_JOB_URL": "https://gitlab.example/1"}
    text = message_of(owned, {"kernels": "<@U123>"}, job)
    assert "is off by 3 LSB <@U123>\n" in text
    assert text.endswith("https://gitlab.example/1\n")
    assert "is off by 3 LSB @kernels\n" in message_of(owned, {}, {})
    assert "\x1b" not in text


def test_a_variable_that_is_not_set_sends_nothing(page: Comparison, chat: Service) -> None:
    left = send(
        page, ["json://127.0.0.1:$PORT/x", "slack://$TOKEN/x"], "x", {"PORT": str(chat.port)}
    )
    assert left == ["slack: $TOKEN is not set"]
    assert len(chat.received) == 1


def test_what_is_not_taken_is_reported_without_its_secret(page: Comparison, chat: Service) -> None:
    chat.fails = 500
    with pytest.raises(NotDelivered, match="not sent to json: it did not take") as error:
        send(page, [f"json://user:hush@127.0.0.1:{chat.port}/x"], "x", {})
    assert "hush" not in str(error.value)
    with pytest.raises(NotDelivered, match="not sent to carrier: apprise knows no such URL"):
        send(page, ["carrier://pigeon"], "x", {})


def test_issues_and_message_together(page: Comparison, chat: Service) -> None:
    follow_up = FollowUp(notify=("json://127.0.0.1:$PORT/x", "slack://$TOKEN"), issues=True)
    environ = {"PORT": str(chat.port)}
    assert list(announce(page, follow_up, environ)) == [
        "issues are not kept: $GITHUB_TOKEN or $GITHUB_REPOSITORY is not set",
        "not sent to slack: $TOKEN is not set",
    ]
    with running(GitHub()) as github:
        job = {"GITHUB_TOKEN": "secret", "GITHUB_REPOSITORY": "o/r", "GITHUB_API_URL": github.url}
        lines = list(announce(page, FollowUp(issues=True), job))
    assert lines == ["issues: 7 opened, 0 updated, 0 closed, 0 left"]
    assert EVIL not in str(github.received)


def test_the_table_of_a_gate_is_one_comment_that_is_updated() -> None:
    """Among more comments than a page of GitHub's has, and never another pull request's."""
    with running(GitHub()) as github:
        assert isinstance(github, GitHub)
        github.comments += [(7, f"talk {number}") for number in range(150)]
        github.comments.append((8, "<!-- hil-gate -->\nof another one"))
        issues = Issues(github.url, "o/r", "secret")
        assert issues.comment_once(7, "<!-- hil-gate -->", "first") == "posted"
        assert issues.comment_once(7, "<!-- hil-gate -->", "second") == "updated"
        ours = [text for number, text in github.comments if number == 7 and "hil-gate" in text]
        assert ours == ["<!-- hil-gate -->\nsecond"]
        assert github.comments[150] == (8, "<!-- hil-gate -->\nof another one")
        github.fails = 403
        with pytest.raises(NotDelivered, match="pull-requests: write"):
            issues.comment_once(7, "<!-- hil-gate -->", "third")
