"""One message for a night, to whoever the suite names: by apprise, which knows mail, Slack, Teams
and a hundred other services by their URLs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from harness.core.safe_text import plain
from harness.nightly.history.case_state import Standing, State
from harness.nightly.history.compare import Comparison
from harness.nightly.suite import FollowUp
from harness.report.history import reproducing
from harness.report.issues import NotDelivered, issues_of, job_url, mention, update_issues

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_MOST = 20  # cases in a message


def send(
    comparison: Comparison, urls: Sequence[str], text: str, environ: Mapping[str, str]
) -> list[str]:
    """To every service; ``$NAME`` in a URL is a variable. Returns what was not sent, and why: a
    variable that is not set, as in a job without secrets. Raises NotDelivered."""
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
    """Sends what the suite wants sent; yields what a person should know of it. Raises
    NotDelivered."""
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
    """What is new with its owners, and what else a person wants to know before the page."""
    return plain("\n".join(_lines(comparison, owners, environ))) + "\n"


def _lines(
    comparison: Comparison, owners: Mapping[str, str], environ: Mapping[str, str]
) -> Iterator[str]:
    new = [case for case in comparison.cases if case.state.is_new]
    for case in new[:_MOST]:
        yield from _of_failure(case, owners)
    if len(new) > _MOST:
        yield f"and {len(new) - _MOST} more"
    for state in (State.STILL, State.FIXED, State.GONE, State.INFRA, State.MISSING):
        if cases := comparison.of(state):
            more = f" and {len(cases) - _MOST} more" if len(cases) > _MOST else ""
            yield f"{state}: {', '.join(case.case for case in cases[:_MOST])}{more}"
    yield from (f"{case.case}: {step}, and holds" for case, step in comparison.held[:_MOST])
    origin = comparison.night.origin
    commit = f", commit {origin.revision} of {origin.branch or 'no branch'}"
    yield f"night {comparison.night.id}{commit if origin.commit else ''}"
    if url := job_url(environ):
        yield url


def _of_failure(case: Standing, owners: Mapping[str, str]) -> Iterator[str]:
    row = case.row or case.baseline
    whose = mention(row.owner, owners) if row is not None else ""
    cause = "" if row is None or row.cause is None else f" {row.cause.kind}: {row.cause.text}"
    ended = "" if row is None else f": {row.verdict}{cause}"
    yield f"{case.state}: {case.case}{ended}{f' {whose}' if whose else ''}"
    for text in filter(None, (case.flaky, case.culprit)):
        yield f"    {text}"
    if case.row is not None:
        yield f"    {reproducing(case.row)}"
