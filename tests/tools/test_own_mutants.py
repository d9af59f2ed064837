"""Bugs planted in copies of a project: what is caught, and what is not.

The project is small, but it is built, and its unit tests and its tests are run, as ours are.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from harness.config.schema import checked
from harness.system.progress import silent
from tools.bench.mutant_list import OwnMutant
from tools.bench.mutants import BaselineFails, Fate, MutantResult, _planted, measure
from tools.bench.own_ground import Ledger, OwnGround, digest, prepared
from tools.clone import project_root

FILES = {
    "targets/runner/CMakeLists.txt": """cmake_minimum_required(VERSION 3.20)
project(small LANGUAGES CXX)
find_path(DOCTEST doctest/doctest.h)
add_library(main OBJECT main.cpp)
add_executable(runner_tests test.cpp)
target_link_libraries(runner_tests main)
include_directories(${DOCTEST})
""",
    "targets/runner/main.cpp": """#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
""",
    "targets/runner/sum.h": """#include <cstdlib>
inline int sum(int a, int b) { return a + b; }
""",
    "targets/runner/test.cpp": """#include <doctest/doctest.h>
#include "sum.h"
TEST_CASE("two and two") { CHECK(sum(2, 2) == 4); }
""",
    "small/__init__.py": "",
    "small/sum.py": "def sum_of(a, b):\n    return a + b  # the sum\n",
    "tests/test_sum.py": """from small.sum import sum_of
def test_two_and_three():
    assert sum_of(2, 3) == 5
def test_two_and_two():
    assert sum_of(2, 2) == 4
""",
}
SUM = "tests/test_sum.py"
HEADER, MODULE = "targets/runner/sum.h", "small/sum.py"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "small" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "small"


def mutant(file: str, find: str, put: str, *tests: str, **more: object) -> OwnMutant:
    fields = {"bug": "b", "file": file, "find": find, "put": put, "tests": tests, **more}
    return checked(OwnMutant, fields)


def results_of(project: Path, jobs: int, *mutants: OwnMutant) -> Sequence[MutantResult]:
    grounds = prepared(project, project.parent / "own", jobs, silent)
    rows = measure({f"m{n}": one for n, one in enumerate(mutants)}, grounds, silent)
    assert all(digest(ground.project) == digest(project) for ground in grounds)
    return rows


@pytest.mark.thorough
def test_bugs_of_both_kinds_are_caught_and_a_change_that_is_none_is_not(project: Path) -> None:
    rows = results_of(
        project,
        1,
        mutant(HEADER, "a + b", "a - b", "runner_tests", SUM),
        mutant(HEADER, "return a", "std::abort(); return a", "runner_tests"),
        mutant(HEADER, "return a", "return  a", "runner_tests"),
        mutant(HEADER, "return a", "return x", "runner_tests"),
        mutant(MODULE, "a + b", "a * b", SUM),
        mutant(MODULE, "the sum", "a sum", SUM),
        mutant(HEADER, "return a", "return  a", "runner_tests", equivalent="a space"),
        mutant(MODULE, "def sum_of", "def sum_to", SUM),
        mutant(MODULE, "no such text", "x", SUM),
    )
    assert [(row.fate, row.by) for row in rows] == [
        (Fate.CAUGHT, "runner_tests two and two"),
        (Fate.CAUGHT, "runner_tests two and two"),
        (Fate.SURVIVED, ""),
        (Fate.NOT_BUILT, "build"),
        (Fate.CAUGHT, "tests/test_sum.py::test_two_and_three"),
        (Fate.SURVIVED, ""),
        (Fate.EQUIVALENT, ""),
        (Fate.NOT_BUILT, "pytest"),
        (Fate.STALE, ""),
    ]
    assert rows[0].text == "0 == 4"
    assert "undeclared identifier" in rows[3].text
    assert rows[4].text == "assert 6 == 5"


@pytest.mark.thorough
def test_the_room_is_asked_when_a_bug_s_own_tests_notice_nothing(project: Path) -> None:
    """And only then: the order within one run would be pytest's, that of the file."""
    own = f"{SUM}::test_two_and_two"
    rows = results_of(
        project,
        1,
        mutant(MODULE, "a + b", "a - b", own, room=(SUM,)),
        mutant(MODULE, "a + b", "a * b", own, room=(SUM,)),
        mutant(HEADER, "a + b", "a * b + a - b", SUM, room=("runner_tests",)),
        mutant(HEADER, "a + b", "a - b", SUM, room=("runner_tests",)),
    )
    assert [(row.fate, row.by) for row in rows] == [
        (Fate.CAUGHT, own),
        (Fate.CAUGHT, f"{SUM}::test_two_and_three"),
        (Fate.SURVIVED, ""),
        (Fate.CAUGHT, "runner_tests two and two"),
    ]


def test_a_loop_without_an_end_is_ended_by_its_own_time(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by the clock on the wall: on a crowded machine that says nothing about the bug."""
    monkeypatch.setattr("tools.bench.own_ground._CPU_SECONDS", 2)
    (row,) = results_of(project, 1, mutant(MODULE, "return a", "while a: pass\n    return a", SUM))
    assert (row.fate, row.by) == (Fate.CAUGHT, "pytest")
    assert row.verdict == "killed: SIGXCPU"


def test_what_somebody_else_killed_noticed_nothing(project: Path) -> None:
    """As the kernel does where there is too little memory."""
    kill = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    (row,) = results_of(project, 1, mutant(MODULE, "return a", f"{kill}; return a", SUM))
    assert row.fate is Fate.NOT_RUN


def test_firmware_that_a_bug_leaves_unbuilt_catches_nothing(project: Path) -> None:
    """A test whose firmware is not built fails, too."""
    (project / SUM).write_text("""import os, pathlib
from small.sum import sum_of
def test_built():
    folder = pathlib.Path(os.environ["HIL_HOME"], "cache", "firmware", str(sum_of(1, 1)))
    if sum_of(1, 1) != 2:
        folder.mkdir(parents=True)
    assert not folder.exists()
""")
    bug = mutant(MODULE, "a + b", "a - b", SUM)
    rows = results_of(project, 2, bug, bug)
    assert [(row.fate, row.by) for row in rows] == [(Fate.NOT_BUILT, "build")] * 2


def test_what_was_compiled_before_is_not_what_a_bug_is_judged_by(project: Path) -> None:
    """Bytecode of the same second and size would be taken for the bug's, which then survives."""
    (ground,) = prepared(project, project.parent / "own", 1, silent)
    bug = mutant(MODULE, "a + b", "a - b", SUM)
    compiled = Path(cache_from_source(str(ground.place(bug))))
    compiled.parent.mkdir(exist_ok=True)
    compiled.write_bytes(b"of before")
    other = compiled.with_name(f"other.{sys.implementation.cache_tag}.pyc")
    other.write_bytes(b"of another")
    with _planted(bug, ground):
        assert (compiled.exists(), other.exists()) == (False, True)


@pytest.mark.parametrize(
    ("test", "said"),
    [("test_wrong", "test_wrong: assert 2 == 3"), ("test_nine", "ERROR: not found: .*test_nine")],
)
def test_nothing_is_planted_when_a_test_fails_without(project: Path, test: str, said: str) -> None:
    with (project / SUM).open("a") as file:
        file.write("def test_wrong():\n    assert sum_of(1, 1) == 3\n")
    with pytest.raises(BaselineFails, match=said):
        results_of(project, 1, mutant(MODULE, "a + b", "a - b", f"{SUM}::{test}"))


def test_this_project_s_own(tmp_path: Path) -> None:
    """As ``hil bench mutants`` copies and runs it."""
    growth, test = "harness/judge/budget_check.py", "tests/judge/test_budget_check.py"
    limit = "measured > hard"
    grounds = prepared(project_root(), tmp_path / "own", 1, silent)
    bug = mutant(growth, limit, "measured >= hard", test)
    blank = mutant(growth, limit, f"{limit} ", test)
    rows = measure({"bug": bug, "blank": blank}, grounds, silent)
    assert [row.fate for row in rows] == [Fate.CAUGHT, Fate.SURVIVED]
    assert rows[0].by.startswith(f"{test}::")


def test_results_are_kept_as_long_as_the_sources_are_the_same(tmp_path: Path) -> None:
    row = MutantResult("one", "stride", "f", Fate.CAUGHT, "t", "failed", "why", 1.0)
    unknown = MutantResult("two", "stride", "f", Fate.NOT_RUN)
    ledger = Ledger(tmp_path / "results.jsonl", "abc")
    assert ledger.begin(resume=True) == {}
    for each in (row, unknown):
        ledger.add(each)
    with ledger.file.open("a") as file:
        file.write('{"name": "cut sho')
    assert ledger.begin(resume=True) == {"one": row}
    assert ledger.begin(resume=True) == {"one": row}
    assert dataclasses.replace(ledger, sources="def").begin(resume=True) == {}
    ledger.add(row)
    assert ledger.begin(resume=False) == {}


def test_a_copy_left_by_a_killed_bench_is_made_good(project: Path, tmp_path: Path) -> None:
    (ground,) = prepared(project, tmp_path / "own", 1, silent)
    (ground.project / MODULE).write_text("planted")
    (ground.project / "small" / "extra.py").write_text("")
    (again,) = prepared(project, tmp_path / "own", 1, silent)
    assert digest(again.project) == digest(project)
    assert isinstance(again, OwnGround)
