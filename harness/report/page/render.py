"""A night as a file by a template: the page, and what CI services read of it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.nightly.history.case_state import NO_ROW, State
from harness.nightly.history.compare import Comparison
from harness.nightly.history.groups import short
from harness.report.history import reproducing
from harness.report.page.view import lines_of, matrix_of, trends_of
from harness.report.templates import filled
from harness.system.files import disk_errors, write_whole

HERE = Path(__file__).parent


def write_page(file: Path, page: Comparison) -> None:
    """Raises DiskError."""
    with disk_errors("writing the page"):
        write_whole(file, render(page))


def render(page: Comparison, template: str = "night.html") -> str:
    """The page is one file: nothing is fetched, and no script runs but its own, which the policy
    names by its digest (Content Security Policy Level 3, section 2.3.1)."""
    script = (HERE / "night.js").read_text("utf-8")
    values = {
        "page": page,
        "matrix": matrix_of(page.cases),
        "anchors": {case.case: f"case-{number}" for number, case in enumerate(page.cases)},
        "State": State,
        "NO_ROW": NO_ROW,
        "style": (HERE / "night.css").read_text("utf-8"),
        "script": script,
        "script_digest": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }
    return filled(HERE / template, values, filters())


def filters() -> dict[str, Callable[..., Any]]:
    return {
        "short": short,
        "number": _number,
        "signed": _signed,
        "when": _when,
        "command": reproducing,
        "lines": lines_of,
        "trends": trends_of,
        "key": lambda state: state.name.lower(),
    }


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,g}" if isinstance(value, float) else f"{value:,}"


def _signed(value: int) -> str:
    return f"{value:+,}"


def _when(time: str) -> str:
    """ "2026-11-22 02:00" of a time in ISO 8601."""
    return time[:16].replace("T", " ")
