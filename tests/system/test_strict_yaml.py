"""YAML that nobody writes by hand: an error with file and line, at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.errors import TargetError
from harness.system import strict_yaml

BAD = {
    "twenty thousand brackets": ("a: " + "[" * 20_000, 1, "nested more than 32 deep"),
    "braces": ("a: " + "{b: " * 20_000, 1, "nested more than 32 deep"),
    "blocks": ("".join(" " * n + "a:\n" for n in range(600)), 33, "nested more than 32 deep"),
    "closed brackets": ("a: " + "[" * 400 + "]" * 400, 1, "nested more than 32 deep"),
    "a directive": ("%YAML 3.0\n---\na: 1\n", 1, "directives (%) are not used"),
    "a later directive": ("a: 1\n...\n%TAG ! tag:x,2026:\n---\nb: 1\n", 3, "directives (%)"),
    "infinity": ("a: .inf\n", 1, "'.inf' is not a number"),
    "not a number": ("a: .NaN\n", 1, "is not a number"),
    "beyond a double": ("a: 1e999\n", 1, "is not a number"),
    "too many digits": ("a: " + "9" * 5000 + "\n", 1, "is not a number"),
    "two documents": ("a: 1\n---\nb: 2\n", 2, "not valid YAML"),
    "only a comment": ("# nothing\n", 1, "must be a mapping"),
    "large": ("a: " + "x" * (1 << 20), 1, "more than 1048576 bytes"),
    "a tag": ("a: !!python/object/apply:os.system [x]\n", 1, ""),
    "an alias of nothing": ("a: *b\n", 1, "not valid YAML"),
    "a key that is a list": ("? [a]\n: 1\n", 1, "is not a string"),
}


@pytest.mark.parametrize("name", BAD)
def test_an_error_with_its_line(tmp_path: Path, name: str) -> None:
    text, line, said = BAD[name]
    file = tmp_path / "t.yaml"
    file.write_text(text)
    if name == "a tag":  # of no effect: it is a sequence all the same
        assert strict_yaml.read(file).data == {"a": ("x",)}
        return
    with pytest.raises(TargetError) as caught:
        strict_yaml.read(file)
    assert said in caught.value.message
    assert caught.value.line == line


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.yaml")
    with pytest.raises(TargetError, match="not a regular file"):
        strict_yaml.read(tmp_path / "t.yaml")


def test_thirty_two_levels_are_read(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(
        "".join(" " * n + "a:\n" for n in range(31)) + " " * 31 + "a: 1"
    )
    strict_yaml.read(tmp_path / "t.yaml")
