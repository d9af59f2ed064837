"""Protects what a test runs for: a selection of nothing is an error where it is written, although
the other tests pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.plugin.selection import NothingSelected, cases

HEAD = "import pytest\n\n@pytest.mark.{marker}\ndef test_model(hil_case, request):\n    pass\n"
WRONG = {
    "hil_cases(models=[])": "no case is selected: hil_cases has models=[]",
    "hil_cases(targets=[])": "no case is selected: hil_cases has targets=[]",
    'hil_cases(targets=["corstone-300-m55"], npu=True)': (
        "no case is selected: hil_cases has npu=True, and of its targets none is so: "
        "corstone-300-m55"
    ),
    'hil_cases(targets=["corstone-300-u55-128"], npu=False)': (
        "no case is selected: hil_cases has npu=False, and of its targets none is so: "
        "corstone-300-u55-128"
    ),
    'hil_cases(["corstone-300-m55"])': (
        "hil_cases takes keyword arguments only; there are: targets, models, npu"
    ),
    'hil_cases(model=["add"])': "hil_cases has no 'model'; did you mean models?",
    'hil_cases(models="add")': (
        "models of hil_cases must be a list, not a string; write models=['add']"
    ),
    'hil_cases(models=["resnet9"])': "unknown model 'resnet9'; did you mean resnet8",
    "hil_expect()": 'hil_expect takes verdicts; for example hil_expect("MISMATCH")',
    'hil_expect("MISMTCH")': "hil_expect names no verdict: 'MISMTCH'; did you mean MISMATCH?",
}


def test_what_selects_nothing_is_an_error_where_it_is_written(pytester: pytest.Pytester) -> None:
    """In one session with a test that passes; file and line are those of the marker."""
    pytester.makepyfile(test_fine="def test_fine(): pass")
    for number, marker in enumerate(WRONG):
        file = pytester.path / f"test_wrong_{number}.py"
        file.write_text(HEAD.format(marker=marker))
    result = pytester.runpytest_inprocess("--continue-on-collection-errors", "-p", "no:xdist")
    result.assert_outcomes(errors=len(WRONG), passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    said = result.stdout.str()
    for number, message in enumerate(WRONG.values()):
        assert f"test_wrong_{number}.py:3: test_model: {message}" in said
    assert "Traceback" not in said
    assert "selection.py" not in said


def test_a_model_file_is_found_from_the_root_of_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pytest may be started in any directory."""
    (tmp_path / "mine.py").touch()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    ((case, target),) = cases("sample", tmp_path, ["corstone-300-m55"], ["mine.py"])
    assert (case.model, target.name) == (str(tmp_path / "mine.py"), "corstone-300-m55")
    with pytest.raises(NothingSelected) as caught:
        cases("sample", tmp_path, models=[])
    assert "remove the test" in (caught.value.hint or "")
