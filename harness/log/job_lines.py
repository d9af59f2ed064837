"""What a job prints around a run and means nothing by: the rows of ``job_lines.yaml``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import yaml

JOB_LINES: Final = Path(__file__).with_name("job_lines.yaml")


@cache
def job_lines() -> tuple[Mapping[str, str], ...]:
    """The rows: ``regex``, ``example``, ``source``."""
    return tuple(yaml.load(JOB_LINES.read_bytes(), yaml.CBaseLoader))


_BLANK: Final = bytes(range(0x21))  # and control characters


@cache
def _any_row() -> re.Pattern[bytes]:
    return re.compile("|".join(f"(?:{row['regex']})" for row in job_lines()).encode())


def is_job_line(line: bytes) -> bool:
    """``line``: without a CI system's time stamp and a tool's prefix."""
    return not line.strip(_BLANK) or _any_row().search(line) is not None
