"""Protects that a checkout's own runs are gated: verdict and footprint, against accepted ones.

The checkout is the small one of tests/firmware/executorch, built and run for real.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli.main import main
from tests.firmware.executorch.conftest import Source, pristine, small
from tests.firmware.executorch.small import KERNEL, edit
from tests.link.workspace import enter

__all__ = ["pristine", "small"]
CASE = "corstone-300-m55/qadd"


@pytest.fixture(autouse=True)
def _references(tmp_path: Path, shared_hil_home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIL_HOME", shared_hil_home)
    monkeypatch.setenv("HIL_REFERENCES", str(tmp_path / "references"))
    monkeypatch.setenv("CI", "")


def hil(small: Source, *words: str) -> tuple[int, str]:
    parts = [f"--part={name}={folder}" for name, folder in small.parts.items()]
    result = CliRunner().invoke(main, [*words, f"--executorch={small.root}", *parts])
    return result.exit_code, result.output


def gated(small: Source, *words: str) -> tuple[int, dict[str, Any]]:
    code, said = hil(small, "gate", "--json", *words)
    answer: dict[str, Any] = json.loads(said[said.index("{") :])
    return code, answer


@pytest.mark.parametrize("case", [CASE, "zephyr-corstone-300/qadd"])
def test_growth_and_wrong_outputs_fail(
    case: str, small: Source, small_zephyr: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(small_zephyr, monkeypatch)
    code, said = hil(small, "accept", case, "--reason", "the first run")
    assert code == 0, said
    code, answer = gated(small)
    assert (code, answer["failed"]) == (0, False)
    assert [(each["case"], each["verdict"]) for each in answer["cases"]] == [(case, "PASS")]
    table = "extern const int planted_table[16384];\nconst int planted_table[16384] = {1};"
    edit(small.root / KERNEL, "namespace hil {", f"namespace hil {{\n{table}")
    used = "HIL_TRY(check_numbers(ctx, n));"
    edit(
        small.root / KERNEL,
        used,
        f"{used}\nstatic int calls;\nif (planted_table[calls++ & 16383] == 7) return Error::Ok;",
    )
    code, answer = gated(small, case.partition("/")[0])
    (grown,) = answer["cases"]
    assert (code, grown["verdict"]) == (1, "OVER_BUDGET")
    assert "grew from" in grown["cause"]["text"]
    edit(small.root / KERNEL, "0, n.output[0], ", "0, n.output[0] + 1, ")
    code, said = hil(small, "gate", case, "--markdown")
    assert code == 1
    assert "| MISMATCH | outputs" in said


@pytest.mark.parametrize("subject", ["corstone-300-m55", "corstone-300-m55/runner"])
def test_nothing_accepted_is_not_a_gate(small: Source, subject: str) -> None:
    code, said = hil(small, "gate", subject)
    assert code == 2
    assert "there is no accepted run with the firmware executorch" in " ".join(said.split())
    code, said = hil(small, "gate", CASE, "--firmware=both")
    assert code == 2
    assert "one firmware is gated" in " ".join(said.split())


def test_a_folder_that_is_not_a_checkout_is_named(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["gate", "--executorch", str(tmp_path)])
    assert done.exit_code == 2
    assert "is not a checkout of ExecuTorch" in " ".join(done.output.split())


def test_in_ci_a_case_without_an_accepted_run_fails(small: Source) -> None:
    code, answer = gated(small, CASE, "--strict")
    assert code == 1
    assert answer["cases"][0]["cause"]["kind"] == "not_accepted"
