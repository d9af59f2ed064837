"""Protects that a table of facts is read whole: patterns with their fragments, words, and no key
that nobody knows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.config.schema import Data
from harness.link.facts import read_facts
from harness.link.failure import FailureKind

_FILE = """\
fragments:
  name: '(?P<NAME>\\w+)'
  place: 'in %name file%:'
rows:
- kind: lto
  needles: [place, '%name%']
  pattern: '^%place% %name symbol%$'
"""


@dataclass(frozen=True)
class _Row(Data):
    kind: FailureKind
    needles: tuple[str, ...]
    pattern: re.Pattern[str]


def test_a_row_has_its_fragments_and_words(tmp_path: Path) -> None:
    file = tmp_path / "facts.yaml"
    file.write_text(_FILE)
    (row,) = read_facts(_Row, file)
    assert (row.kind, row.needles) == (FailureKind.LTO, ("place", r"(?P<NAME>\w+)"))
    assert row.pattern.pattern == r"^in (?P<file>\w+): (?P<symbol>\w+)$"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("kind: lto", "kind: let"), ("kind: lto", "kinds: lto"), ("symbol%$", "symbol%($")],
    ids=("a word", "a key", "a pattern"),
)
def test_what_is_wrong_with_a_row_is_an_error(right: str, wrong: str, tmp_path: Path) -> None:
    file = tmp_path / "facts.yaml"
    file.write_text(_FILE.replace(right, wrong))
    with pytest.raises(ValueError, match=r"kind|pattern"):
        read_facts(_Row, file)
