"""Makes text from outside harmless wherever it is shown.

A guest, a log, a file's name and a record can hold anything. Console text passes through here when
it is decoded and again when it is shown, so that no front end needs a rule of its own: a terminal
gets no control sequence, XML no forbidden character, and a CI system's log no line that it takes
for a command.

Control sequences: ECMA-48, sections 5.3 to 5.6 and 8.3; XML 1.0, section 2.2 (``Char``).
Workflow commands: https://docs.github.com/actions/reference/workflow-commands-for-github-actions;
the runner takes a line for one that begins with ``::``, blanks in front or not, or that has
``##[`` anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

# CSI; OSC, DCS, SOS, PM and APC with their string, which ends in BEL or ST; two letters or three.
# In eight bits each has a letter of its own.
_SEQUENCE: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[P\]X^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-OQ-WYZ\\`-~]"
)
# Control characters except tab and newline; those that turn the direction of text around;
# separators that end a line for some; halves of a pair; those that XML forbids.
_CONTROL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    "\ud800-\udfff\ufeff\ufffe\uffff]"
)
_COMMAND: Final = re.compile(r"^(\s*):(?=:)|##(?=\w*\[)", re.MULTILINE)
_PLAIN: Final = re.compile(r"[ -~\t\n]*")  # all that most texts have
_MARKDOWN: Final = {
    "<": "&lt;",
    ">": "&gt;",
    "&": "&amp;",
    **{letter: f"\\{letter}" for letter in "\\`*_[]|#~@!"},
}


def plain(text: str) -> str:
    """``text`` without control sequences; other control characters become ``\\x08``.

    Newlines and tabs stay. Plain text is returned unchanged, so calling it twice does no harm.
    """
    text = without_controls(text)
    return _COMMAND.sub(_broken, text) if "::" in text or "##" in text else text


def without_controls(text: str) -> str:
    """Plain for a terminal; for parts of lines, of which none need be a line's beginning."""
    if _PLAIN.fullmatch(text):
        return text
    return _CONTROL.sub(_escaped, _SEQUENCE.sub("", text.replace("\r\n", "\n")))


def counted(number: int, thing: str) -> str:
    """ "1 model", "2 models"; for words whose plural has an s."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def grouped(value: float | None, absent: str = "") -> str:
    """ "1,234"; ``absent`` where nothing is known."""
    if value is None:
        return absent
    return f"{value:,g}" if isinstance(value, float) else f"{value:,}"


def listed(names: Sequence[str], most: int) -> str:
    """List some of the words: "a, b and 3 more"."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def as_markdown(text: str) -> str:
    """One line of plain text in which nothing starts Markdown, HTML or a table's next cell."""
    escaped = "".join(_MARKDOWN.get(letter, letter) for letter in plain(text))
    return " ".join(escaped.split())


def workflow_command(name: str, message: str, **properties: object) -> str:
    """Return a command to GitHub's runner, whose texts cannot end it or begin another one."""
    pairs = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{name} {pairs}::{_data(message)}" if pairs else f"::{name}::{_data(message)}"


def _data(text: str) -> str:
    return plain(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _broken(match: re.Match[str]) -> str:
    """``::error`` as ``: :error`` and ``##[group]`` as ``## [group]``."""
    return "## " if match[0] == "##" else f"{match[1]}: "
