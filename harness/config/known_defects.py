"""What ExecuTorch is known to compute wrongly, or to refuse, on a CPU: ``known_defects.yaml``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Literal

from harness.config.schema import Data, Text, checked_document
from harness.config.strict_yaml import read
from harness.core.verdict import Word

PASSES = "the exported program (ExecuTorch's passes)"  # as a culprit


class Trouble(Word):
    VIEW = "view"
    WRONG = "wrong"
    REFUSED = "refused"

    @property
    def culprit(self) -> str:
        if self is Trouble.VIEW:
            return PASSES
        refuses = ", which refuses what its exporter makes" if self is Trouble.REFUSED else ""
        return f"ExecuTorch's kernel{refuses}"


@dataclass(frozen=True, kw_only=True)
class KnownDefect(Data):
    """The file explains the fields."""

    trouble: Trouble
    what: Text
    operators: tuple[Text, ...] = ("*",)
    layout: Literal["channels-last", "mixed", "plain-image", "not-plain"] | None = None
    rank_above: int = -1
    instead: str = ""

    def fits(self, operator: str, layouts: Sequence[str], rank: int) -> bool:
        named = any(fnmatch(operator, pattern) for pattern in self.operators)
        return named and self.layout in (None, *layouts) and rank > self.rank_above


@dataclass(frozen=True, kw_only=True)
class KnownDefects(Data):
    seen_in: tuple[Text, ...]
    defects: dict[Text, KnownDefect]


@cache
def known_defects() -> KnownDefects:
    return checked_document(KnownDefects, read(Path(__file__).with_name("known_defects.yaml")))


def require_known_defect(name: str) -> str:
    """Raises ValueError."""
    if name not in known_defects().defects:
        there = ", ".join(known_defects().defects)
        raise ValueError(f"no known defect of ExecuTorch is called {name!r}; there are: {there}")
    return name
