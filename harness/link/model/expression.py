"""Assignments of the command line (--defsym) and of linker scripts, as far as the model knows them.

Source: "Expressions in Linker Scripts" in the manual of GNU ld.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.link.model.resolution import ADDRESSES, SIZES, Assign

_NAME = r"[A-Za-z_.$][\w.$]*"
# Of the section in parentheses.
_LAYOUT = {"SIZEOF": SIZES, "ALIGNOF": SIZES, "ADDR": ADDRESSES, "LOADADDR": ADDRESSES}
_CONSTANT = {"ORIGIN", "LENGTH", "CONSTANT"}  # of a name that is no symbol
_PLAIN = {"ALIGN", "MAX", "MIN", "ABSOLUTE", "NEXT", "LOG2CEIL"}  # of an expression
_TOKEN = re.compile(rf"(?P<word>{_NAME})\s*(?P<call>\()?|(?P<number>\d\w*)|(?P<choice>\?)|\S")
_ASSIGNMENT = re.compile(
    rf"\b(?P<how>PROVIDE|PROVIDE_HIDDEN|HIDDEN)\s*\(\s*(?P<name>{_NAME})\s*=(?P<value>[^;{{}}]*)\)"
    rf"|(?:^|[;{{}}])\s*(?P<plain>{_NAME})\s*(?P<operator>[-+*/&|]|<<|>>)?=(?!=)(?P<is>[^;{{}}]*);",
    re.MULTILINE,
)


def assignment(name: str, value: str, *, provide: bool = False) -> Assign | None:
    """None for what the model does not know: conditions, and symbols that depend on themselves."""
    symbols: list[str] = []
    layout, at = 0, 0
    while match := _TOKEN.search(value, at):
        at = match.end()
        word = match["word"]
        if match["choice"] or (word and match["call"] and not _is_known(word)):
            return None
        if word and match["call"] and word not in _PLAIN:
            layout = max(layout, _LAYOUT.get(word, 0))
            at = value.find(")", at) + 1 or len(value)
        elif word == "SIZEOF_HEADERS":
            layout = max(layout, SIZES)
        elif word and not match["call"] and word != ".":
            symbols.append(word)
    if name in symbols:
        return None
    return Assign(name, tuple(dict.fromkeys(symbols)), provide, layout)


def _is_known(function: str) -> bool:
    return function in _LAYOUT or function in _CONSTANT or function in _PLAIN


def in_script(text: str) -> Iterator[tuple[str, Assign | None]]:
    """The symbols that a linker script assigns, in order, each with its assignment if the model
    knows it. Included scripts are not looked into."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    position = 0
    while match := _ASSIGNMENT.search(text, position):
        position = match.end() - (match["plain"] is not None)  # its ";" may precede the next one
        name = match["name"] or match["plain"]
        if name == ".":
            continue
        if match["operator"]:
            yield name, None
        else:
            provide = (match["how"] or "").startswith("PROVIDE")
            yield name, assignment(name, match["value"] or match["is"], provide=provide)
