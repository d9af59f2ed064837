"""Protects suites that are none of our business: beside them the plugin changes nothing.

Each inner session is run with the plugin and with ``-p no:hil``, and has to end the same way.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import executorch_hil

SUITES = {
    "names as ours once were": """
        import pytest
        @pytest.fixture
        def case(): return 1
        def test_fixture(case): assert case == 1
        @pytest.mark.parametrize("case", [1, 2])
        def test_parameter(case): assert case
        @pytest.fixture
        def run(): return 1
        @pytest.fixture
        def target(): return 2
        @pytest.fixture
        def program(run, target): return run + target
        def test_fixtures(program): assert program == 3
        """,
    "only skips": """
        import pytest
        @pytest.mark.skip
        def test_it(): pass
        """,
    "nothing": "",
}
M = {
    "-m of nobody's": ("-m", "slow"),
    "-m like a target's": ("-m", "hosts"),
    "-m of xdist's": ("-m", "not xdist_group"),
    "-k": ("-k", "it"),
    "--lf": ("--lf",),
}


def both(pytester: pytest.Pytester, *arguments: str) -> tuple[pytest.RunResult, pytest.RunResult]:
    """Ours is a process, which has none of our modules before it begins."""
    without = pytester.runpytest_inprocess("-p", "no:hil", *arguments)
    return pytester.runpytest_subprocess(*arguments), without


def said(result: pytest.RunResult) -> list[str]:
    """Without the list of plugins and the last line's time."""
    lines = [line for line in result.outlines if not line.startswith(("plugins:", "rootdir:"))]
    return [line.rpartition(" in ")[0] or line for line in lines]


@pytest.mark.parametrize("suite", SUITES)
def test_an_unrelated_suite(pytester: pytest.Pytester, suite: str) -> None:
    pytester.makepyfile(SUITES[suite])
    ours, without = both(pytester)
    assert (ours.ret, said(ours)) == (without.ret, said(without))


@pytest.mark.parametrize("expression", M)
def test_an_unrelated_selection(pytester: pytest.Pytester, expression: str) -> None:
    pytester.makepyfile("def test_it(): pass\ndef test_other(): pass")
    ours, without = both(pytester, *M[expression])
    assert (ours.ret, said(ours)) == (without.ret, said(without))


@pytest.mark.parametrize("asks", ["", "hil_case"])
def test_next_to_rerunfailures(pytester: pytest.Pytester, asks: str) -> None:
    """What fails once is run again, a case of ours too."""
    pytest.importorskip("pytest_rerunfailures")
    pytester.makepyfile(f"""
        import pytest
        tries = []
        @pytest.mark.hil_cases(targets=["host"], models=["add"])
        def test_it({asks}):
            tries.append(1)
            assert len(tries) == 2
        """)
    done = pytester.runpytest_subprocess("--reruns=1", *(() if asks else ("-p", "no:hil")))
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["*1 rerun*"])


def test_options_of_a_users_own(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("""
        def pytest_addoption(parser):
            for name in ("--simulator", "--executorch", "--firmware", "--part", "--exporter"):
                parser.addoption(name)
        """)
    pytester.makepyfile("def test_it(request): assert request.config.option.simulator == 'mine'")
    pytester.runpytest_inprocess("--simulator=mine").assert_outcomes(passed=1)


def test_what_a_session_without_us_imports(pytester: pytest.Pytester) -> None:
    """From its first line to its last: the plugin's own modules, and nothing large."""
    pytester.makepyfile("def test_it(): pass")
    pytester.makeconftest("""
        import sys
        def pytest_unconfigure(config):
            print("LOADED", *sys.modules)
        """)
    done = pytester.runpytest_subprocess()
    without = pytester.runpytest_subprocess("-p", "no:hil")
    new = _loaded(done) - _loaded(without)
    rooms = {name.split(".")[1] for name in new if name.startswith("harness.")}
    assert rooms <= {"config", "core", "firmware", "plugin", "system"}, sorted(new)
    assert not new & {"pydantic", "numpy", "torch", "rich", "yaml", "click", "filelock"}


def _loaded(result: pytest.RunResult) -> set[str]:
    (line,) = (line for line in result.outlines if line.startswith("LOADED"))
    return set(line.split())


@pytest.mark.parametrize("asks", [False, True])
def test_a_package_of_the_users_called_harness(pytester: pytest.Pytester, asks: bool) -> None:
    """It is first in ``sys.path`` under ``python -m pytest``. Theirs works; ours says why not."""
    (pytester.mkpydir("harness") / "plugin.py").write_text("MINE = 1\n")
    test = "hil_case" if asks else ""
    pytester.makepyfile(f"from harness.plugin import MINE\ndef test_it({test}): assert MINE")
    root = str(Path(executorch_hil.__file__).parents[1])
    code = f"import sys; sys.path.insert(1, {root!r}); import pytest; sys.exit(pytest.main())"
    plugin = ("-p", "no:hil", "-p", "executorch_hil.pytest_plugin")
    argv = [sys.executable, "-c", code.replace("main()", f"main({[*plugin]!r})")]
    done = subprocess.run(argv, cwd=pytester.path, capture_output=True, text=True)
    assert "1 error" in done.stdout if asks else "1 passed" in done.stdout, done.stdout
    assert ("the hil plugin is not active: `harness` is" in done.stdout) == asks


def test_short_names_for_whom_wants_them(pytester: pytest.Pytester) -> None:
    pytester.makeconftest('pytest_plugins = ["executorch_hil.short_names"]')
    pytester.makepyfile("""
        import pytest
        @pytest.mark.hil_cases(targets=["host"], models=["add"])
        def test_it(case, target, firmware_source): assert case.target == target.name == "host"
        """)
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_public_names() -> None:
    for name in executorch_hil.__all__:
        assert getattr(executorch_hil, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        executorch_hil.nonsense  # noqa: B018
