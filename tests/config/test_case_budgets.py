"""Protects the tolerance: bounded, and in CI only what somebody reviewed."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.config.budgets import MOST_TOLERANCE_LSB
from harness.config.case import Case
from harness.config.case_budgets import budgets_of, settings_of, tolerance_of
from harness.config.loading import load_target
from harness.config.models import CalibrationType, Layout, Quantization
from harness.core.errors import TargetError, UsageError
from harness.run.subjects import request_of

TARGET = "corstone-300-m55"
CI = {"CI": "true"}


@pytest.fixture
def reviewed(tmp_path: Path) -> Case:
    """A user's model whose file says two steps."""
    (tmp_path / "mine.py").touch()
    (tmp_path / "mine.yaml").write_text("budgets: {tolerance_lsb: 2}\n")
    return Case(TARGET, str(tmp_path / "mine.py"))


@pytest.mark.parametrize("environ", [{}, CI])
def test_without_the_option_the_file_says_it(reviewed: Case, environ: dict[str, str]) -> None:
    assert tolerance_of(reviewed, budgets_of(reviewed), None, environ) == 2
    plain = Case(TARGET, "add")
    assert tolerance_of(plain, budgets_of(plain), None, environ) == 0


def test_at_a_desk_the_option_counts(reviewed: Case) -> None:
    assert tolerance_of(reviewed, budgets_of(reviewed), 5, {}) == 5


def test_in_ci_the_option_may_only_be_stricter(reviewed: Case) -> None:
    budgets = budgets_of(reviewed)
    assert tolerance_of(reviewed, budgets, 1, CI) == 1
    with pytest.raises(UsageError, match="--tolerance 5 is refused in CI") as caught:
        tolerance_of(reviewed, budgets, 5, CI)
    file = str(Path(reviewed.model).with_suffix(".yaml"))
    assert caught.value.hint == (
        f"write `budgets: {{tolerance_lsb: 5}}` into {file} and have it reviewed"
    )
    assert caught.value.facts == {"asked": 5, "reviewed": 2, "path": file}


@pytest.mark.parametrize("environ", [{}, CI])
@pytest.mark.parametrize("asked", [1e9, MOST_TOLERANCE_LSB + 0.1, -1, float("nan"), float("inf")])
def test_no_tolerance_is_beyond_the_most(
    reviewed: Case, asked: float, environ: dict[str, str]
) -> None:
    with pytest.raises(UsageError, match="is not between 0 and 16") as caught:
        tolerance_of(reviewed, budgets_of(reviewed), asked, environ)
    assert "find the cause" in (caught.value.hint or "")


def test_the_model_s_file_says_how_it_is_calibrated_and_quantised(reviewed: Case) -> None:
    """It reaches the export."""
    said = settings_of(reviewed.model)
    assert (said.calibration, said.quantization) == (CalibrationType.FLOAT64, Quantization.A8W8)
    file = Path(reviewed.model).with_suffix(".yaml")
    file.write_text("calibration: float32\nquantization: a16w8\nlayout: explicit\n")
    for target in (TARGET, "corstone-300-u55-128"):
        request = request_of(reviewed.model, load_target(target))
        assert request.calibration is CalibrationType.FLOAT32
        assert request.quantization is Quantization.A16W8
        assert request.layout is Layout.EXPLICIT


def test_the_catalogue_s_layout_holds_where_no_file_names_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.hil]\nbudgets = "."\n')
    monkeypatch.chdir(tmp_path)
    target, file = load_target(TARGET), tmp_path / "unet.yaml"
    assert request_of("tcn", target).layout is Layout.CHANNELS_LAST
    assert request_of("unet", target).layout is Layout.EXPLICIT
    file.write_text("quantization: a8w8\n")
    assert request_of("unet", target).layout is Layout.EXPLICIT
    file.write_text("layout: channels-last\n")
    assert request_of("unet", target).layout is Layout.CHANNELS_LAST


def test_another_calibration_is_an_error_at_its_line(reviewed: Case) -> None:
    Path(reviewed.model).with_suffix(".yaml").write_text("\ncalibration: float16\n")
    with pytest.raises(TargetError, match=r"mine\.yaml:2: .*float16"):
        settings_of(reviewed.model)
