"""What gates protect: growth fails with its cause, small steps cannot add up, nothing is silent."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from harness.errors import InfraError, TargetError, UsageError
from harness.footprint.anatomy import Anatomy, Part
from harness.footprint.figures import firmware_figures, program_figures
from harness.size.accepted import (
    AcceptedSizes,
    change,
    fold,
    load_sizes,
    propose,
    size_path,
    threshold_for,
)
from harness.size.github import summary, workflow_commands, write_summary
from harness.size.ratchet import Gate, hold, unmeasured
from harness.target.budget import Budgets, Slack, check, read_model_budgets


def program(constants: int, extra: int = 0, scratch: int = 100) -> Anatomy:
    parts = [Part(("constants", "int8[9]"), constants)]
    parts += [Part(("program", "forward", "operators", "a::b"), extra)] if extra else []
    memory = (Part(("NPU scratch of EthosUBackend", "working memory"), scratch),)
    return Anatomy("pte", constants + extra, tuple(parts), memory)


def accepted(anatomy: Anatomy, toolchain: str = "any") -> AcceptedSizes:
    figures = program_figures(anatomy)
    return propose(None, anatomy, figures, toolchain, reason="first", when="2026-08-22")


def held(now: Anatomy, before: AcceptedSizes | None, budgets: Budgets | None = None) -> Gate:
    return hold("t/m", now, program_figures(now), "any", before, budgets or Budgets())


def states(gate: Gate) -> dict[str, str]:
    return {f.figure: f.state for f in gate.findings}


def test_growth_within_the_slack_passes() -> None:
    assert not held(program(1256), accepted(program(1000))).failed


def test_growth_beyond_the_slack_fails_with_its_cause() -> None:
    gate = held(program(1000, extra=257), accepted(program(1000)))
    assert states(gate)["pte_bytes"] == "grown"
    message = gate.message()
    assert "pte_bytes went from 1000 to 1257 B (+257, allowed up to 1256)" in message
    assert "+257 B: added the operator name a::b." in message
    assert './hil size accept t/m --reason "..."' in message


def test_large_figures_have_relative_slack() -> None:
    assert Slack().limit(1_000_000) == 1_005_000
    assert Slack().limit(1000) == 1256


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


def test_another_toolchain_is_new() -> None:
    gate = held(program(9000), accepted(program(1000), "gcc 12"))
    assert gate.is_new
    assert set(states(gate).values()) == {"new"}


def test_hard_limit_holds_even_without_a_reference_and_cannot_be_accepted() -> None:
    gate = held(program(1000), None, Budgets(limits={"pte_bytes": 900}))
    assert states(gate)["pte_bytes"] == "over_limit"
    assert "100 B over its limit of 900 B" in gate.message()
    assert "cannot be accepted" in gate.message()


def test_what_is_not_measured_fails() -> None:
    """A figure that was accepted or limited must be measured."""
    findings = check({"pte_bytes": 5}, {"pte_bytes": 5, "planned_bytes": 3}, Budgets())
    assert [f.figure for f in findings if f.failed] == ["planned_bytes"]
    findings = check({"elf_ITCM": 5}, None, Budgets(limits={"elf_DTCM": 9}))
    assert [f.figure for f in findings if f.failed] == ["elf_DTCM"]
    assert "could not be measured" in findings[0].describe()


def test_an_error_is_a_failed_gate() -> None:
    gate = unmeasured("t/m", "pte_bytes", InfraError("the exporter died"))
    assert gate.failed
    assert "the exporter died" in gate.message()


def test_a_programs_gate_ignores_limits_of_the_firmware() -> None:
    assert not held(program(10), None, Budgets(limits={"elf_ITCM": 1})).failed


def test_budgets_merge() -> None:
    target = Budgets(limits={"pte_bytes": 100, "elf_ITCM": 7}, slack=Slack(bytes=1, share=0.0))
    merged = target.merged(Budgets(limits={"pte_bytes": 50}))
    assert merged.limits == {"pte_bytes": 50, "elf_ITCM": 7}
    assert merged.slack.bytes == 1


@pytest.mark.parametrize("limits", [{"pte_byte": 5}, {"pte_bytes": -1}, {"pte_bytes": "5"}])
def test_budgets_are_strict(limits: dict[str, int]) -> None:
    """A misspelt figure would be a gate that never closes."""
    with pytest.raises(ValidationError):
        Budgets(limits=limits)


def test_model_budgets_from_yaml(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    assert read_model_budgets(file) == Budgets()
    file.write_text("budgets:\n  limits: {pte_bytes: 4096}\n")
    assert read_model_budgets(file).limits == {"pte_bytes": 4096}
    file.write_text("budgets:\n  limits:\n    pte_bites: 4096\n")
    with pytest.raises(TargetError, match=r"m\.yaml:3: "):
        read_model_budgets(file)


def test_accepting_keeps_history_and_other_toolchains(tmp_path: Path) -> None:
    first = accepted(program(1000), "gcc 12")
    now = program(1400)
    second = propose(first, now, program_figures(now), "gcc 13", reason="new compiler", when="w")
    path = size_path(tmp_path, "t", "m")
    path.parent.mkdir()
    path.write_text(second.render())
    loaded = load_sizes(path)
    assert loaded is not None
    assert set(loaded.by_toolchain) == {"gcc 12", "gcc 13"}
    assert [h["why"] for h in loaded.history] == ["first", "new compiler"]
    assert loaded.history[1]["what"]["pte_bytes"] == [None, 1400]
    assert loaded.render() == second.render()
    assert "+" in change(path, first, second)


def test_malformed_accepted_sizes(tmp_path: Path) -> None:
    path = tmp_path / "m.size.json"
    assert load_sizes(path) is None
    path.write_text("{}")
    with pytest.raises(UsageError, match="not a file of accepted sizes"):
        load_sizes(path)


def test_folding_keeps_the_sum() -> None:
    """A compact anatomy still compares: what is folded on both sides cancels out."""
    parts = tuple(Part(("R", "code", ".text", f"f{n}"), n + 1) for n in range(2000))
    whole = Anatomy("elf", sum(p.bytes for p in parts), parts)
    small = fold(whole, threshold_for(whole))
    assert len(small.parts) < 700
    assert sum(p.bytes for p in small.parts) == whole.total
    figures = firmware_figures(whole)
    before = propose(None, whole, figures, "gcc", reason="r", when="w")
    gate = hold("t/runner", whole, figures, "gcc", before, Budgets())
    assert gate.difference is not None
    assert gate.difference.parts == ()


def test_firmware_figures() -> None:
    parts = (
        Part(("ITCM", "code", ".text", "f"), 10), Part(("ITCM", "load image", ".data"), 4),
        Part(("DTCM", "data", ".data", "d"), 4), Part(("DTCM", "reserved", ".bss", "b"), 100),
        Part(("DTCM", "reserved", ".pool.x", "p"), 9),
    )  # fmt: skip
    figures = firmware_figures(Anatomy("elf", 127, parts), ["ITCM", "SRAM"])
    assert figures == {
        "elf_loaded": 18, "elf_ITCM": 14, "elf_DTCM": 104, "elf_DTCM_pools": 9, "elf_SRAM": 0,
        "elf_ITCM_pools": 0, "elf_SRAM_pools": 0,
    }  # fmt: skip


def test_github_annotations_and_summary(tmp_path: Path) -> None:
    """Only when GitHub asks; newlines and colons are escaped as its commands want."""
    gate = held(program(1000, extra=300), accepted(program(1000)))
    assert workflow_commands([gate], {}) == []
    (line,) = workflow_commands([gate], {"GITHUB_ACTIONS": "true"})
    assert line.startswith("::error title=size of t/m::t/m: pte_bytes went from")
    assert "\n" not in line
    assert "%0A" in line
    assert write_summary([gate], {}) is None
    page = tmp_path / "summary.md"
    page.write_text("before\n")
    write_summary([gate], {"GITHUB_STEP_SUMMARY": str(page)})
    text = page.read_text()
    assert text.startswith("before\n## Sizes")
    assert "| t/m | pte_bytes | 1,300 | 1,000 | 1,256 | ❌ grown |" in text
    assert summary([gate]) in text
