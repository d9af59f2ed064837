"""JSON that somebody edited: a value, or what is wrong with it in a few words."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.system.files import NotJson, parsed, read_json

BAD = {
    "infinity": (b'{"a": Infinity}', "Infinity is not a number"),
    "minus infinity": (b"[-Infinity]", "-Infinity is not a number"),
    "not a number": (b"NaN", "NaN is not a number"),
    "not UTF-8": (b'"\xff"', "byte 1 is not UTF-8"),
    "deep": (b"[" * 200_000, "nested too deeply"),
    "deep and closed": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested too deeply"),
    "half a character": (b'"\\ud800"', "not Unicode"),
    "cut short": (b'{"a": 1', "Expecting"),
    "empty": (b"", "Expecting value"),
    "too many digits": (b"9" * 5000, "integer string conversion"),
    "twice": (b"{} {}", "Extra data"),
    "many small things": (b"[" + b"[]," * 800_000 + b"0]", "more than 1500000 values"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_said(tmp_path: Path, name: str) -> None:
    content, said = BAD[name]
    (tmp_path / "f.json").write_bytes(content)
    with pytest.raises(NotJson, match=said):
        read_json(tmp_path / "f.json")


def test_python_writes_infinity_and_a_record_may_have_it() -> None:
    assert parsed("[Infinity]", finite=False) == [float("inf")]


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f.json")
    with pytest.raises(OSError, match="not a regular file"):
        read_json(tmp_path / "f.json")


def test_a_whole_character_in_two_halves() -> None:
    assert parsed('"\\ud83d\\ude00"') == "\N{GRINNING FACE}"
