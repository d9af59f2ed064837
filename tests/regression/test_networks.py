"""``pytest -m full``: each network of the catalogue's full tier ends on each target as the table of
docs/networks.md has it. Hours without cached programs: ``-m "full and cortex_m55"`` or
``-m full -k resnet18`` runs a part."""

from __future__ import annotations

import json
from typing import Any

import pytest

from executorch_hil import RunRecord
from harness.config.case import Case
from harness.config.models import full_tier
from tools.networks import KEPT, TARGETS

ROWS: dict[str, dict[str, Any]] = json.loads(KEPT.read_text("utf-8"))


@pytest.mark.full
@pytest.mark.hil_cases(targets=list(TARGETS), models=list(full_tier()))
@pytest.mark.hil_expect("PASS", "OVER_BUDGET", "MISMATCH", "FAULT")
def test_network(hil_case: Case, hil_run: RunRecord) -> None:
    row = ROWS[hil_case.target][hil_case.model]
    cause, wanted = hil_run.cause, row["cause"]
    assert hil_run.verdict == row["verdict"], cause
    assert (cause and cause.kind) == (wanted and wanted["kind"])
