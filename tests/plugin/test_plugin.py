"""Protects the pytest surface: what is selected, what is an error, and what nothing means.

The inner runs are real pytest sessions; those that need a simulator use the real one.
"""

from __future__ import annotations

import pytest


def test_markers_come_from_the_targets(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess("--markers")
    result.stdout.fnmatch_lines(["@pytest.mark.cortex_m55: cases on corstone-300-m55"])


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_typo_in_m_is_an_error(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    pytester.makepyfile("def test_fine(): pass")
    result = pytester.runpytest_subprocess("-m", "cortx_m55", *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no marker is named 'cortx_m55'; did you mean cortex_m55?*"])


def test_expressions_of_known_markers_are_fine(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_fine(): pass")
    result = pytester.runpytest_subprocess("-m", "not cortex_m55 and not (host or slow)",
                                           "-o", "markers=slow: takes long")  # fmt: skip
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_run_in_which_nothing_ran_is_an_error(
    pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.skip\ndef test_skipped(): pass")
    result = pytester.runpytest_subprocess(*workers)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["*nothing ran, so nothing was proven*"])


def test_one_test_that_ran_is_enough(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.skip\ndef test_a(): pass\ndef test_b(): pass")
    assert pytester.runpytest_subprocess().ret == pytest.ExitCode.OK


CASES = """
    import pytest
    from harness.plugin import require_pass

    @pytest.mark.hil_cases(targets=["corstone-300-m55"], models=["add", "softmax"])
    def test_model(run, reference, program, firmware, target):
        require_pass(run)
        assert run.simulator.name == "qemu"
        assert program.model == run.case.model
        assert firmware.elf.is_file()
        assert target.name == "corstone-300-m55"
"""


def test_fixtures_in_a_users_own_tests_under_two_workers(
    pytester: pytest.Pytester, shared_hil_home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIL_HOME", shared_hil_home)
    pytester.makepyfile(CASES)
    result = pytester.runpytest_subprocess("-n", "2", "--simulator", "qemu", "--junitxml=j.xml")
    result.assert_outcomes(passed=2)
    junit = (pytester.path / "j.xml").read_text()
    assert '<property name="verdict" value="PASS"' in junit
    assert '<property name="elf_text"' in junit


def test_m_selects_by_target(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_model(case): pass")
    result = pytester.runpytest_subprocess("-m", "host", "--collect-only", "-q")
    lines = [line for line in result.outlines if "test_model[" in line]
    assert lines
    assert all("[host/" in line for line in lines)


def test_an_unknown_model_is_named(
    pytester: pytest.Pytester, shared_hil_home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIL_HOME", shared_hil_home)
    pytester.makepyfile(CASES.replace('"add", "softmax"', '"resnet9"'))
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*unknown model 'resnet9'*", "*did you mean resnet8*"])


def test_a_case_that_is_not_pass_fails_with_its_cause(
    pytester: pytest.Pytester, shared_hil_home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIL_HOME", shared_hil_home)
    pytester.makepyfile(
        """
        from dataclasses import replace
        import pytest
        from harness.plugin import require_pass
        from harness.judge import Cause, Verdict

        @pytest.mark.hil_cases(targets=["corstone-300-m55"], models=["add"])
        def test_model(run):
            require_pass(replace(run, verdict=Verdict("HANG", Cause("stall", "no output", 7))))
        """
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*corstone-300-m55/add: HANG stall: no output (console line 7)*", "*evidence: *runs*"]
    )


def test_a_malformed_target_file_is_a_usage_error(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = pytester.mkdir("targets")
    (targets / "broken.yaml").write_text("description: x\nno_such_key: 1\n")
    monkeypatch.setenv("HIL_TARGETS", str(targets))
    pytester.makepyfile("def test_fine(): pass")
    result = pytester.runpytest_subprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*broken.yaml:*"])
