"""The tests that may be skipped in CI, counted by reason: ``tools/skips.yaml``.

A tool that is missing skips a test at a desk. In CI nobody would notice that a check is gone, so
there every skip needs its row, with its number.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import yaml

EXPECTED = Path(__file__).with_name("skips.yaml")


def unexpected_skips(junit: Path, expected: Path = EXPECTED) -> list[str]:
    """A sentence for each unexpected skip in a JUnit file, and each reason with too many."""
    rows: dict[str, int] = yaml.safe_load(expected.read_text()) or {}
    counts: Counter[str] = Counter()
    problems = []
    for case in ET.parse(junit).iter("testcase"):
        skipped = case.find("skipped")
        if skipped is None or skipped.get("type") == "pytest.xfail":
            continue
        reason = skipped.get("message", "")
        row = next((pattern for pattern in rows if re.search(pattern, reason)), None)
        if row is None:
            name = f"{case.get('classname')}::{case.get('name')}"
            problems.append(f"{name}: {reason!r} is not in {expected.name}")
        else:
            counts[row] += 1
    for pattern, number in rows.items():
        if counts[pattern] > number:
            problems.append(f"{counts[pattern]} for {pattern!r}; {expected.name} allows {number}")
    return problems
