"""A test that takes a run gets one that is proven, or one whose verdict it named beforehand.

That a test forgets to look at the verdict must not make it green; so it need not look.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from harness.core.errors import HarnessError, Unknown, UsageError
from harness.core.plain import plain
from harness.core.verdict import Verdict

if TYPE_CHECKING:
    from harness.run.record import RunRecord

EXPECT = "hil_expect"
RECORD: pytest.StashKey[RunRecord] = pytest.StashKey()


def expected_verdicts(item: pytest.Item) -> tuple[Verdict, ...]:
    """What the run of a test may end in. Raises UsageError for a marker that names no verdict."""
    marker = item.get_closest_marker(EXPECT)
    if marker is None:
        return (Verdict.PASS,)
    words = [str(word) for word in marker.args]
    for word in words:
        if word not in Verdict.__members__:
            raise Unknown(f"{EXPECT} names no verdict: {word!r}", word, Verdict.__members__)
    if marker.kwargs or not words:
        raise UsageError(f"{EXPECT} takes verdicts", hint=f'for example {EXPECT}("MISMATCH")')
    return tuple(Verdict[word] for word in words)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Before the test, and after it: it may have asked for its run by name meanwhile."""
    _require_expected(item)
    result = yield
    _require_expected(item)
    return result


def _require_expected(item: pytest.Item) -> None:
    record = item.stash.get(RECORD, None)
    if record is None:
        return
    expected = expected_verdicts(item)
    if record.verdict in expected:
        return
    if expected != (Verdict.PASS,):
        wanted = f"the test expects {' or '.join(expected)} ({EXPECT})"
    else:
        wanted = f'a test that wants to look at it says @pytest.mark.{EXPECT}("{record.verdict}")'
    pytest.fail(plain(f"{described(record)}\n{wanted}"), pytrace=False)


def require_pass(record: RunRecord) -> None:
    """Fail the test, with the cause as its whole message, unless the verdict is PASS.

    Of use where the verdict may be another one (``hil_expect``), or the record is not that of the
    ``hil_run`` fixture.
    """
    if not record.verdict.passed:
        pytest.fail(plain(described(record)), pytrace=False)


def described(record: RunRecord) -> str:
    """The verdict with its cause, its notes and where its evidence is."""
    lines = [f"{record.title}: {record.verdict_text}{cause_of(record)}"]
    lines += [f"note: {note}" for note in record.notes]
    return "\n".join([*lines, f"evidence: {record.run_dir}"])


def cause_of(record: RunRecord) -> str:
    """To stand behind the verdict; nothing for a PASS."""
    cause = record.cause
    if cause is None:
        return ""
    line = f" (console line {cause.line})" if cause.line else ""
    return f" {cause.kind}: {cause.text}{line}"


def explained(error: HarnessError) -> str:
    """An error that ended a test before it had a run."""
    hint = f"\n{error.hint}" if error.hint else ""
    return f"{error.verdict} {error.kind}: {error.message}{hint}"
