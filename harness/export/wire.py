"""Messages between the harness and its export process: four bytes of length, then the content.

Requests are pickled: the process trusts the harness. Answers are JSON, because a model's file runs
in that process and may be hostile: ``{"stage": name}``, ``{"forked": true}``, ``{"value": …}``,
``{"error": …}`` or ``{"os_error": [errno, text, file]}``. The first one of a process that can
export is ``{"value": null}``.
"""

from __future__ import annotations

import importlib
import json
import struct
from collections.abc import Sequence
from typing import Any

from harness.core.errors import HarnessError, InfraError

_LENGTH = struct.Struct(">I")
_MOST_BYTES = 16 << 20  # of one answer; anything large goes through files
_CHILD_ONLY = "harness.export.child"


class BadMessage(Exception):
    """The bytes are no answer."""


def frame(content: bytes) -> bytes:
    return _LENGTH.pack(len(content)) + content


def answer(message: dict[str, Any]) -> bytes:
    return frame(json.dumps(message, default=str).encode())


class AnswerReader:
    """Cuts a stream of bytes into answers."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """The answers that are complete now. Raises BadMessage."""
        self._buffer += data
        answers = []
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > _MOST_BYTES:
                raise BadMessage
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                break
            answers.append(_parsed(bytes(self._buffer[_LENGTH.size : end])))
            del self._buffer[:end]
        return answers


def _parsed(content: bytes) -> dict[str, Any]:
    try:
        message = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadMessage from error
    if not isinstance(message, dict) or len(message) != 1:
        raise BadMessage
    return message


def error_fields(error: HarnessError) -> dict[str, Any]:
    return {
        "module": type(error).__module__,
        "name": type(error).__qualname__,
        "attributes": vars(error),
    }


def restored(fields: dict[str, Any]) -> HarnessError:
    """The error that the process raised, with its type and its attributes. Raises BadMessage."""
    try:
        attributes = {str(name): _frozen(value) for name, value in fields["attributes"].items()}
        kind = _error_type(str(fields["module"]), str(fields["name"]))
        error = kind.__new__(kind, str(attributes["message"]))
        attributes.setdefault("hint", None)
        attributes.setdefault("path", None)
    except (KeyError, TypeError, AttributeError) as wrong:
        raise BadMessage from wrong
    vars(error).update(attributes)
    return error


def _error_type(module: str, name: str) -> type[HarnessError]:
    """Only errors of the harness can be restored; anything else is an InfraError."""
    kind = None
    if module.startswith("harness.") and not module.startswith(_CHILD_ONLY):
        try:
            kind = getattr(importlib.import_module(module), name, None)
        except ImportError:
            kind = None
    if isinstance(kind, type) and issubclass(kind, HarnessError):
        return kind
    return InfraError


def _frozen(value: Any) -> Any:
    """Lists become tuples: JSON has none, and the facts of an error are tuples."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(_frozen(item) for item in value)
    return value
