"""Protects green under pytest: no test passes on a run that is not proven, unless it said which
verdict it looks at; and what a verdict comes with is told wherever pytest tells anything.

The inner session runs doubles of an FVP through the whole pipeline, once for all tests here.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from harness.config.case import Case
from harness.judge.reference import Reference, reference_path, render
from harness.suites.standin.command_line import load_fvp_model
from tools.doubles import install_double

TARGET = "corstone-300-m55"
FVP = "FVP_Corstone_SSE-300_Ethos-U55"
TESTS = """
    import os
    import pytest
    from tools.doubles import double_firmware, double_program
    from harness.core.verdict import Verdict
    from executorch_hil import require_pass

    pytestmark = pytest.mark.hil_cases(targets=["corstone-300-m55"], models=["add"])

    @pytest.fixture(scope="session")
    def hil_program(tmp_path_factory):
        return double_program(tmp_path_factory.mktemp("p") / "program")

    @pytest.fixture(scope="session")
    def hil_firmware(tmp_path_factory):
        return double_firmware(tmp_path_factory.mktemp("f"))

    @pytest.fixture
    def ending(request, monkeypatch):
        monkeypatch.setenv("HIL_FVP_DIR", os.path.join(os.environ["DOUBLES"], request.param))

    wrong = pytest.mark.parametrize("ending", ["wrong_by_one"], indirect=True)
    right = pytest.mark.parametrize("ending", ["passes"], indirect=True)

    @wrong
    def test_never_looks(ending, hil_run):
        pass

    @wrong
    def test_looks_without_a_word(ending, hil_run):
        assert hil_run.verdict is Verdict.MISMATCH

    @wrong
    def test_asks_by_name(ending, hil_case, request):
        request.getfixturevalue("hil_run")

    @wrong
    @pytest.mark.hil_expect("HANG", Verdict.FAULT)
    def test_named_others(ending, hil_run):
        pass

    @right
    @pytest.mark.hil_expect("MISMATCH")
    def test_named_and_passes(ending, hil_run):
        pass

    @wrong
    @pytest.mark.hil_expect(Verdict.MISMATCH)
    def test_named(ending, hil_run):
        assert hil_run.cause.kind == "outputs_differ"

    @wrong
    @pytest.mark.hil_expect("MISMATCH")
    def test_named_and_required(ending, hil_run):
        require_pass(hil_run)

    @wrong
    @pytest.mark.hil_expect("MISMATCH")
    class TestOfAClass:
        def test_named(self, ending, hil_run):
            pass

    @right
    def test_proven(ending, hil_run):
        pass

    @wrong
    @pytest.mark.hil_cases(targets=["corstone-300-m55"], models=["mine.py"])
    def test_tolerated(ending, hil_run):
        pass
"""
FAILED = {
    "test_never_looks": '@pytest.mark.hil_expect("MISMATCH")',
    "test_looks_without_a_word": '@pytest.mark.hil_expect("MISMATCH")',
    "test_asks_by_name": '@pytest.mark.hil_expect("MISMATCH")',
    "test_named_others": "the test expects HANG or FAULT (hil_expect)",
    "test_named_and_passes": "the test expects MISMATCH (hil_expect)",
    "test_named_and_required": "",
}
LOST = "note: the recorded outputs were not compared: the program is not that of the accepted run"
TOLERANT = "mine.py: PASS (tolerance 1 LSB)"


class Session:
    """What one inner session said, on each face."""

    def __init__(self, result: pytest.RunResult, folder: Path) -> None:
        self.result = result
        self.terminal = result.stdout.str()
        self.page = (folder / "page.md").read_text()
        suite = ElementTree.parse(folder / "j.xml").getroot()
        self.cases = {str(c.get("name")).partition("[")[0]: c for c in suite.iter("testcase")}

    def properties(self, test: str) -> list[tuple[str | None, str | None]]:
        return [(p.get("name"), p.get("value")) for p in self.cases[test].iter("property")]


@pytest.fixture(params=[(), ("-n", "2")], ids=["alone", "xdist"])
def session(
    request: pytest.FixtureRequest, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> Session:
    for ending in ("passes", "wrong_by_one"):
        known = load_fvp_model(FVP).parameters
        install_double(pytester.path / "doubles" / ending, FVP, ending, known)
    (pytester.path / "mine.py").touch()
    (pytester.path / "mine.yaml").write_text("budgets: {tolerance_lsb: 1}\n")
    accepted = reference_path(pytester.path / "references", Case(TARGET, "add"))
    accepted.parent.mkdir(parents=True)
    accepted.write_text(render(Reference("aa", (("11",), ("22",)), {}, {"none": {}}, ())))
    monkeypatch.setenv("DOUBLES", str(pytester.path / "doubles"))
    monkeypatch.setenv("HIL_HOME", str(pytester.path / ".hil"))
    monkeypatch.setenv("HIL_REFERENCES", str(pytester.path / "references"))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path / "page.md"))
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_inprocess("--hil-simulator=fvp", "--junitxml=j.xml", *request.param)
    return Session(result, pytester.path)


def test_no_test_is_green_on_an_unproven_run(session: Session) -> None:
    """Each is a failure, not an error, with the verdict's words; each that said so passes. And
    what a verdict comes with is on the terminal, in JUnit, and on the page of the step."""
    session.result.assert_outcomes(passed=4, failed=6)
    for test, why in FAILED.items():
        (failure,) = session.cases[test].iter("failure")
        said = f"{failure.get('message')}\n{failure.text}"  # pytest shortens the message
        found = "PASS" if "passes" in test else "MISMATCH outputs_differ: output[2] of input set 0"
        assert f"{TARGET}/add: {found}" in said
        assert why in said
        assert "evidence: " in said
        assert LOST in said
    assert "hil: notes" in session.terminal
    assert f"{LOST} (aa, this one is " in session.terminal
    assert "note: no reference run accepted yet" in session.terminal
    assert TOLERANT in session.terminal
    told = session.properties("test_tolerated")
    assert ("verdict_text", "PASS (tolerance 1 LSB)") in told
    assert ("tolerance_lsb", "1.0") in told
    assert ("note", "no reference run accepted yet") in told
    assert any(
        n == "note" and "recorded outputs" in str(v) for n, v in session.properties("test_proven")
    )
    assert "PASS (tolerance 1 LSB)" in session.page
    assert "note: the recorded outputs were not compared" in session.page
    assert f"| {TARGET}/add | MISMATCH | outputs\\_differ: output" in session.page


def test_in_ci_a_case_that_was_never_accepted_fails(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, shared_hil_home: str
) -> None:
    monkeypatch.setenv("HIL_HOME", shared_hil_home)
    monkeypatch.setenv("HIL_REFERENCES", str(pytester.path / "references"))
    monkeypatch.setenv("HIL_REQUIRE_CONFINEMENT", "0")
    monkeypatch.setenv("CI", "true")
    pytester.makepyfile(
        "import pytest\n"
        '@pytest.mark.hil_cases(targets=["host"], models=["add"])\n'
        "def test_it(hil_run): pass\n"
    )
    failed = pytester.runpytest_inprocess()
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["*NO_VERDICT not_accepted: *accept host/add --reason*"])
    pytester.runpytest_inprocess("--hil-allow-new=add").assert_outcomes(passed=1)
