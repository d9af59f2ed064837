"""A reference whose model or target is no longer there is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.budgets import Budgets
from harness.config.case import RUNNER, Case
from harness.core.errors import InfraError
from harness.judge.reference import ANY_TOOLCHAIN, Acceptance, propose, reference_path, render
from harness.run.gate import Gate, LeftOver, Measured, hold, left_over, unmeasured
from harness.size.anatomy import Anatomy, Part

TARGET = "corstone-300-m55"
ANATOMY = Anatomy("pte", 1000, (Part(("constants", "x"), 1000),))


@pytest.fixture
def references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "references"
    monkeypatch.setenv("HIL_REFERENCES", str(root))
    return root


def accepted(root: Path, case: Case, source: str = "bundled", *, outputs: bool = True) -> Path:
    accepting = Acceptance(ANY_TOOLCHAIN, "first", "2026-11-23", anatomies={ANY_TOOLCHAIN: ANATOMY})
    if outputs:
        accepting = replace(accepting, pte_sha256="aa", outputs=(("11",),))
    path = reference_path(root, case, source)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(propose(None, accepting)))
    return path


def found(*, strict: bool = True) -> list[LeftOver]:
    return left_over(strict=strict)


def test_what_has_its_model_is_not_left_over(references: Path, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "mine.py").touch()
    elsewhere = tmp_path / "elsewhere.py"
    elsewhere.touch()
    accepted(references, Case(TARGET, "add"))
    accepted(references, Case(TARGET, "add"), "executorch")
    accepted(references, Case(TARGET, RUNNER))
    accepted(references, Case("corstone-300-u55-128@Sram_Only", "add"))
    accepted(references, Case(TARGET, "models/mine.py", "models/mine.py"))
    accepted(references, Case(TARGET, str(elsewhere), str(elsewhere)))
    assert found() == []


def test_without_references_nothing_is_left_over(references: Path) -> None:
    assert found() == []


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("source", ["bundled", "executorch"])
def test_a_model_that_is_gone_is_said(references: Path, source: str, strict: bool) -> None:
    path = accepted(references, Case(TARGET, "ad"), source)
    (one,) = found(strict=strict)
    assert one == LeftOver(f"{TARGET}/ad", path, "model", (), strict)
    assert "is left over: there is no such model; remove the file" in one.message()


def test_a_users_model_that_is_gone_is_said(references: Path) -> None:
    accepted(references, Case(TARGET, "models/gone.py", "models/gone.py"))
    accepted(references, Case(TARGET, "/gone/far.py", "/gone/far.py"))
    gone = {f"{TARGET}/models/gone.py", f"{TARGET}//gone/far.py"}
    assert {one.subject for one in found()} == gone


@pytest.mark.parametrize("model", ["add", RUNNER])
def test_a_target_that_is_gone_is_said(references: Path, model: str) -> None:
    accepted(references, Case("old-board", model))
    (one,) = found()
    assert (one.subject, one.missing) == (f"old-board/{model}", "target")


def new(case: Case, sha256: str = "aa", anatomy: Anatomy = ANATOMY) -> Gate:
    figures = {"pte_bytes": 1000}
    return hold(Measured(case, "program", ANY_TOOLCHAIN, anatomy, figures, sha256), None, Budgets())


@pytest.mark.parametrize("outputs", [True, False])
def test_a_renamed_model_is_known_by_its_program(references: Path, outputs: bool) -> None:
    """By its bytes, or, where only sizes were accepted, by the size of each part."""
    accepted(references, Case(TARGET, "ad"), outputs=outputs)
    other = replace(ANATOMY, parts=(Part(("constants", "y"), 1000),))
    gates = [new(Case(TARGET, "add")), new(Case(TARGET, "mul"), "bb", other)]
    gates += [new(Case("host", "add")), unmeasured(Case(TARGET, "qadd"), InfraError("no export"))]
    (one,) = left_over(gates, strict=True)
    assert one.renamed == (f"{TARGET}/add",)
    assert f"it was renamed to {TARGET}/add, which has the same program" in one.message()


def test_only_what_has_no_reference_can_be_the_new_name(references: Path) -> None:
    accepted(references, Case(TARGET, "ad"))
    gate = new(Case(TARGET, "add"))
    known = replace(gate, findings=tuple(replace(f, accepted=1000) for f in gate.findings))
    assert left_over([known], strict=True)[0].renamed == ()


def test_a_renamed_target_is_known_by_its_program(references: Path) -> None:
    accepted(references, Case("old-board", "add"))
    gates = [new(Case(TARGET, "add")), new(Case(TARGET, "mul"))]
    assert left_over(gates, strict=True)[0].renamed == (f"{TARGET}/add",)
