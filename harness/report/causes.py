"""What each cause means, and what to do about it: ``causes.yaml``."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from harness.config import strict_yaml
from harness.core.verdict import Verdict


class Advice(NamedTuple):
    meaning: str
    do: str


@cache
def causes() -> dict[str, Advice]:
    """Of every cause that has advice of its own, by its kind."""
    table = strict_yaml.read(Path(__file__).with_name("causes.yaml")).data
    return {kind: Advice(**row) for kind, row in table.items()}


def advice(verdict: Verdict, kind: str | None) -> Advice:
    """Of a cause, or of the verdict where the cause has none."""
    return causes().get(kind or "", Advice(verdict.meaning, verdict.do))
