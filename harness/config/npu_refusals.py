"""Ways round a rule that keeps an operator off an Ethos-U; ``npu_refusals.yaml`` has the fields."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness.config.schema import Data, Text, checked_document
from harness.config.strict_yaml import read


@dataclass(frozen=True, kw_only=True)
class _Refusals(Data):
    refusals: dict[Text, dict[Text, Text]]


@cache
def refusals() -> dict[str, dict[str, str]]:
    file = Path(__file__).with_name("npu_refusals.yaml")
    return checked_document(_Refusals, read(file)).refusals


def way_round(why: str) -> str:
    """Of the first row that fits the partitioner's reason, or ""."""
    return next((r["instead"] for r in refusals().values() if re.search(r["why"], why)), "")
