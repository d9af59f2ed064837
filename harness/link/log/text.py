"""A build log as plain lines: without colours, carriage returns and what wrappers put in front."""

from __future__ import annotations

import re
from dataclasses import dataclass

# CSI sequences (ECMA-48) and the hyperlink form OSC 8
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][AB0]")
_PREFIXES = re.compile(
    r"""^(?:
      \s*\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\s   # CI time stamps
    | \s*\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?\s                                  # 12:34:56
    | \#\d+\s+\d+\.\d+\s                                                     # docker buildkit
    | \s*\|\s                                                                # bitbake, kas
    | \[build\]\s                                                            # VS Code
    | (?:INFO|DEBUG|ERROR|WARNING)\s+-\s                                     # twister
    | >\s(?=\S)                                                              # quoted in an issue
    )+""",
    re.VERBOSE,
)


# Parallel jobs that write without an end of line: behind the message, another one begins.
_GLUED = re.compile(
    r"(?P<message>undefined reference to [`'][^`]+?')"
    r"(?P<next>(?:make(?:\[\d+\])?|ninja|\S*?\bld(?:\.\w+)?): |\[\d+/\d+\]|collect2: )"
)


@dataclass(frozen=True)
class Line:
    number: int  # in the log, from 1
    text: str


def lines_of(text: str) -> list[Line]:
    """Every line that has text, in order, cleaned.

    A carriage return inside a line starts it again, as on a terminal: what stood before it is
    kept as a line of its own, since progress bars and compilers share the terminal.
    """
    found = []
    for number, raw in enumerate(text.split("\n"), 1):
        plain = _GLUED.sub(r"\g<message>\r\g<next>", _ANSI.sub("", raw))
        for part in plain.split("\r"):
            clean = _PREFIXES.sub("", part).rstrip()
            if clean:
                found.append(Line(number, clean))
    return found


def decode(raw: bytes) -> str:
    """Text of a log of unknown origin: UTF-16 from PowerShell, else UTF-8 with damage kept."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return raw.decode("utf-16", "replace")
    return raw.decode("utf-8-sig", "replace")
