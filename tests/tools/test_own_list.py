"""The lists of the project's own bugs: each has its place, and the tests that it names exist."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from harness.core.errors import TargetError
from tools.bench.mutant_list import OWN_LISTS, UNIT_TESTS, OwnMutant, read_own
from tools.clone import project_root

MUTANTS = read_own()


def of_room(mutant: OwnMutant) -> str:
    folder = Path(mutant.file).parts
    return "/".join(folder[: 3 if folder[0] == "targets" and len(folder) > 3 else 2])


def has_its_place(mutant: OwnMutant) -> bool:
    path = project_root() / mutant.file
    return path.is_file() and mutant.planted(path.read_text("utf-8")) is not None


def test_every_bug_has_its_place() -> None:
    """Whoever changes the code changes the list."""
    without = [name for name, mutant in MUTANTS.items() if not has_its_place(mutant)]
    assert without == []


def test_every_test_that_it_names_exists() -> None:
    named = {test for mutant in MUTANTS.values() for test in (*mutant.tests, *mutant.room)}
    ids = sorted(named - {*UNIT_TESTS})
    argv = [sys.executable, "-m", "pytest", "-q", "--collect-only", *ids]
    done = subprocess.run(argv, cwd=project_root(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]


def test_it_is_spread_over_what_it_is_for() -> None:
    rooms = Counter(of_room(mutant) for mutant in MUTANTS.values())
    wanted = {
        "targets/runner/kernels",
        "targets/runner/core",
        "targets/runner/ethosu",
        "harness/npu",
        "harness/log",
        "harness/judge",
    }
    assert sum(mutant.equivalent is None for mutant in MUTANTS.values()) >= 150
    assert all(rooms[room] >= 20 for room in wanted), rooms


def test_no_two_are_the_same_bug() -> None:
    places = Counter((m.file, m.find, m.nth, m.put) for m in MUTANTS.values())
    assert [place for place, count in places.items() if count > 1] == []


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{bug: b, file: f, find: x, put: y, tests: []}", "one: no `tests` to notice it"),
        ("{bug: b, file: harness/f.py, find: x, put: y}", "one: no `tests` to notice it"),
        ("{bug: b, file: f, find: x, put: y, tests: [a_test]}", "a_test is neither below tests/"),
        ("{bug: b, file: f, find: x, put: x, tests: [tests/x]}", "is there already"),
        ("{bug: b, file: f, find: x, put: y, tests: [tests/x], cases: [a/b]}", "unknown key"),
    ],
)
def test_a_malformed_entry_is_named(tmp_path: Path, entry: str, said: str) -> None:
    (tmp_path / "list.yaml").write_text(f"mutants:\n  one: {entry}\n")
    with pytest.raises(TargetError) as caught:
        read_own(tmp_path)
    assert said in caught.value.message
    assert caught.value.line == 2


def test_which_tests_are_for_a_bug(tmp_path: Path) -> None:
    """Its own, else its file's; then those of its room that it has not had."""
    (tmp_path / "list.yaml").write_text("""tests: [tests/judge, tests/run, runner_tests]
mutants:
  own: {bug: b, file: harness/judge/budget_check.py, find: x, put: y, tests: [tests/run]}
  file: {bug: b, file: harness/judge/budget_check.py, find: x, put: y}
  room: {bug: b, file: targets/runner/growth.cpp, find: x, put: y}
""")
    found = read_own(tmp_path)
    assert {name: (mutant.tests, mutant.room) for name, mutant in found.items()} == {
        "own": (("tests/run",), ("tests/judge", "runner_tests")),
        "file": (
            ("tests/judge/test_budget_check.py",),
            ("tests/judge", "tests/run", "runner_tests"),
        ),
        "room": ((), ("tests/judge", "tests/run", "runner_tests")),
    }


def test_a_name_is_there_once(tmp_path: Path) -> None:
    entry = "mutants:\n  one: {bug: b, file: f, find: x, put: y, tests: [tests/x]}\n"
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(entry)
    with pytest.raises(TargetError, match="one is in another list, too") as caught:
        read_own(tmp_path)
    assert (caught.value.file, caught.value.line) == (str(tmp_path / "b.yaml"), 2)
    assert OWN_LISTS.is_dir()
