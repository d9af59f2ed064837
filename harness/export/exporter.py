"""Who exports: the installed wheel of ExecuTorch, or a user's checkout of it. No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.core.verdict import Word

_SHOWN_COMMIT = 10  # characters


class ExporterSource(Word):
    """What ``--exporter`` takes."""

    WHEEL = "wheel"
    CHECKOUT = "checkout"


@dataclass(frozen=True)
class ExporterFacts:
    """What a record says of a checkout that exported; there are none of the wheel.

    ``dirty``: something that the export reads is not as in the commit. ``version`` is the
    checkout's ``version.txt``, ``compiled`` the version of the wheel that gave the compiled
    parts. ``notes``: what is otherwise than in a wheel built from that checkout.
    """

    path: str
    commit: str
    branch: str
    dirty: bool
    version: str
    compiled: str
    notes: tuple[str, ...] = ()


def exporter_facts(fields: Mapping[str, Any] | None) -> ExporterFacts | None:
    """From plain data. Raises TypeError, KeyError for what is none."""
    if fields is None:
        return None
    return ExporterFacts(**{**fields, "notes": tuple(fields["notes"])})


def exporter_label(facts: ExporterFacts | None, wheel: str = "") -> str:
    """As people write it: "checkout cff6f4dd32+edits", "wheel 1.5.1"."""
    if facts is None:
        return f"{ExporterSource.WHEEL} {wheel}".strip()
    edits = "+edits" if facts.dirty else ""
    return f"{ExporterSource.CHECKOUT} {facts.commit[:_SHOWN_COMMIT]}{edits}"
