"""What an export's parent and child tell each other, one JSON object to a line.

The child gets an Order. It answers with events, ``{"event": kind, "index": of the request,
"seconds": ..., "error": ... or null, "place": the program's directory or null, "notes": [...]}``,
or with one ``{"broken": error}`` before it began.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.case.models import ModelSource
from harness.errors import HarnessError, InfraError
from harness.export.request import ExportRequest


@dataclass(frozen=True)
class Order:
    """``environment``, ``root``, ``sources`` and ``versions``: as in CheckoutExporter;
    ``channel``: the number of the descriptor for the answers."""

    environment: str
    root: str
    sources: str
    versions: dict[str, str]
    requests: tuple[ExportRequest, ...]
    channel: int

    def text(self) -> str:
        return json.dumps(asdict(self), default=str)


def read_order(text: str) -> Order:
    fields = json.loads(text)
    requests = tuple(_request(r) for r in fields.pop("requests"))
    return Order(**fields, requests=requests)


def _request(fields: dict[str, Any]) -> ExportRequest:
    model = dict(fields.pop("model"))
    file = model.pop("file")
    return ExportRequest(ModelSource(**model, file=Path(file) if file else None), **fields)


def error_fields(error: HarnessError) -> dict[str, Any]:
    return {
        "module": type(error).__module__,
        "name": type(error).__qualname__,
        "attributes": vars(error),
    }


def line(message: dict[str, Any]) -> str:
    return json.dumps(message, default=str) + "\n"


def restored(fields: dict[str, Any]) -> HarnessError:
    """The error that the other process raised, as the type that it was, with its attributes."""
    attributes = {name: _frozen(value) for name, value in fields["attributes"].items()}
    kind = _error_type(fields["module"], fields["name"])
    error = kind.__new__(kind, attributes["message"])
    vars(error).update(attributes)
    return error


def _error_type(module: str, name: str) -> type[HarnessError]:
    """A child says only what this harness can raise; anything else is its own failure."""
    found = None
    if module.startswith("harness."):
        found = getattr(importlib.import_module(module), name, None)
    if isinstance(found, type) and issubclass(found, HarnessError):
        return found
    return InfraError


def _frozen(value: Any) -> Any:
    """JSON has no tuples, and facts are made of them."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(_frozen(item) for item in value)
    return value
