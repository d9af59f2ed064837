"""``hil bench plugin``: it tells sessions apart; how fast they are is nowhere asserted."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.verdict import ExitCode
from tools.bench.plugin import PluginCost, Session, alike, measure_plugin, session, suite


@pytest.mark.thorough
def test_a_suite_of_others(tmp_path: Path) -> None:
    """Passing, failing and left out, so that there is something to differ in."""
    suite(tmp_path / "suite", 120)
    done = session(tmp_path / "suite")
    assert done.status == 1
    assert "2 failed, 106 passed, 12 deselected" in done.output
    assert alike(tmp_path / "suite")


@pytest.mark.thorough
def test_a_plugin_that_does_something_is_seen(tmp_path: Path) -> None:
    """A planted one, which looks whether ours is there."""
    suite(tmp_path / "suite", 3)
    with (tmp_path / "suite" / "conftest.py").open("a") as file:
        file.write(
            "def pytest_report_header(config): return str(config.pluginmanager.hasplugin('hil'))\n"
        )
        file.write(
            "def pytest_collection_modifyitems(config, items):\n"
            "    if config.pluginmanager.hasplugin('hil'): items.pop()\n"
        )
    assert not alike(tmp_path / "suite")


@pytest.mark.thorough
def test_it_measures() -> None:
    found = measure_plugin(lambda _text: None, pairs=1, tests=20)
    assert found.same
    assert found.pairs[0][0].cpu > 0
    assert "the same results" in found.text()


@pytest.mark.parametrize(
    ("more", "same", "code"),
    [(0.001, True, ExitCode.PASSED), (0.001, False, ExitCode.FAILED), (0.5, True, ExitCode.FAILED)],
)
def test_what_fails(more: float, same: bool, code: ExitCode) -> None:
    ours, without = Session(0, "", 1 + more, 1 + more), Session(0, "", 1, 1)
    found = PluginCost(((ours, without),), same)
    assert found.exit_code == code
    assert found.summary()["same_results"] == same
    assert ("TOO MUCH" in found.text()) == (more > 0.02)
    assert ("OTHER RESULTS" in found.text()) == (not same)
