"""YAML that nobody writes by hand: an error with file and line, at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from harness.config import strict_yaml
from harness.core.errors import TargetError

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
    "two documents": ("a: 1\n---\nb: 2\n", 2, "a second document"),
    "only a comment": ("# nothing\n", 1, "must be a mapping"),
    "large": ("a: " + "x" * (1 << 20), 1, "more than 1048576 bytes"),
    "a tag": (
        "b: 1\na: !!python/object/apply:os.system [x]\n",
        2,
        "tags (tag:yaml.org,2002:python",
    ),
    "a tag of text": ("a: !!str 1\n", 1, "tags (tag:yaml.org,2002:str)"),
    "an anchor": ("a: &b 1\n", 1, "anchors and aliases (&b)"),
    "an anchored mapping": ("a: &b {c: 1}\n", 1, "anchors and aliases (&b)"),
    "an alias": ("a: &b 1\nc: *b\n", 1, "anchors and aliases (&b)"),
    "a merge key": ("a: 1\nb:\n  <<: {c: 1}\n  <<: {d: 1}\n", 3, "'<<' means something else"),
    "a date": ("a: 2026-11-23\n", 1, "'2026-11-23' means something else"),
    "a time": ("a: 2026-11-23 10:00:00\n", 1, "means something else"),
    "an octal number of YAML 1.1": ("a: 010\n", 1, "'010' is not a number"),
    "digits with an underscore": ("a: 1_000\n", 1, "'1_000' is not a number"),
    "a binary number of YAML 1.1": ("a: 0b11\n", 1, "'0b11' is not a number"),
    "a duplicate key": ("a: 1\nb: 2\na: 3\n", 3, "duplicate key 'a', first used in line 1"),
    "a number as a key": ("1: a\n", 1, "the key 1 is not a string"),
    "null as a key": ("? \n: 1\n", 1, "is not a string"),
    "an unclosed quote": ("a: 1\nb: 'x\n", 3, "not valid YAML"),
    "a tabulator": ("a:\n\tb: 1\n", 2, "not valid YAML"),
    "a control character": ("a: 1\nb: \x01\n", 2, "not valid YAML: control characters"),
    "an alias of nothing": ("a: *b\n", 1, "anchors and aliases (&b)"),
    "a key that is a list": ("? [a]\n: 1\n", 1, "is not a string"),
}


@pytest.mark.parametrize("name", BAD)
def test_an_error_with_its_line(tmp_path: Path, name: str) -> None:
    text, line, said = BAD[name]
    file = tmp_path / "t.yaml"
    file.write_text(text)
    with pytest.raises(TargetError) as caught:
        strict_yaml.read(file)
    assert said in caught.value.message
    assert caught.value.line == line


VALUES = {
    "no": "no",
    "yes": "yes",
    "on": "on",
    "1:30": "1:30",
    "1.2.3": "1.2.3",
    "0.10.0": "0.10.0",
    "true": True,
    "False": False,
    "~": None,
    "null": None,
    "": None,
    "0": 0,
    "-7": -7,
    "0x1F": 31,
    "0o17": 15,
    "1.5": 1.5,
    "1e3": 1000.0,
    "-.5": -0.5,
    "11.30": 11.3,  # a field that wants a string says so, with the text as it is written
    "'11.30'": "11.30",
    '"true"': "true",
    "[1, no]": (1, "no"),
    "{b: 1}": {"b": 1},
}


@pytest.mark.parametrize("text", VALUES)
def test_a_value_is_what_yaml_1_2_says(tmp_path: Path, text: str) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(f"a: {text}\n")
    value = strict_yaml.read(file).data["a"]
    assert value == VALUES[text]
    assert type(value) is type(VALUES[text])


def test_the_parser_without_libyaml_reads_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = sorted(Path("targets").rglob("*.yaml"))
    assert files
    with_libyaml = [strict_yaml.read(file) for file in files]
    monkeypatch.setattr(strict_yaml, "_LOADER", yaml.SafeLoader)
    assert [strict_yaml.read(file) for file in files] == with_libyaml


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.yaml")
    with pytest.raises(TargetError, match="not a regular file"):
        strict_yaml.read(tmp_path / "t.yaml")


def test_thirty_two_levels_are_read(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(
        "".join(" " * n + "a:\n" for n in range(31)) + " " * 31 + "a: 1"
    )
    strict_yaml.read(tmp_path / "t.yaml")
