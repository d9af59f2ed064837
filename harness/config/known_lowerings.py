"""What ExecuTorch lowers wrongly or not at all; ``known_lowerings.yaml`` explains the fields."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from harness.config.schema import Data, Text, checked_document
from harness.config.strict_yaml import read


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

    @property
    def sentence(self) -> str:
        """What it is, with where ExecuTorch's people talk of it."""
        numbers = " and ".join(map(str, self.issues))
        fixed = f", fixed by {' and '.join(map(str, self.fixed_by))}" if self.fixed_by else ""
        which = f" (ExecuTorch's issue{'s' * (len(self.issues) > 1)} {numbers}{fixed})"
        return f"known: {self.what}{which if self.issues else fixed}"


@dataclass(frozen=True, kw_only=True)
class _KnownLowerings(Data):
    lowerings: dict[Text, KnownLowering]


@cache
def known_lowerings() -> dict[str, KnownLowering]:
    file = Path(__file__).with_name("known_lowerings.yaml")
    return checked_document(_KnownLowerings, read(file)).lowerings


def find_known(operators: Collection[str], compile_target: str, text: str = "") -> str:
    """The name of the first that fits, or "". ``operators``: those that may be at fault; ``text``:
    of an exception, "" for a result that differs."""
    names = {name.removesuffix("_") for name in operators}  # in place, or not
    for name, known in known_lowerings().items():
        fits = any(fnmatch(compile_target, pattern) for pattern in known.targets)
        says = re.search(known.message, text) if known.message else not text
        met = all(names.intersection(each.split("|")) for each in known.operators)
        if fits and says and met:
            return name
    return ""
