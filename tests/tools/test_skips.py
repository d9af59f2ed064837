"""Protects CI from tests that are skipped without anybody having decided it."""

from __future__ import annotations

from pathlib import Path

from tools.skips import unexpected_skips

JUNIT = """<testsuites><testsuite>
<testcase classname="tests.a" name="test_one">
<skipped type="pytest.skip" message="no Zephyr"/></testcase>
<testcase classname="tests.a" name="test_two"/>
<testcase classname="tests.a" name="test_three">
<skipped type="pytest.xfail" message="known"/></testcase>
</testsuite></testsuites>"""


def _problems(tmp_path: Path, rows: str) -> list[str]:
    (tmp_path / "junit.xml").write_text(JUNIT)
    (tmp_path / "skips.yaml").write_text(rows)
    return unexpected_skips(tmp_path / "junit.xml", tmp_path / "skips.yaml")


def test_the_expected_number_of_skips_passes(tmp_path: Path) -> None:
    assert _problems(tmp_path, "'^no Zephyr': 1\n") == []


def test_a_skip_without_a_row_is_named(tmp_path: Path) -> None:
    assert _problems(tmp_path, "{}") == [
        "tests.a::test_one: 'no Zephyr' is not in skips.yaml",
    ]


def test_more_skips_than_allowed_are_reported(tmp_path: Path) -> None:
    assert _problems(tmp_path, "'^no Zephyr': 0\n") == [
        "1 for '^no Zephyr'; skips.yaml allows 0",
    ]
