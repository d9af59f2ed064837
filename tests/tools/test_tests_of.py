"""Protects CONTRIBUTING's rule of where the tests of a module are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.clone import project_root
from tools.tests_of import LOADED_BY_NAME, find_tests, main, modules


def test_every_module_has_tests_where_the_rule_looks_for_them() -> None:
    assert [module for module in modules() if not find_tests(module)] == []


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("harness.judge.rules", "tests/judge/test_rules.py"),  # its name
        ("harness.judge.ending", "tests/sim/test_companion.py"),  # imports it
        ("harness.log.figures", "tests/log/test_parser.py"),  # tests the module that imports it
        ("harness.plugin.fixtures", "tests/plugin"),  # loaded by name
    ],
)
def test_the_first_rule_that_finds_a_test_counts(module: str, expected: str) -> None:
    assert Path(expected) in find_tests(module)


def test_a_module_without_a_test_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["harness/core/no_such_module.py"]) == 1
    assert capsys.readouterr().out == "harness/core/no_such_module.py has no test\n"


@pytest.mark.parametrize("module", LOADED_BY_NAME)
def test_what_is_loaded_by_name_exists(module: str) -> None:
    assert module in modules()
    assert (project_root() / LOADED_BY_NAME[module]).is_dir()
