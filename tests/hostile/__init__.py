"""Every reader on what nobody writes: a value that can be used, or an error of the harness.

Hypothesis makes the bytes. The examples are the same in every run (derandomised, no database), and
their number bounds the time; ``HIL_HOSTILE_EXAMPLES`` multiplies it for a search by hand.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from harness.core.errors import HarnessError

_MORE = int(os.environ.get("HIL_HOSTILE_EXAMPLES", "1"))
_Place = tuple[Any, ...]


def bounded(examples: int) -> settings:
    return settings(
        max_examples=examples * _MORE,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


_WORDS = [
    "[",
    "{",
    "]",
    "}",
    ": ",
    "- ",
    "? ",
    ",",
    "\n",
    "\t",
    "\r",
    "&a ",
    "*a",
    "!!x ",
    "!<>",
    "%YAML 3.0\n",
    "---\n",
    "...\n",
    "|\n",
    ">\n",
    "#",
    "'",
    '"',
    "\\",
    "~",
    "null",
    "true",
    ".inf",
    ".nan",
    "NaN",
    "Infinity",
    "1e999",
    "-1",
    "0",
    "0x",
    "9" * 40,
    "1_0",
    "<<: ",
    "{}",
    "[]",
    "\x00",
    "\x1b[2J",
    "\ufeff",
    "\u2028",
    "\ud7ff",
]
_PIECES = st.one_of(
    st.sampled_from([word.encode() for word in _WORDS]),
    st.sampled_from([b"\xff", b"\xc3", b"\xed\xa0\x80", b"[" * 3000, b"a:\n " * 40]),
    st.binary(max_size=12),
)


@st.composite
def edited(draw: st.DrawFn, whole: bytes) -> bytes:
    """A few cuts, insertions and repetitions."""
    content = whole
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content)))
        end = min(len(content), at + draw(st.sampled_from([0, 0, 1, 2, 5, 40, 1 << 20])))
        again = content[at:end] if draw(st.booleans()) else b""
        content = content[:at] + draw(_PIECES) + again * draw(st.integers(0, 2)) + content[end:]
    return content


# st.text() by itself first finds out what UTF-8 can encode, which takes a second
_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
_plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    _text,
    st.sampled_from(["PASS", "INFRA", "exited", "x" * 300, -1, 1 << 70, 1e308, "\x1b[31m"]),
)
values = st.recursive(
    _plain,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_text, inner, max_size=3)),
    max_leaves=6,
)


@st.composite
def altered(draw: st.DrawFn, document: Any) -> Any:
    """JSON with some values replaced, dropped or of other types."""
    made = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(list(_places(made))) if made else st.just(("x",)))
        holder = made
        for step in way:
            holder = holder[step]
        if draw(st.integers(0, 3)):
            holder[last] = draw(values)
        else:
            del holder[last]
        if not made:
            return made
    return made


def _places(document: Any, at: _Place = ()) -> Iterator[_Place]:
    inside: Any = ()
    if isinstance(document, dict):
        inside = document.items()
    elif isinstance(document, list):
        inside = enumerate(document)
    for key, value in inside:
        yield (*at, key)
        yield from _places(value, (*at, key))


def refused(read: Callable[..., object], *arguments: object) -> HarnessError | None:
    """The error of the harness that the reader ends with; any other exception is the test's end."""
    try:
        read(*arguments)
    except HarnessError as error:
        return error
    return None


def as_json(document: Any) -> bytes:
    return json.dumps(document).encode()
