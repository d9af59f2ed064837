"""Protects the pytest surface: what is selected, what is an error, and what nothing means.

The inner runs are real pytest sessions in this process; those that need a simulator use the real
one.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.export.conftest import double
from tests.thorough import cases

__all__ = ["double"]


def test_markers_come_from_the_targets(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess("--markers")
    result.stdout.fnmatch_lines(["@pytest.mark.cortex_m55: cases on corstone-300-m55"])


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_typo_in_m_is_an_error(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    """In a repository that has settings of ours, before anything is collected."""
    (pytester.path / "hil.toml").touch()
    pytester.makepyfile("def test_fine(): pass")
    result = pytester.runpytest_inprocess("-m", "cortx_m55", *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no marker is named 'cortx_m55'; did you mean cortex_m55?*"])


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_typo_in_m_is_an_error_where_a_test_asks_for_a_case(
    pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    pytester.makepyfile("def test_model(hil_case): pass\ndef test_fine(): pass")
    result = pytester.runpytest_inprocess("-m", "not cortx_m55", *workers)
    assert result.ret not in (pytest.ExitCode.OK, pytest.ExitCode.INTERNAL_ERROR)
    result.stdout.fnmatch_lines(["*no marker is named 'cortx_m55'; did you mean cortex_m55?*"])


def test_expressions_of_known_markers_are_fine(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_fine(): pass")
    result = pytester.runpytest_inprocess(
        "-m", "not cortex_m55 and not (host or slow)", "-o", "markers=slow: takes long"
    )
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_run_in_which_nothing_ran_is_an_error(
    pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    pytester.makepyfile(
        """
        import pytest
        @pytest.mark.skip
        @pytest.mark.hil_cases(targets=["host"], models=["add"])
        def test_skipped(hil_case): pass
        """
    )
    result = pytester.runpytest_inprocess(*workers)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["*nothing ran, so nothing was proven*"])


def test_one_test_that_ran_is_enough(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.skip\ndef test_a(): pass\ndef test_b(): pass")
    assert pytester.runpytest_inprocess().ret == pytest.ExitCode.OK


CASES = """
    import pytest
    from executorch_hil import require_pass

    @pytest.mark.hil_cases(targets=["corstone-300-m55"], models=["add", "softmax"])
    def test_model(hil_run, hil_reference, hil_program, hil_firmware, hil_target):
        require_pass(hil_run)
        assert hil_run.simulator.name == "qemu"
        assert hil_program.model == hil_run.case.model
        assert hil_firmware.elf.is_file()
        assert hil_target.name == "corstone-300-m55"
"""


def test_fixtures_in_a_users_own_tests_under_two_workers(
    pytester: pytest.Pytester, shared_hil_home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIL_HOME", shared_hil_home)
    pytester.makepyfile(CASES)
    result = pytester.runpytest_inprocess("-n", "2", "--hil-simulator", "qemu", "--junitxml=j.xml")
    result.assert_outcomes(passed=2)
    junit = (pytester.path / "j.xml").read_text()
    assert '<property name="verdict" value="PASS"' in junit
    assert '<property name="elf_text"' in junit


def test_a_test_waits_for_no_program_but_its_own(
    pytester: pytest.Pytester, double: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session ends at the first test, and nothing was exported for the second."""
    double()
    monkeypatch.setenv("HIL_HOME", str(pytester.path / "home"))
    for name in ("first", "second"):
        (pytester.path / f"{name}.py").write_text("ModelUnderTest = ModelInputs = None\n")
    pytester.makepyfile(
        """
        import pytest
        @pytest.mark.hil_cases(targets=["host"], models=["first.py", "second.py"])
        def test_model(hil_program): assert not hil_program.model
        """
    )
    pytester.runpytest_inprocess("-x").assert_outcomes(failed=1)
    programs = pytester.path / "home" / "cache" / "programs"
    assert {path.parent.name.split("-")[0] for path in programs.glob("*/program.json")} == {"first"}


def test_m_selects_by_target(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_model(hil_case): pass")
    result = pytester.runpytest_inprocess("-m", "host", "--collect-only", "-q")
    lines = [line for line in result.outlines if "test_model[" in line]
    names = {line.split("[")[1].split("/")[0].split("@")[0] for line in lines}
    assert names == {"host", "host-u85-256"}  # whose marker it is


def test_an_unknown_model_is_named(
    pytester: pytest.Pytester, shared_hil_home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIL_HOME", shared_hil_home)
    pytester.makepyfile(CASES.replace('"add", "softmax"', '"resnet9"'))
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*unknown model 'resnet9'; did you mean resnet8*"])


def test_a_case_that_is_not_pass_fails_with_its_cause(
    pytester: pytest.Pytester, shared_hil_home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIL_HOME", shared_hil_home)
    pytester.makepyfile(
        """
        from dataclasses import replace
        import pytest
        from executorch_hil import require_pass
        from harness.core.verdict import Verdict
        from harness.core.judgement import Cause, Judgement

        @pytest.mark.hil_cases(targets=["corstone-300-m55"], models=["add"])
        def test_model(hil_run):
            judgement = Judgement(Verdict.HANG, Cause("stall", "no output", 7))
            require_pass(replace(hil_run, judgement=judgement))
        """
    )
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*corstone-300-m55/add: HANG stall (console line 7): no output*", "*evidence: *runs*"]
    )


def test_a_malformed_target_file_is_a_usage_error(pytester: pytest.Pytester) -> None:
    """Before anything is collected."""
    targets = pytester.mkdir("targets")
    (targets / "broken.yaml").write_text("description: x\nno_such_key: 1\n")
    (pytester.path / "hil.toml").write_text('targets = ["targets"]')
    pytester.makepyfile("def test_model(hil_case): pass")
    result = pytester.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*broken.yaml:*"])


def collected(pytester: pytest.Pytester, *arguments: str) -> tuple[list[str], str]:
    """The cases of a session, and all that it said."""
    pytester.makepyfile("def test_model(hil_case): pass")
    result = pytester.runpytest_inprocess("--collect-only", "-q", *arguments)
    cases = [line.split("[")[1].rstrip("]") for line in result.outlines if "test_model[" in line]
    return cases, result.stdout.str()


def test_an_npu_that_m_names_has_all_its_cases(pytester: pytest.Pytester) -> None:
    """Every model in every legal memory mode on one MAC count, one case on each other."""
    cases, _ = collected(pytester, "-m", "u85")
    modes = {case.partition("/")[0].partition("@")[2] for case in cases}
    assert modes == {
        "",
        "Shared_Sram",
        "Dedicated_Sram",
        "Dedicated_Sram_256KB",
        "Dedicated_Sram_384KB",
        "Dedicated_Sram_512KB",
    }
    for model in (
        "ds_cnn",
        "resnet8",
        "mobilenet_v1_025",
        "deep_autoencoder",
        "add",
        "linear",
        "softmax",
    ):
        assert len([c for c in cases if c.endswith(f"-256/{model}")]) == 1
        assert len([c for c in cases if "-256@" in c and c.endswith(f"/{model}")]) == 5
    for macs in (128, 512, 1024, 2048):
        assert len([c for c in cases if f"u85-{macs}/" in c]) == 1


@pytest.mark.parametrize(
    ("arguments", "sampled"),
    [
        ((), True),
        (("-m", "u55 or u85"), False),
        (("-m", "u55", "--hil-npu-cases=sample"), True),
        pytest.param(("-m", "not u85"), True, marks=pytest.mark.thorough),
        pytest.param(("--hil-npu-cases=all",), False, marks=pytest.mark.thorough),
    ],
)
def test_a_sample_of_the_npu_cases_says_so(
    pytester: pytest.Pytester, arguments: tuple[str, ...], sampled: bool
) -> None:
    """What is left out is told in the session's header, with the way to get it."""
    pytester.makepyfile("def test_model(hil_case): pass")
    result = pytester.runpytest_inprocess("--collect-only", *arguments)
    said = result.stdout.str()
    assert ("Ethos-U cases are a sample" in said) == sampled
    assert ("corstone-300-u55-128@Sram_Only/linear" in said) == (not sampled)
    assert "corstone-300-u55-128/linear" in said or "-m" in arguments


def test_a_session_without_an_ethos_u_hears_nothing_of_them(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        @pytest.mark.hil_cases(models=["add"], npu=False)
        def test_model(hil_case): pass
        """
    )
    result = pytester.runpytest_inprocess("--collect-only")
    assert "corstone-300-m55/add" in result.stdout.str()
    assert "Ethos-U" not in result.stdout.str()


def test_a_memory_mode_in_a_users_own_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        @pytest.mark.hil_cases(targets=["corstone-300-u55-128@Sram_Only"], models=["add"])
        def test_model(hil_case, hil_target):
            assert hil_target.npu.memory_mode == "Sram_Only"
        @pytest.mark.hil_cases(models=["add"], npu=False)
        def test_without(hil_case, hil_target):
            assert hil_target.npu is None
        """
    )
    result = pytester.runpytest_inprocess("-q")
    assert result.ret == 0


def test_an_illegal_memory_mode_is_named(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        @pytest.mark.hil_cases(targets=["corstone-300-u55-128@Dedicated_Sram"])
        def test_model(hil_case): pass
        """
    )
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*no memory mode Dedicated_Sram*"])


def test_an_exporter_without_a_checkout_is_a_wrong_use(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXECUTORCH_ROOT", "")
    pytester.makepyfile("def test_fine(): pass")
    result = pytester.runpytest_inprocess("--hil-exporter", "checkout")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--exporter checkout needs a checkout*--hil-executorch DIR*"])


def test_the_header_says_who_exports(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_fine(): pass")
    result = pytester.runpytest_inprocess(
        "--hil-exporter=checkout", "--hil-executorch=/c", "--hil-firmware=bundled"
    )
    result.stdout.fnmatch_lines(["hil: exporter: the checkout in /c"])


def test_a_checkout_that_cannot_export_fails_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(CASES)
    options = ("--hil-exporter=checkout", f"--hil-executorch={pytester.path}")
    result = pytester.runpytest_inprocess(*options, "--hil-firmware=bundled")
    result.stdout.fnmatch_lines(["*is not a checkout of ExecuTorch*"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("factor", cases("nan", thorough=["0", "x"]))
def test_a_limit_factor_that_is_not_a_number(pytester: pytest.Pytester, factor: str) -> None:
    (pytester.path / "hil.toml").touch()
    pytester.makepyfile("def test_fine(): pass")
    result = pytester.runpytest_inprocess("--hil-limit-factor", factor)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--hil-limit-factor*not a number above 0*"])
    result = pytester.runpytest_inprocess("-o", f"hil_limit_factor={factor}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*hil_limit_factor of the ini file is*not a number above 0*"])
    (pytester.path / "hil.toml").write_text(f"limit_factor = {factor.replace('x', '[]')}")
    result = pytester.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*hil.toml: limit_factor is not a number above 0*"])


@pytest.mark.parametrize(
    "option", cases("fvp_missing", thorough=["firmware", "exporter", "npu_cases"])
)
def test_a_word_in_the_ini_file_that_is_none(pytester: pytest.Pytester, option: str) -> None:
    pytester.makepyfile("def test_model(hil_case): pass")
    result = pytester.runpytest_inprocess("-o", f"hil_{option}=nonsense")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines([f"*hil_{option} of the ini file is 'nonsense'*"])


def test_the_ini_file_asks_as_the_command_line_does(pytester: pytest.Pytester) -> None:
    """And the command line is stronger."""
    (pytester.path / "pytest.ini").write_text("[pytest]\nhil_npu_cases = all\n")
    assert "u55-128@Sram_Only/linear" in " ".join(collected(pytester)[0])
    assert "u55-128@Sram_Only/linear" not in " ".join(
        collected(pytester, "--hil-npu-cases=sample")[0]
    )


def test_a_home_that_cannot_be_written(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a read-only ``.hil`` is, also for root: the test fails in a sentence."""
    (pytester.path / "home").touch()
    monkeypatch.setenv("HIL_HOME", str(pytester.path / "home"))
    pytester.makepyfile(CASES)
    result = pytester.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*Not a directory*home*"])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*.py:*: *Error")


def test_a_reference_that_is_none_fails_the_test(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIL_REFERENCES", str(pytester.path))
    (pytester.path / "host").mkdir()
    (pytester.path / "host" / "add.json").write_text('{"program": {"pte_bytes": Infinity}}')
    pytester.makepyfile("""
        import pytest

        @pytest.mark.hil_cases(targets=["host"], models=["add"])
        def test_it(hil_reference): pass
    """)
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*is not a reference*Infinity*"])
