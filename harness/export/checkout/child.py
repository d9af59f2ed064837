"""The Python that a checkout exports in: the harness's, with the checkout's ``executorch``.

Started by ``remote`` alone. It fills the same cache of programs, under the same locks; torch is
imported once, whatever the number of models.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from functools import partial
from pathlib import Path
from typing import IO

from harness.errors import HarnessError, InfraError
from harness.export.batch import ExportEvent, Origin, export
from harness.export.checkout.environment import PACKAGE
from harness.export.checkout.exporter import confirm
from harness.export.checkout.wire import Order, error_fields, line, read_order
from harness.system.paths import import_root


class NotTheCheckout(InfraError):
    """``found``: where the package came from instead."""

    def __init__(self, expected: Path, found: list[str]) -> None:
        self.found = tuple(found)
        super().__init__(
            f"Python took the package {PACKAGE} from {', '.join(found) or 'nowhere'} and not from "
            f"the checkout's environment {expected}",
            hint="something puts it in front: a sitecustomize.py, or a .pth file of an editable "
            "install; take it out, or export with --exporter wheel",
            path=expected,
        )


class ImportFailed(InfraError):
    """``cause``: the exception's name, ``detail`` what it says, ``place``: the innermost file and
    line. ``missing``: what of ExecuTorch the harness itself wanted and did not find, else "".
    Whoever started the child knows the versions."""

    def __init__(self, error: BaseException) -> None:
        self.cause = type(error).__name__
        self.detail = str(error)
        frames = traceback.extract_tb(error.__traceback__)
        self.place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        ours = bool(frames) and Path(frames[-1].filename).is_relative_to(import_root() / "harness")
        named = error.name or "" if isinstance(error, ImportError) else ""
        self.missing = named if ours and named.split(".")[0] == PACKAGE else ""
        if isinstance(error, SyntaxError) and error.filename:
            self.place = f"{error.filename}:{error.lineno}"
        super().__init__(f"{self.cause}: {self.detail} ({self.place})")


def main() -> None:
    order = read_order(sys.stdin.read())
    os.set_inheritable(order.channel, False)
    with os.fdopen(order.channel, "w", encoding="utf-8", buffering=1) as channel:
        try:
            _import_exporter(Path(order.environment))
        except HarnessError as error:
            channel.write(line({"broken": error_fields(error)}))
            return
        _export(order, channel)


def _import_exporter(environment: Path) -> None:
    """Raises NotTheCheckout, ImportFailed."""
    expected = environment / PACKAGE
    found = list(importlib.import_module(PACKAGE).__path__)
    if [Path(place) for place in found] != [expected]:
        raise NotTheCheckout(expected, found)
    try:
        importlib.import_module("harness.export.worker")
    except (Exception, SystemExit) as error:  # the checkout's code: any exception is possible
        traceback.print_exc()
        raise ImportFailed(error) from error


def _export(order: Order, channel: IO[str]) -> None:
    def tell(event: ExportEvent) -> None:
        error = None if event.error is None else error_fields(event.error)
        index = order.requests.index(event.request)
        place = None if event.program is None else str(event.program.directory)
        notes = event.notes if event.program is None else event.program.notes
        channel.write(
            line({"event": event.kind, "index": index, "seconds": event.seconds, "error": error,
                  "place": place, "notes": notes})
        )  # fmt: skip

    check = partial(confirm, Path(order.root), order.sources)
    export(order.requests, tell, Origin(order.versions, check))
