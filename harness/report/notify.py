"""Reports a night by one message and by issues on GitHub.

A gate's table is a comment on a pull request, which is kept up to date.

A message goes to the URLs that the suite names, through apprise, which knows mail, Slack, Teams and
a hundred other services.

Each case and cause has an issue. It is opened when the failure is new, kept up to date, and closed
when the case passes or leaves the suite. An invisible comment in its body identifies it among the
open issues that have the label. API: https://docs.github.com/rest/issues/issues."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from markupsafe import Markup

from harness.core.errors import InfraError
from harness.core.safe_text import listed, plain
from harness.nightly.history.case_state import CaseState, Standing
from harness.nightly.history.compare import Comparison
from harness.nightly.suite import FollowUp
from harness.report.history import reproducing
from harness.report.templates import filled
from harness.system.artifact_cache import key_of

LABEL = "hil-night"
# The digests of suite and branch, of the case, and of its cause.
_MARKER = re.compile(r"<!-- hil-night ([0-9a-f]{16}) ([0-9a-f]{16}) ([0-9a-f]{16}) -->")
_MOST_OPENED = 10  # in a night: one fault that breaks everything has no hundred issues
_AT_ONCE = 100
_TIMEOUT_S = 30.0


class NotDelivered(InfraError):
    """``service``: which, without its secrets."""

    kind = "not_delivered"

    def __init__(self, service: str, why: str) -> None:
        self.service = service
        super().__init__(
            f"not sent to {service}: {why}",
            hint="`hil nightly page --tell SUITE.yaml` or `hil gate --comment` sends it again",
        )


@dataclass(frozen=True)
class Issues:
    """The issues of a repository, OWNER/NAME. Every method raises NotDelivered."""

    api: str
    repository: str
    token: str

    def opened(self) -> Iterator[dict[str, Any]]:
        """Those with the label that are open."""
        return self._pages(f"?labels={LABEL}&state=open&")

    def open(self, title: str, body: str) -> None:
        self._call("POST", "", {"title": title, "body": body, "labels": [LABEL]})

    def update(self, number: int, **fields: str) -> None:
        self._call("PATCH", f"/{number}", fields)

    def comment(self, number: int, body: str) -> None:
        self._call("POST", f"/{number}/comments", {"body": body})

    def comment_once(self, number: int, marker: str, body: str) -> str:
        """Update the comment that begins with ``marker``, else posts it: "updated", "posted"."""
        for each in self._pages(f"/{number}/comments?"):
            if str(each["body"]).startswith(marker):
                self._call("PATCH", f"/comments/{each['id']}", {"body": f"{marker}\n{body}"})
                return "updated"
        self.comment(number, f"{marker}\n{body}")
        return "posted"

    def _pages(self, path: str) -> Iterator[dict[str, Any]]:
        for page in count(1):
            found = self._call("GET", f"{path}per_page={_AT_ONCE}&page={page}")
            yield from found
            if len(found) < _AT_ONCE:
                return

    def _call(self, method: str, path: str, fields: Mapping[str, Any] | None = None) -> Any:
        request = urllib.request.Request(
            f"{self.api}/repos/{self.repository}/issues{path}",
            None if fields is None else json.dumps(fields).encode(),
            {
                "Authorization": f"Bearer {self.token}",
                "Accept": "application/vnd.github+json",
                "X-GitHub-Api-Version": "2022-11-28",
                "Content-Type": "application/json",
            },
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            hint = (
                "; the job needs `permissions: issues: write`, for a comment `pull-requests: write`"
                if error.code == 403
                else ""
            )
            raise NotDelivered("GitHub's issues", f"{error.code} {error.reason}{hint}") from error
        except (OSError, ValueError) as error:
            raise NotDelivered("GitHub's issues", str(error)) from error


def issues_of(environ: Mapping[str, str]) -> Issues | None:
    """Return the issues of the job's repository; None without a token."""
    token = environ.get("GITHUB_TOKEN") or environ.get("GH_TOKEN")
    repository = environ.get("GITHUB_REPOSITORY")
    if not token or not repository:
        return None
    return Issues(environ.get("GITHUB_API_URL", "https://api.github.com"), repository, token)


def update_issues(
    comparison: Comparison, issues: Issues, owners: Mapping[str, str], environ: Mapping[str, str]
) -> Counter[str]:
    """Count ``opened``, ``updated``, ``closed`` and ``left`` ones. Raises NotDelivered."""
    done = Counter(opened=0, updated=0, closed=0, left=0)
    ours = _digest(comparison)
    known = {
        marker.groups(): issue
        for issue in issues.opened()
        if (marker := _MARKER.search(issue["body"] or "")) and marker[1] == ours
    }
    planned = {_digest(comparison, case.case): case for case in comparison.cases if case.planned}
    for (_, place, _), issue in known.items():
        closing = _closing(comparison, planned.get(place))
        if closing is not None:
            reason, text = closing
            issues.comment(issue["number"], text)
            issues.update(issue["number"], state="closed", state_reason=reason)
            done["closed"] += 1
    for case in comparison.failures:
        if case.row is None:
            continue  # it left the suite
        place = _digest(comparison, case.case)
        digests = (ours, place, _digest(comparison, case.case, *case.row.fault))
        body = _body(comparison, case, f"<!-- hil-night {' '.join(digests)} -->", owners, environ)
        if digests in known:
            if known[digests]["body"] != body:
                issues.update(known[digests]["number"], body=body)
                done["updated"] += 1
        elif done["opened"] < _MOST_OPENED:
            kind = " ".join(word for word in case.row.kind if word)
            issues.open(f"{case.case}: {kind}", body)
            done["opened"] += 1
        else:
            done["left"] += 1
    return done


def _closing(comparison: Comparison, case: Standing | None) -> tuple[str, str] | None:
    """Why an issue of a case is closed, for GitHub and for people; None while it stays open.

    ``case``: None for one that the suite does not have any more, or that has another name."""
    at = comparison.night.origin.revision or "a commit that is not known"
    if case is None:
        return "not_planned", f"The case is not in the night {comparison.night.id}, {at}."
    passes = case.row is not None and case.row.good
    return ("completed", f"It passes in the night {comparison.night.id}, {at}.") if passes else None


def mention(owner: str, owners: Mapping[str, str]) -> str:
    return "" if not owner else owners.get(owner, f"@{owner.lstrip('@')}")


def job_url(environ: Mapping[str, str]) -> str:
    """Return the URL of the running CI job; "" elsewhere."""
    if environ.get("GITHUB_ACTIONS") == "true":
        server, repository = environ.get("GITHUB_SERVER_URL"), environ.get("GITHUB_REPOSITORY")
        return f"{server}/{repository}/actions/runs/{environ.get('GITHUB_RUN_ID')}"
    return environ.get("CI_JOB_URL", "")


def _digest(comparison: Comparison, *words: str) -> str:
    """Digest of a suite on a branch, of one of its cases, or of a cause of that case."""
    return key_of([comparison.night.suite, comparison.night.origin.branch, *words])[:16]


def _body(
    comparison: Comparison,
    case: Standing,
    marker: str,
    owners: Mapping[str, str],
    environ: Mapping[str, str],
) -> str:
    assert case.row is not None
    values = {
        "marker": Markup(marker),
        "case": case,
        "row": case.row,
        "since": case.since,
        "night": comparison.night,
        "whose": Markup(mention(case.row.owner, owners)),
        "command": Markup(reproducing(case.row)),
        "url": Markup(job_url(environ)),
    }
    return filled(Path(__file__).with_name("issues.md"), values, {})


_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_MOST = 20  # cases in a message
# The states that a message names in short; it lists new failures in full.
_NAMED_STATES = tuple(
    state
    for state in CaseState
    if not (state.is_new or state in (CaseState.PASSING, CaseState.SKIPPED))
)


def send(
    comparison: Comparison, urls: Sequence[str], text: str, environ: Mapping[str, str]
) -> list[str]:
    """To every service; ``$NAME`` in a URL is a variable.

    Returns what was not sent, and why: a variable that is not set, as in a job without secrets.
    Raises NotDelivered."""
    import apprise  # with requests: 0.1 s

    left = []
    for url in urls:
        names = [one or other for one, other in _VARIABLE.findall(url)]
        service = url.partition("://")[0]
        if missing := [name for name in names if not environ.get(name)]:
            left.append(f"{service}: ${missing[0]} is not set")
            continue
        target = apprise.Apprise()
        if not target.add(_VARIABLE.sub(lambda v: environ[v[1] or v[2]], url)):
            raise NotDelivered(service, "apprise knows no such URL")
        title = plain(f"{comparison.night.suite}: {comparison.verdict}")
        if not target.notify(text, title, body_format=apprise.NotifyFormat.TEXT):
            raise NotDelivered(service, "it did not take the message")
    return left


def announce(
    comparison: Comparison, follow_up: FollowUp, environ: Mapping[str, str]
) -> Iterator[str]:
    """Send what the suite wants sent; yield what a person should know. Raises NotDelivered."""
    if follow_up.issues and (issues := issues_of(environ)) is None:
        yield "issues are not kept: $GITHUB_TOKEN or $GITHUB_REPOSITORY is not set"
    elif follow_up.issues and issues is not None:
        count = update_issues(comparison, issues, follow_up.owners, environ)
        yield "issues: " + ", ".join(f"{number} {what}" for what, number in count.items())
    for line in send(
        comparison, follow_up.notify, message_of(comparison, follow_up.owners, environ), environ
    ):
        yield f"not sent to {line}"


def message_of(
    comparison: Comparison, owners: Mapping[str, str], environ: Mapping[str, str]
) -> str:
    """Return the message of a night: new failures with owners, then other states and steps."""
    values = {
        "comparison": comparison,
        "new": comparison.new,
        "others": _NAMED_STATES,
        "most": _MOST,
        "origin": comparison.night.origin,
        "url": job_url(environ),
    }
    filters: dict[str, Callable[..., Any]] = {
        "command": reproducing,
        "listed": listed,
        "mention": lambda owner: mention(owner, owners),
    }
    return plain(filled(Path(__file__).with_name("message.txt"), values, filters))
