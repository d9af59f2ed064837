"""What ExecuTorch is known to lower wrongly; ``known_lowerings.yaml`` explains the fields."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from harness.config.schema import Data, Text, checked_document
from harness.config.strict_yaml import read


@dataclass(frozen=True, kw_only=True)
class KnownLowering(Data):
    operators: tuple[Text, ...]
    targets: tuple[Text, ...]
    issues: tuple[int, ...]
    seen_in: tuple[Text, ...]
    what: Text
    instead: Text


@dataclass(frozen=True, kw_only=True)
class _KnownLowerings(Data):
    lowerings: dict[Text, KnownLowering]


@cache
def known_lowerings() -> dict[str, KnownLowering]:
    file = Path(__file__).with_name("known_lowerings.yaml")
    return checked_document(_KnownLowerings, read(file)).lowerings


def find_known(operators: Collection[str], compile_target: str) -> str:
    """The name of the first that fits, or ""."""
    for name, known in known_lowerings().items():
        fits = any(fnmatch(compile_target, pattern) for pattern in known.targets)
        if fits and all(set(each.split("|")) & set(operators) for each in known.operators):
            return name
    return ""
