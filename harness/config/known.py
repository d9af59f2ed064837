"""Tables of what is known of ExecuTorch; each explains its fields.

They have what it computes wrongly, or refuses, on a CPU (``known_defects.yaml``), what it lowers
wrongly or not at all (``known_lowerings.yaml``), and ways round a rule that keeps an operator off
an Ethos-U (``npu_refusals.yaml``)."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from harness.config.models import Layout
from harness.config.schema import Data, Text, checked_document
from harness.config.strict_yaml import read
from harness.core.verdict import Word

PASSES = "the exported program (ExecuTorch's passes)"  # as a culprit
_Table = TypeVar("_Table", bound=Data)


def _table(kind: type[_Table], name: str) -> _Table:
    return _read(kind, name)  # type: ignore[arg-type,no-any-return]  # it has a hash


@cache
def _read(kind: Any, name: str) -> Any:
    return checked_document(kind, read(Path(__file__).with_name(f"{name}.yaml")))


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


def known_defects() -> KnownDefects:
    return _table(KnownDefects, "known_defects")


def require_known_defect(name: str) -> str:
    """Return ``name``. Raises ValueError when no known defect has it."""
    if name not in known_defects().defects:
        there = ", ".join(known_defects().defects)
        raise ValueError(f"no known defect of ExecuTorch is called {name!r}; there are: {there}")
    return name


@dataclass(frozen=True, kw_only=True)
class KnownLowering(Data):
    targets: tuple[Text, ...]
    seen_in: tuple[Text, ...]
    what: Text
    operators: tuple[Text, ...] = ()
    message: Text | None = None
    issues: tuple[int, ...] = ()
    fixed_by: tuple[int, ...] = ()
    instead: Text | None = None

    def hint(self, layout: Layout) -> str | None:
        """Return a setting that helped in one of our networks; nobody tried it in the user's.

        None if the user has that ``layout`` already."""
        if self.instead is None or self.instead.startswith(f"layout: {layout.value}"):
            return None
        return f"what helped in another network: {self.instead}"

    @property
    def sentence(self) -> str:
        """Describes the defect, with the numbers of ExecuTorch's issues and fixes."""
        numbers = " and ".join(map(str, self.issues))
        fixed = f", fixed by {' and '.join(map(str, self.fixed_by))}" if self.fixed_by else ""
        which = f" (ExecuTorch's issue{'s' * (len(self.issues) > 1)} {numbers}{fixed})"
        return f"known: {self.what}{which if self.issues else fixed}"


@dataclass(frozen=True, kw_only=True)
class _KnownLowerings(Data):
    lowerings: dict[Text, KnownLowering]


def known_lowerings() -> dict[str, KnownLowering]:
    return _table(_KnownLowerings, "known_lowerings").lowerings


def find_known(operators: Collection[str], compile_target: str, text: str = "") -> str:
    """Return the name of the first lowering that fits, or "".

    ``operators``: those that may be at fault; ``text``: of an exception, "" for a result that
    differs."""
    names = {name.removesuffix("_") for name in operators}  # in place, or not
    for name, known in known_lowerings().items():
        fits = any(fnmatch(compile_target, pattern) for pattern in known.targets)
        says = re.search(known.message, text) if known.message else not text
        met = all(names.intersection(each.split("|")) for each in known.operators)
        if fits and says and met:
            return name
    return ""


@dataclass(frozen=True, kw_only=True)
class _Refusals(Data):
    refusals: dict[Text, dict[Text, Text]]


def refusals() -> dict[str, dict[str, str]]:
    return _table(_Refusals, "npu_refusals").refusals


def way_round(why: str) -> str:
    """Return the advice of the first row that fits the partitioner's reason, or ""."""
    return next((r["instead"] for r in refusals().values() if re.search(r["why"], why)), "")
