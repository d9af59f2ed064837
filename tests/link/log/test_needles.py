"""Protects the speed-up that must not change an answer: whatever a pattern finds has one of the
words that a line is asked for before it is searched. Matches are made from the patterns."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from harness.link import build_failure
from harness.link.facts import read_facts
from harness.link.failure import FailureKind
from harness.link.log import messages, parse, statements
from harness.link.log.lines import Lines, lines_of
from tests.thorough import amount

_SIGNS = read_facts(messages._Sign, Path(messages.__file__).with_name("signs.yaml"))
_OF_STATEMENTS = ("_CMAKE", "_PARAGRAPH", "RAISED")
_ABOUT_FAILURES = ("_COMPILER", "_EXPANDED", "_APPLICATION", "_FRAGMENT", "_OVERLAY", "_PARSED")
_LOG_TEXT = st.characters(min_codepoint=32, max_codepoint=126)


def _words_are_in_what_is_found(words: Collection[str], pattern: re.Pattern[str]) -> None:
    @settings(
        max_examples=amount(13, 50),
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.from_regex(pattern, alphabet=_LOG_TEXT))
    def check(text: str) -> None:
        assert any(word in text for word in words), text

    check()


@pytest.mark.parametrize("shows", sorted({row.shows for row in _SIGNS}))
def test_the_signs_of_a_kind(shows: str) -> None:
    """Each by its own words: joined, the others' would make up for them."""
    for row in _SIGNS:
        if row.shows == shows:
            _words_are_in_what_is_found(row.needles, row.pattern)


def test_any_line_of_a_linker() -> None:
    _words_are_in_what_is_found(parse._LINKER_LINE.needles, parse._LINKER_LINE.pattern)


@pytest.mark.parametrize("name", _OF_STATEMENTS)
def test_where_a_statement_begins(name: str) -> None:
    _words_are_in_what_is_found(statements._BEGINNINGS, getattr(statements, name))


@pytest.mark.parametrize("name", _ABOUT_FAILURES)
def test_what_a_failure_is_about(name: str) -> None:
    words = (*build_failure._needles(), *statements._BEGINNINGS)
    _words_are_in_what_is_found(words, getattr(build_failure, name))


@pytest.mark.parametrize("kind", sorted({rule.kind for rule in messages.rules()}))
def test_the_rules_of_a_kind_of_failure(kind: FailureKind) -> None:
    for rule in messages.rules():
        if rule.kind is kind:
            _words_are_in_what_is_found(rule.needles, rule.pattern)


def test_a_word_that_is_missing_is_noticed() -> None:
    with pytest.raises(AssertionError):
        _words_are_in_what_is_found(("error",), re.compile("error|fatal"))


def test_lines_are_the_same_in_blocks() -> None:
    texts = [f"line {number} of a log" for number in range(1000)]
    lines = lines_of("\n\n".join(texts))
    assert [line.text for line in lines] == texts
    assert [lines[index].text for index in (0, 255, 256, 999, -1)] == [
        texts[index] for index in (0, 255, 256, 999, -1)
    ]
    assert [line.text for line in lines[250:260]] == texts[250:260]
    assert [(index, line.number) for index, line in lines.having(("line 256 ", "line 9 "))] == [
        (9, 19),
        (256, 513),
    ]
    assert [line.text for line in lines.numbered(511, 514)] == texts[255:257]
    assert list(parse.parse_lines(Lines(())).failures) == []
    with pytest.raises(IndexError):
        lines[1000]
