"""Protects the noise around link errors: colours, time stamps, encodings, parallel writers."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.link.log.lines import read_lines
from harness.link.log.parse import parse, parse_lines
from tests.link.log.reading import only


@pytest.mark.parametrize(
    "prefix",
    [
        "2024-08-01T10:11:12.1234567Z ",
        "#12 34.56 ",
        "    | ",
        "| ",
        "[build] ",
        "[board A/gcc 12] ",
        "INFO  - ",
        "> ",
        "\x1b[31m",
        "10:11:12 ",
    ],
)
def test_what_wrappers_put_in_front_is_taken_away(prefix: str) -> None:
    text = "main.o: in function `main':\r\nmain.c:3: undefined reference to `f'\r\n"
    failure = only("".join(prefix + line + "\n" for line in text.splitlines()))
    assert failure.places[0].object == "main.o"
    assert failure.places[0].source == "main.c"


@pytest.mark.parametrize(
    ("tail", "encoding"), [("", "utf-8"), ("\n\xff\xfe\x80", "latin-1"), ("", "utf-16")]
)
@pytest.mark.parametrize("end", ["\n", ""])
def test_logs_of_windows_and_damaged_logs_are_read(
    tail: str, encoding: str, end: str, tmp_path: Path
) -> None:
    file = tmp_path / "build.log"
    file.write_bytes(f"m.c:3: undefined reference to `f'{tail}{end}".encode(encoding))
    lines, cut = read_lines(file)
    (failure,) = parse_lines(lines).failures
    assert (failure.symbol, cut) == ("f", not end)


def test_two_messages_on_one_line_are_two() -> None:
    text = (
        "ld: a.o: in function `f':\na.c:3: undefined reference to `foo'"
        "ld: b.o: in function `g':\nb.c:4: undefined reference to `bar'\n"
    )
    found = {f.symbol: f.places[0].function for f in parse(text).failures}
    assert found == {"foo": "f", "bar": "g"}
