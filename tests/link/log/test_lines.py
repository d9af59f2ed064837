"""Protects the noise around link errors: colours, time stamps, encodings, parallel writers."""

from __future__ import annotations

import pytest

from harness.link.log.lines import decode
from harness.link.log.parse import parse
from tests.link.log.reading import only


@pytest.mark.parametrize(
    "prefix",
    [
        "2024-08-01T10:11:12.1234567Z ",
        "#12 34.56 ",
        "    | ",
        "| ",
        "[build] ",
        "\x1b[31m",
        "10:11:12 ",
    ],
)
def test_what_wrappers_put_in_front_is_taken_away(prefix: str) -> None:
    text = "main.o: in function `main':\r\nmain.c:3: undefined reference to `f'\r\n"
    failure = only("".join(prefix + line + "\n" for line in text.splitlines()))
    assert failure.places[0].object == "main.o"
    assert failure.places[0].source == "main.c"


def test_logs_of_windows_and_damaged_logs_are_read() -> None:
    line = "m.c:3: undefined reference to `f'"
    assert only(decode(line.encode("utf-16"))).symbol == "f"
    assert only(decode(line.encode() + b"\n\xff\xfe\x80")).symbol == "f"


def test_two_messages_on_one_line_are_two() -> None:
    text = (
        "ld: a.o: in function `f':\na.c:3: undefined reference to `foo'"
        "ld: b.o: in function `g':\nb.c:4: undefined reference to `bar'\n"
    )
    found = {f.symbol: f.places[0].function for f in parse(text).failures}
    assert found == {"foo": "f", "bar": "g"}
