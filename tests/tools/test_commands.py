"""Protects ./hil test and ./hil bench: help that teaches, wrong usage that says what to do."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tools.commands import main


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("test", "--only", "nothing"), "there is no step 'nothing'"),
        (("bench", "verdict", "--ending", "ends_well"), "there is no ending 'ends_well'"),
        (("bench", "nothing"), "'nothing' is not one of"),
    ],
)
def test_wrong_usage_is_exit_2(arguments: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize("verb", ["test", "bench"])
def test_help_has_an_example(verb: str) -> None:
    assert "Example" in CliRunner().invoke(main, [verb, "--help"]).output
