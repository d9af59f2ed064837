"""The bench of planted bugs: what is caught, what is not, and what proves nothing.

The sources are real files, planted for real; what stands in for ExecuTorch reads them: a program
of one line, which passes as long as it computes 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.config.case import Case
from harness.config.schema import checked
from harness.core.errors import BuildError, InfraError, Unknown
from harness.core.judgement import Cause, Judgement
from harness.core.verdict import ExitCode, Verdict
from harness.run.record import RunRecord
from harness.suites.results import SuiteReport, SuiteTest
from harness.system.progress import silent
from tools.bench.mutant_list import CheckoutMutant, SuiteCheck
from tools.bench.mutant_runs import Runs
from tools.bench.mutants import (
    BaselineFails,
    Fate,
    MutantResult,
    MutantResults,
    chosen,
    measure,
)
from tools.commands import main

CASE = "host/add"


@dataclass
class Product:
    """``main.txt`` is a sum; what it must come to is 6, and it may have a word of its own."""

    root: Path
    runs: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)  # of the suite
    cleaned: int = 0

    @property
    def source(self) -> Path:
        return self.root / "main.txt"

    def run(self, case: Case) -> RunRecord:
        text = self.source.read_text()
        self.runs.append(text)
        word = next((v for v in Verdict if f"says {v}" in text), None)
        if "does not compile" in text:
            raise BuildError("syntax error")
        right = sum(int(n) for n in text.split("#")[0].split("+")) == 6
        verdict = word or (Verdict.PASS if right else Verdict.MISMATCH)
        cause = None if verdict.passed else Cause("sum", "another sum\nmore of it")
        return RunRecord(case, "2026", Judgement(verdict, cause))

    def suite(self, check: SuiteCheck) -> SuiteReport:
        """Test "order" looks at the order; "odd" never passes when it says so; "known" is known to
        fail, and an error as soon as it does not."""
        text = self.source.read_text()
        self.runs.append(text)
        self.asked.append(check.tests)
        order = "passed" if text.startswith("1+2") else "failed"
        odd = "failed" if "odd" in text else "passed"
        known = "failed" if "mends" in text else "xfailed"
        results: dict[str, Any] = {"order": order, "odd": odd, "known": known}
        verdicts = tuple(SuiteTest(test, said, "", 0.0) for test, said in results.items())
        return SuiteReport(check.name, "none", "elf", verdicts, 0.0, self.root)

    def ground(self) -> Runs:
        def clean() -> None:
            self.cleaned += 1

        return Runs({None: self.root, "part": self.root}, self.run, self.suite, silent_, clean)


def silent_() -> None:
    """Nothing is kept here."""


@pytest.fixture
def product(tmp_path: Path) -> Product:
    made = Product(tmp_path)
    made.source.write_text("1+2+3 # fine\n")
    return made


def mutant(find: str, put: str, **more: object) -> CheckoutMutant:
    entry = {"bug": "b", "file": "main.txt", "find": find, "put": put, "cases": (CASE,), **more}
    return checked(CheckoutMutant, entry)


def results_of(product: Product, *mutants: CheckoutMutant) -> Sequence[MutantResult]:
    before = product.source.read_text()
    rows = measure({f"m{n}": one for n, one in enumerate(mutants)}, [product.ground()], silent)
    assert product.source.read_text() == before
    return rows


def test_a_bug_is_caught_and_taken_out_again(product: Product) -> None:
    (row,) = results_of(product, mutant("+2", "+3"))
    assert (row.fate, row.by, row.verdict) == (Fate.CAUGHT, CASE, "MISMATCH")
    assert row.text == "sum: another sum"
    assert product.runs == ["1+2+3 # fine\n", "1+3+3 # fine\n"]


def test_one_at_a_time_and_cleaned_after_each(product: Product) -> None:
    rows = results_of(product, mutant("+2", "+3"), mutant("+3", "+4"))
    assert [row.fate for row in rows] == [Fate.CAUGHT, Fate.CAUGHT]
    assert product.runs[1:] == ["1+3+3 # fine\n", "1+2+4 # fine\n"]
    assert product.cleaned == 2


def test_a_survivor_and_one_that_is_said_to_be_equivalent(product: Product) -> None:
    rows = results_of(
        product, mutant("1+2", "2+1"), mutant("fine", "good", equivalent="a comment, no more")
    )
    assert [row.fate for row in rows] == [Fate.SURVIVED, Fate.EQUIVALENT]
    assert rows[1].text == "a comment, no more"


def test_what_is_said_to_be_equivalent_and_is_not(product: Product) -> None:
    (row,) = results_of(product, mutant("+2", "+3", equivalent="so it was thought"))
    assert row.fate is Fate.CAUGHT


def test_a_suite_catches_what_the_cases_do_not(product: Product) -> None:
    check = {"name": "cortex-m", "tests": "order"}
    (row,) = results_of(product, mutant("1+2", "2+1", suite=check))
    assert (row.fate, row.by, row.text) == (Fate.CAUGHT, "cortex-m", "1 tests, order first")


def test_only_tests_that_passed_without_it_notice_a_bug(product: Product) -> None:
    """One that was known to fail and passes now is an error of the suite, and says nothing."""
    check = {"name": "cortex-m", "tests": "order"}
    (row,) = results_of(product, mutant("fine", "mends", suite=check))
    assert row.fate is Fate.SURVIVED


def test_without_a_bug_a_suite_is_started_once(product: Product) -> None:
    checks = [{"name": "cortex-m", "tests": tests} for tests in ("order", "odd", "order")]
    results_of(product, *(mutant("1+2", "2+1", suite=check, cases=()) for check in checks))
    assert product.asked == ["(order) or (odd)", "order", "odd", "order"]


def test_a_place_that_is_not_there_is_stale_and_the_others_are_run(product: Product) -> None:
    rows = results_of(
        product,
        mutant("+9", "+8"),
        mutant("+2", "+3"),
        mutant("x", "y", file="no/such"),
        mutant("x", "y", file="main.txt/below"),
    )
    assert [row.fate for row in rows] == [Fate.STALE, Fate.CAUGHT, Fate.STALE, Fate.STALE]
    assert rows[0].text == "`+9` is not 1 times in main.txt"


@pytest.mark.parametrize(
    ("put", "fate"),
    [
        ("says BUILD_ERROR", Fate.NOT_BUILT),
        ("says LINK_ERROR", Fate.NOT_BUILT),
        ("says INFRA", Fate.NOT_RUN),
        ("says NO_VERDICT", Fate.NOT_RUN),
        ("does not compile", Fate.NOT_BUILT),
        ("says HANG", Fate.CAUGHT),
    ],
)
def test_what_does_not_catch(product: Product, put: str, fate: Fate) -> None:
    (row,) = results_of(product, mutant("fine", put))
    assert row.fate is fate


def test_an_error_of_ours_takes_the_bug_out_too(product: Product) -> None:
    ground = product.ground()
    calls: list[Case] = []

    def run(case: Case) -> RunRecord:
        calls.append(case)
        if len(calls) > 1:
            raise InfraError("the disk is full")
        return product.run(case)

    planned = {"m": mutant("+2", "+3")}
    (row,) = measure(planned, [Runs(ground.roots, run, ground.suite, silent_, silent_)], silent)
    assert (row.fate, row.text) == (Fate.NOT_RUN, "the disk is full")
    assert product.source.read_text() == "1+2+3 # fine\n"


@pytest.mark.parametrize(
    ("content", "said", "code"),
    [
        ("1+2+4\n", "host/add: MISMATCH sum: another sum", ExitCode.FAILED),
        ("1+2+3 # says INFRA\n", "host/add: INFRA sum: another sum", ExitCode.INFRASTRUCTURE),
        ("1+2+3 # odd\n", "cortex-m -k 'order': odd failed", ExitCode.FAILED),
        ("1+2+4 # odd\n", "host/add: (.*\n)+  cortex-m -k 'order': odd", ExitCode.FAILED),
    ],
)
def test_nothing_is_planted_when_it_fails_without(
    product: Product, content: str, said: str, code: ExitCode
) -> None:
    product.source.write_text(content)
    check = {"name": "cortex-m", "tests": "order"}
    with pytest.raises(BaselineFails, match=said) as caught:
        results_of(product, mutant("1+2", "2+2", suite=check))
    assert caught.value.exit_code is code
    assert set(product.runs) == {content}


def test_only_those_that_are_named() -> None:
    listed = {n: mutant("x", "y") for n in ("one", "two")}
    assert list(chosen(listed, ["two"])) == ["two"]
    assert list(chosen(listed, [])) == ["one", "two"]
    with pytest.raises(Unknown, match="there is no mutant 'tow'") as caught:
        chosen(listed, ["tow"])
    assert caught.value.hint == "did you mean two?"


@pytest.mark.parametrize(("word", "found"), [("on", ["one"]), ("main", ["one", "two"])])
def test_only_those_that_have_a_word(word: str, found: list[str]) -> None:
    listed = {n: mutant("x", "y") for n in ("one", "two")}
    assert list(chosen(listed, [], word)) == found
    with pytest.raises(Unknown, match="no mutant has 'three'"):
        chosen(listed, [], "three")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--only", "conv-bios", "--executorch", "."), "did you mean conv-bias"),
        (("--executorch", "no-such-folder"), "is not the work tree of a git repository"),
        (("--only", "conv-bios"), "there is no mutant 'conv-bios'"),
        (("--part", "a=b"), "--part belongs to --executorch"),
        (("--executorch", ".", "-j", "2"), "-j and --resume are for the project's own"),
        (("--executorch", ".", "--resume"), "-j and --resume are for the project's own"),
    ],
)
def test_wrong_usage_is_exit_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EXECUTORCH_ROOT", raising=False)
    result = CliRunner().invoke(main, ["bench", "mutants", *arguments])
    assert result.exit_code == 2
    assert said in result.output


@pytest.mark.parametrize(
    ("fates", "code"),
    [
        ([Fate.CAUGHT, Fate.EQUIVALENT], 0),
        ([Fate.CAUGHT, Fate.STALE], 2),
        ([Fate.NOT_BUILT], 2),
        ([Fate.STALE, Fate.NOT_RUN], 3),
        ([Fate.STALE, Fate.NOT_RUN, Fate.SURVIVED], 1),
    ],
)
def test_exit_codes(fates: list[Fate], code: int) -> None:
    rows = tuple(MutantResult(f"m{n}", "b", "f", fate) for n, fate in enumerate(fates))
    assert MutantResults(rows, "c" * 40, "abc").exit_code == code


def test_the_table(product: Product) -> None:
    rows = (
        MutantResult(
            "one", "stride", "a/x.c", Fate.CAUGHT, CASE, "MISMATCH", "sum: another sum", 90.0
        ),
        MutantResult("two", "padding", "b/y.c", Fate.STALE, text="`x` is not 1 times in f"),
    )
    results = MutantResults(rows, "0123456789abcdef", "abc")
    assert results.text().splitlines() == [
        "one                       stride             caught       90.0 s  "
        "host/add: MISMATCH sum: another sum",
        "two                       padding            stale         0.0 s  `x` is not 1 times in f",
        "a: 1 bugs, 1 caught; 1.5 min",
        "b: 1 bugs, 1 stale; 0.0 min",
        "all, in 0123456789: 2 bugs, 1 caught, 1 stale; 1.5 min",
        "stale: the list is written for ExecuTorch abc",
    ]
    summary = results.summary()
    assert summary["counts"]["caught"] == 1
    assert summary["mutants"][0]["by"] == CASE
