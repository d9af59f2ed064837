"""``pytest -m full``: each network of the catalogue's full tier ends on each target as the table of
docs/networks.md has it, and those that are used most as they were accepted. Hours without cached
programs: ``-m "full and cortex_m55"`` or ``-m full -k resnet18`` runs a part."""

from __future__ import annotations

import json
from typing import Any

import pytest

from executorch_hil import RunRecord
from harness.config.case import Case, is_allowed
from harness.config.loading import load_target
from harness.config.models import full_tier
from harness.firmware.sources.bundled import SOURCE, build
from harness.judge.reference import load_reference
from harness.plugin.options import option_value
from harness.run.gate import hold_measured, measure_firmware
from harness.system.paths import references_dir
from tools.networks import KEPT, TARGETS

ACCEPTED = {
    Case("corstone-300-m55", model)
    for model in ("mobilenet_v2", "mobilenet_v3_small", "resnet18", "kws_lstm", "kws_gru")
}
# What it calls of the portable library alone.
KWS_GRU = tuple(
    f"aten::{name}.out" for name in ("full", "linear", "sigmoid", "split_with_sizes_copy", "tanh")
)
ROWS: dict[str, dict[str, Any]] = json.loads(KEPT.read_text("utf-8"))


@pytest.mark.full
@pytest.mark.hil_cases(targets=list(TARGETS), models=list(full_tier()))
@pytest.mark.hil_expect("PASS", "OVER_BUDGET", "MISMATCH", "FAULT")
def test_network(hil_case: Case, hil_run: RunRecord) -> None:
    row = ROWS[hil_case.target][hil_case.model]
    cause, wanted = hil_run.cause, row["cause"]
    assert hil_run.verdict == row["verdict"], cause
    assert (cause and cause.kind) == (wanted and wanted["kind"])
    if hil_case in ACCEPTED:
        assert hil_run.expectation is not None
        assert hil_run.expectation.reference is not None
        assert hil_run.expectation.program_difference is None


@pytest.mark.parametrize("case", sorted(ACCEPTED, key=lambda c: c.id), ids=lambda c: c.id)
def test_the_networks_that_are_used_most_have_an_accepted_run(case: Case) -> None:
    """Without running it: one that disappears would be missed by no other run than the full one."""
    accepted = load_reference(references_dir(), case)
    assert accepted is not None
    assert len({digest for outputs in accepted.outputs for digest in outputs}) == 3
    assert accepted.program["pte_bytes"] == ROWS[case.target][case.model]["metrics"]["pte_bytes"]


def test_every_network_was_accepted_or_may_be_new(pytestconfig: pytest.Config) -> None:
    """Else the full run fails in CI, hours later."""
    allowed = option_value(pytestconfig, "allow-new") or []
    cases = [Case(target, model) for target in TARGETS for model in full_tier()]
    refused = [c for c in cases if not is_allowed(c, allowed)]
    assert set(refused) == ACCEPTED


@pytest.mark.parametrize("model", ["mobilenet_v2", "kws_gru"])
def test_their_runner_has_the_accepted_size(model: str) -> None:
    """Without and with the portable kernels: a kernel more is accepted for these networks, too,
    which otherwise only the full run would see."""
    target = load_target("corstone-300-m55")
    calls = KWS_GRU if model == "kws_gru" else ()
    firmware = build(target, options=SOURCE.options_for(calls))
    gate = hold_measured(measure_firmware(Case(target.name, model), firmware))
    assert gate.findings
    assert not gate.failed, gate.message()
