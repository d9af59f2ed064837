"""JSON that others may have edited: a value, or one error that says what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.system.files import read_regular

# What turning foreign JSON into our types raises, whatever is in it. A reader catches these around
# the whole of it and says which file it was.
MALFORMED = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
_MOST_BYTES = 256 << 20


class NotJson(ValueError):
    """Its text says why; whoever reads the file knows which error of the harness that is."""


def read_json(path: Path, *, finite: bool = True) -> Any:
    """The value in a file. ``finite`` refuses ``Infinity`` and ``NaN``, which JSON does not have
    and Python writes.

    Raises NotJson, and OSError for what is no regular file that can be read.
    """
    raw = read_regular(path, _MOST_BYTES)
    try:
        return parsed(raw.decode("utf-8"), finite=finite)
    except UnicodeDecodeError as error:
        raise NotJson(f"byte {error.start} is not UTF-8") from error


def parsed(text: str, *, finite: bool = True) -> Any:
    """Raises NotJson."""
    try:
        value = json.loads(text, parse_constant=_refused if finite else None)
        if "\\ud" in text or "\\uD" in text:  # half a character cannot be written anywhere
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except RecursionError as error:
        raise NotJson("it is nested too deeply") from error
    except UnicodeEncodeError as error:
        raise NotJson("a text in it is not Unicode") from error
    except NotJson:
        raise
    except ValueError as error:
        raise NotJson(str(error)) from error
    return value


def _refused(constant: str) -> Any:
    raise NotJson(f"{constant} is not a number")
