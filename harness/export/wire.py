"""Answers of the export process, each one line of JSON.

A model's file runs in that process and may be hostile. (Requests are pickled: the process trusts
the harness.) An answer is ``{"stage": name}``, ``{"value": …}`` or ``{"error": …}``. The process
whose forks export (``process.py``) answers ``{"value": null}`` or an error first, then ``{"status":
number}`` for each fork."""

from __future__ import annotations

import importlib
import json
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from typing import Any

from harness.core.errors import HarnessError, InfraError

_MOST_BYTES = 16 << 20  # of one answer; anything large goes through files
_CHILD_ONLY = "harness.export.child"


class Stopped(Exception):
    """The process ended without an answer, or has to be ended.

    ``returned``: the code as Popen has it, negative for a signal; None: the harness ended the
    process."""

    def __init__(self, why: str, returned: int | None = None) -> None:
        self.why, self.returned = why, returned


class BadMessage(Stopped):
    """The bytes are not an answer."""

    def __init__(self) -> None:
        super().__init__("wrote something that is no answer, and was ended")


def answer(message: dict[str, Any]) -> bytes:
    return json.dumps(message, default=_plain).encode() + b"\n"


def _plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) else str(value)  # type: ignore[arg-type]


class Answers:
    """Reads answers from a socket. ``ended``: there are no more."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.ended = False
        self._buffer = b""

    def available(self) -> list[dict[str, Any]]:
        """Those that are complete now. Raises BadMessage."""
        answers: list[dict[str, Any]] = []
        for _ in range(64):  # a flood is read in portions, so that time limits still hold
            try:
                data = self.connection.recv(1 << 16, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            except ConnectionResetError:
                data = b""
            if not data:
                self.ended = True
                break
            *lines, self._buffer = (self._buffer + data).split(b"\n")
            answers += map(_parsed, lines)
            if len(self._buffer) > _MOST_BYTES:
                raise BadMessage
        return answers


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadMessage from error
    if not isinstance(message, dict) or len(message) != 1:
        raise BadMessage
    return message


def value_of(message: dict[str, Any]) -> Any:
    """Return the result that an answer has, or raise the HarnessError that it has instead.

    Raises BadMessage for anything that is not an answer."""
    if "value" in message:
        return message["value"]
    raise restored(message.get("error"))


def error_fields(error: HarnessError) -> dict[str, Any]:
    return {
        "module": type(error).__module__,
        "name": type(error).__qualname__,
        "attributes": vars(error),
    }


def restored(fields: Any) -> HarnessError:
    """Return the error that the process raised, with its type and its attributes.

    Raises BadMessage."""
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
        with suppress(ImportError):
            kind = getattr(importlib.import_module(module), name, None)
    if isinstance(kind, type) and issubclass(kind, HarnessError):
        return kind
    return InfraError


def _frozen(value: Any) -> Any:
    """Turn lists into tuples: JSON has none, and the facts of an error are tuples."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(_frozen(item) for item in value)
    return value
