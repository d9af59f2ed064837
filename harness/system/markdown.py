"""Text of anybody's as Markdown that says just that."""

from __future__ import annotations


def plain(text: str) -> str:
    """Nothing in it may start Markdown, HTML or a table's next cell."""
    escaped = {"<": "&lt;", ">": "&gt;", **{letter: f"\\{letter}" for letter in "\\`*_[]|#"}}
    return " ".join("".join(escaped.get(letter, letter) for letter in text).split())
