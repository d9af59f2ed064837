"""What ``--json`` promises: a version, and how something in it goes away.

Within a version a field keeps its name, type and meaning; fields may be added. One that is to go is
first a row of ``DEPRECATED``: the schema marks it, and every answer that has it says so. It goes
with the next version. ``hil schema`` prints the schemas (``outputs``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

VERSION: Final = 1


class Deprecated(NamedTuple):
    """A field at the top of a verb's answer; ``instead``: what to read in its place."""

    verb: str  # as outputs.OUTPUTS has it
    field: str
    instead: str
    since: str  # the release that first said so


DEPRECATED: Final[tuple[Deprecated, ...]] = ()


def answer(
    verb: str, result: dict[str, Any], deprecated: Iterable[Deprecated] = DEPRECATED
) -> dict[str, Any]:
    """``result`` as it is printed."""
    said = [
        f"{row.field} is deprecated since {row.since}: {row.instead}"
        for row in deprecated
        if row.verb == verb and row.field in result
    ]
    return {"version": VERSION, **result, **({"deprecations": said} if said else {})}
