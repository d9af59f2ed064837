"""What gates protect: growth fails with its cause and how to accept it, nothing is silent."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.budgets import Budgets
from harness.config.case import RUNNER, Case
from harness.core.errors import InfraError
from harness.export.estimates import Estimate, NpuCost, NpuOperator
from harness.export.program import CpuOperator, Delegation, OutputAccuracy
from harness.judge.reference import (
    ANY_TOOLCHAIN,
    Acceptance,
    Reference,
    from_fields,
    propose,
    render,
)
from harness.report.size import summary, workflow_commands
from harness.report.summary import append_to_step_summary
from harness.run import gate as gates
from harness.run.gate import Gate, LeftOver, Measured, gate_cases, hold, unmeasured
from harness.size.anatomy import Anatomy, Part
from harness.size.measure import figures_of_firmware, figures_of_program

CASE = Case("t", "m")


def program(constants: int, extra: int = 0, scratch: int = 100) -> Measured:
    parts = [Part(("constants", "int8[9]"), constants)]
    parts += [Part(("program", "forward", "operators", "a::b"), extra)] if extra else []
    memory = (Part(("NPU scratch of EthosUBackend", "working memory"), scratch),)
    anatomy = Anatomy("pte", constants + extra, tuple(parts), memory)
    return Measured(CASE, "program", ANY_TOOLCHAIN, anatomy, figures_of_program(anatomy))


def runner(text: int, toolchain: str = "gcc 12") -> Measured:
    anatomy = Anatomy("elf", text, (Part(("ITCM", "code", ".text", "a.o", "f"), text),))
    figures = figures_of_firmware(anatomy.parts, ["ITCM", "SRAM"])
    return Measured(Case("t", RUNNER), "firmware", toolchain, anatomy, figures)


def accepted(measured: Measured) -> Reference:
    return propose(
        None,
        Acceptance(
            measured.toolchain,
            "first",
            "2026-08-22",
            (measured.stage,),
            measured.figures,
            {measured.toolchain: measured.anatomy},
        ),
    )


def held(now: Measured, before: Reference | None, budgets: Budgets | None = None) -> Gate:
    return hold(now, before, budgets or Budgets())


def states(gate: Gate) -> dict[str, str]:
    return {f.figure: f.state for f in gate.findings}


def test_growth_within_the_slack_passes() -> None:
    assert not held(program(1256), accepted(program(1000))).failed


def test_growth_beyond_the_slack_fails_with_its_cause() -> None:
    gate = held(program(1000, extra=257), accepted(program(1000)))
    assert states(gate)["pte_bytes"] == "grown"
    message = gate.message()
    assert "pte_bytes grew from 1000 to 1257 bytes (+257, allowed up to 1256)" in message
    assert "+257 B: added the operator name a::b." in message
    assert './hil accept t/m --only size --reason "..."' in message


def test_a_lost_accuracy_fails_with_how_much_and_how_to_accept_it() -> None:
    good = OutputAccuracy("output0", 3, 38.0, None, 0.0)
    before = replace(accepted(program(1000)), accuracy=(good,))
    now = replace(program(1000), accuracy=(replace(good, sqnr_db=25.0),))
    gate = held(now, before)
    assert gate.failed
    assert "went from 38 to 25; its slack allows down to 37" in gate.message()
    # Its sizes alone would not take the accuracy along.
    assert gate.message().endswith('accept it with: ./hil accept t/m --reason "..."')
    assert gate.summary()["accuracy"][0]["measured"] == 25.0
    assert "- ❌ t/m: the SQNR in dB of output0" in summary([gate])
    assert not held(now, accepted(program(1000))).failed
    below = held(now, before, Budgets(min_sqnr_db=30))
    assert "a hard limit cannot be accepted" in below.message()
    assert "accept it with" not in below.message()


def test_a_firmware_is_not_asked_for_the_accuracy_that_was_accepted_with_it() -> None:
    """A runner of a network's own is held to that network's reference, which has both."""
    before = replace(accepted(runner(1000)), accuracy=(OutputAccuracy("o", 3, 38.0, 0.7, 0.0),))
    assert not held(runner(1000), before, Budgets(min_sqnr_db=30)).failed


def test_a_slower_npu_fails_with_the_layer() -> None:
    def cost(cycles: int) -> NpuCost:
        operator = NpuOperator("Conv2D", "t", "body.0", cycles, 1)
        summary = {"cycles_total": float(cycles), "nn_macs": 1.0}
        return NpuCost({}, (Estimate("ethos-u55-128", "c", "m", summary, (operator,)),))

    def at(cycles: int) -> Measured:
        now = program(1000)
        figures = {**now.figures, "npu_cycles_estimated": cycles}
        return replace(now, figures=figures, npu_cost=cost(cycles))

    before = at(1000)
    acceptance = Acceptance(
        ANY_TOOLCHAIN, "r", "w", ("program",), before.figures, npu_cost=before.npu_cost
    )
    kept = from_fields(json.loads(render(propose(None, acceptance))))
    assert kept.npu_cost is not None
    assert kept.npu_cost.estimates[0].summary == {"cycles_total": 1000}, "short in the file"
    assert not held(at(1256), kept).failed
    gate = held(at(1257), kept)
    assert "npu_cycles_estimated grew from 1000 to 1257 cycles" in gate.message()
    assert "  Conv2D of layer body.0: 1,000 to 1,257 cycles" in gate.message()
    assert "--only size" in gate.message()


def test_an_operator_on_the_cpu_fails_where_the_budget_wants_it_on_the_npu() -> None:
    sort = CpuOperator("sort", "", "net.py", 7, "Not included")
    now = replace(program(1000), delegation=Delegation(3, (sort,)))
    assert not held(now, accepted(program(1000))).failed
    gate = held(now, accepted(program(1000)), Budgets(delegated="all"))
    assert gate.failed
    assert "the NPU has 3 of 4 operators" in gate.message()
    assert "sort (net.py:7): Not included" in gate.message()
    assert "a hard limit cannot be accepted" in gate.message()
    assert gate.summary()["undelegated"]["npu"] == 3
    assert "- ❌ t/m: the NPU has 3 of 4" in summary([gate])


def test_small_steps_are_caught() -> None:
    """Each run is compared with what was accepted, so 100 B a day fail on the third day."""
    before = accepted(program(1000))
    outcomes = [held(program(1000 + 100 * day), before).failed for day in range(5)]
    assert outcomes == [False, False, False, True, True]


def test_scratch_growth_names_the_scratch() -> None:
    gate = held(program(1000, scratch=1000), accepted(program(1000)))
    assert states(gate)["npu_scratch_bytes"] == "grown"
    assert "working memory in NPU scratch of EthosUBackend grew" in gate.message()


def test_shrinking_passes_and_is_reported() -> None:
    gate = held(program(500), accepted(program(1000)))
    assert not gate.failed
    assert states(gate)["pte_bytes"] == "shrank"


def test_nothing_accepted_yet_is_new() -> None:
    gate = held(program(1000), None)
    assert gate.is_new
    assert not gate.failed
    assert gate.summary()["state"] == "new"


def test_where_the_gate_is_strict_a_new_subject_fails() -> None:
    """As in CI after ``references/`` was moved away."""
    gate = replace(held(program(1000), None), refuses_new=True)
    assert gate.failed
    assert gate.summary()["state"] == "failed"
    assert "t/m: new: nothing was accepted yet to compare it with" in gate.message()
    assert './hil accept t/m --only size --reason "..."; or let it be new with' in gate.message()
    assert "❌ new" in summary([gate])
    other = replace(held(runner(9000, "gcc 13"), accepted(runner(1000))), refuses_new=True)
    assert "nothing was accepted yet with gcc 13" in other.message()
    assert not replace(held(program(1000), accepted(program(1000))), refuses_new=True).failed


@pytest.mark.parametrize(
    ("name", "allowed"),
    [("m", True), ("t/m", True), ("t/*", True), ("u/m", False), ("model", False)],
)
def test_a_new_subject_is_let_in_by_name(
    monkeypatch: pytest.MonkeyPatch, name: str, allowed: bool
) -> None:
    monkeypatch.setattr(gates, "measure_cases", lambda *_: [program(1000)])
    monkeypatch.setattr(gates, "load_reference", lambda *_: None)
    monkeypatch.setattr(gates, "budgets_of", lambda _: Budgets())
    (gate,) = gate_cases([CASE], strict=True, allow_new=[name])
    assert gate.failed is not allowed
    assert not gate_cases([CASE], allow_new=[])[0].failed


def test_what_is_left_over_is_on_the_page_and_an_annotation(tmp_path: Path) -> None:
    one = LeftOver("t/old", tmp_path / "old.json", "model", (), True)
    (line,) = workflow_commands([one], {"GITHUB_ACTIONS": "true"})
    assert line.startswith("::error title=size of t/old::t/old: ")
    page = tmp_path / "summary.md"
    append_to_step_summary(summary([], [one]), {"GITHUB_STEP_SUMMARY": str(page)})
    assert "- ❌ t/old: " in page.read_text()
    assert workflow_commands([replace(one, failed=False)], {"GITHUB_ACTIONS": "true"}) == []


def test_another_toolchain_is_new() -> None:
    gate = held(runner(9000, "gcc 13"), accepted(runner(1000)))
    assert gate.is_new
    assert not gate.failed
    assert set(states(gate).values()) == {"new"}


def test_a_program_is_the_same_for_every_toolchain() -> None:
    """What was accepted with a run's figures of one toolchain holds whoever gates it."""
    before = accepted(program(1000))
    both = Reference("aa", (("1",),), before.program, {"gcc 12": {"stack_high_water": 9}}, ())
    assert held(program(9000), both).failed


def test_growth_of_a_runner_names_the_function_once() -> None:
    """Four figures grew by the same bytes: the cause is not repeated with each."""
    gate = held(runner(2000), accepted(runner(1000)))
    assert {n for n, s in states(gate).items() if s == "grown"} == {
        "elf_ITCM",
        "elf_ITCM_no_pools",
        "elf_loaded",
        "elf_text",
    }
    assert gate.message().count("f in ITCM") == 1
    assert './hil accept t/runner --only size --reason "..."' in gate.message()


def test_what_was_accepted_or_limited_must_be_measured() -> None:
    now = program(5)
    del now.figures["planned_bytes"]
    gate = held(now, accepted(program(5)))
    assert [f.figure for f in gate.findings if f.failed] == ["planned_bytes"]
    gate = held(runner(5), None, Budgets(limits={"elf_DTCM": 9}))
    assert [f.figure for f in gate.findings if f.failed] == ["elf_DTCM"]
    assert "could not be measured" in gate.message()
    assert "accept it with" not in gate.message()


def test_hard_limit_holds_even_without_a_reference_and_cannot_be_accepted() -> None:
    gate = held(program(1000), None, Budgets(limits={"pte_bytes": 900}))
    assert states(gate)["pte_bytes"] == "over_limit"
    assert "100 over its limit of 900" in gate.message()
    assert "cannot be accepted" in gate.message()


def test_an_error_is_a_failed_gate() -> None:
    for case, figure in ((CASE, "pte_bytes"), (Case("t", RUNNER), "elf_loaded")):
        gate = unmeasured(case, InfraError("the exporter died"))
        assert gate.failed
        assert f"{figure} could not be measured" in gate.message()
        assert "the exporter died" in gate.message()


def test_a_programs_gate_ignores_limits_of_the_firmware() -> None:
    assert not held(program(10), None, Budgets(limits={"elf_ITCM": 1})).failed


def test_github_annotations_and_summary(tmp_path: Path) -> None:
    """Only when GitHub asks; newlines and colons are escaped as its commands want."""
    gate = held(program(1000, extra=300), accepted(program(1000)))
    assert workflow_commands([gate], {}) == []
    (line,) = workflow_commands([gate], {"GITHUB_ACTIONS": "true"})
    assert line.startswith("::error title=size of t/m::t/m: pte_bytes grew from")
    assert "\n" not in line
    assert "%0A" in line
    append_to_step_summary(summary([gate]), {})
    page = tmp_path / "summary.md"
    page.write_text("before\n")
    append_to_step_summary(summary([gate]), {"GITHUB_STEP_SUMMARY": str(page)})
    text = page.read_text()
    assert text.startswith("before\n## Sizes")
    assert "| t/m | pte\\_bytes | 1,300 | 1,000 | 1,256 | ❌ grown |" in text
    assert "- +300 B: added the operator name a::b.\n\n| change | old | new |  | what |" in text
    assert 'Accept it with `./hil accept t/m --only size --reason "..."`' in text
    assert summary([gate]) in text
