"""Protects readers from texts that read as translated; the list is in plain_english.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.main import main

from .plain_english import (
    hits,
    in_docstrings,
    in_docstrings_of,
    in_help,
    in_messages,
    in_pages,
    in_templates,
    in_yaml,
    without_code,
)

# Ratchets: how many hits harness/ had when somebody last counted. Lower a number when you rewrite
# some; never raise it.
MOST_IN_DOCSTRINGS = 0
MOST_IN_MESSAGES = 5


def test_pages_are_in_plain_english() -> None:
    assert [str(hit) for hit in in_pages()] == []


def test_causes_and_fixes_are_in_plain_english() -> None:
    assert [str(hit) for hit in in_yaml()] == []


def test_help_is_in_plain_english() -> None:
    assert [str(hit) for hit in in_help(main)] == []


def test_templates_and_targets_are_in_plain_english() -> None:
    assert [str(hit) for hit in in_templates()] == []


def test_messages_get_no_worse() -> None:
    found = [str(hit) for hit in in_messages()]
    assert len(found) <= MOST_IN_MESSAGES, "\n".join(found)


def test_docstrings_get_no_worse() -> None:
    found = [str(hit) for hit in in_docstrings()]
    assert len(found) <= MOST_IN_DOCSTRINGS, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "It lies beside the\nprogram.",
        "The line behind it.",
        "The cause is told.",
        "This is no module.",
        "`x` is\nno module.",
        "Write a in place\nof b.",
        "The state as of today.",
        "Of a folder without a repository.",
        "Stop here. With its size.",
        "What is missing is named.",
        "the labels that there are",
    ],
)
def test_the_signature_is_found(text: str) -> None:
    (hit,) = hits(text, "page.md")
    assert hit.where == f"page.md:{1 + text[: text.find(hit.words.split()[0])].count(chr(10))}"


@pytest.mark.parametrize(
    "text",
    [
        "There is no such file.",
        "There\nis no such file.",
        "It is no longer there.",
        "What is missing?",
        "Of course.",
        without_code("`beside`, [x](what/behind.md)\n\n## What stays\n\n```\ntold\n```\n"),
    ],
)
def test_plain_words_pass(text: str) -> None:
    assert not list(hits(text, "page.md"))


def test_a_docstring_is_read_and_its_code_is_not(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('"""Is ``beside`` it."""\ndef f():\n    """Of `link`."""\nX = "told"\n')
    assert [hit.words for hit in in_docstrings_of(module)] == ["Of"]
