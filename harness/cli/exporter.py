"""``--exporter``: who exports, of every verb that exports and takes a checkout."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from harness.export.exporter import ExporterSource

_Verb = TypeVar("_Verb", bound=Callable[..., Any])


def exporter_option(function: _Verb) -> _Verb:
    """The function gets ``exporter``, an ExporterChoice. Stands above ``firmware_options``, whose
    ``--executorch`` it looks at."""

    @click.option(
        "--exporter",
        type=click.Choice([source.value for source in ExporterSource]),
        help="Who exports: the installed wheel (default), or the Python of the checkout that "
        "--executorch names.",
    )
    @functools.wraps(function)
    def wrapped(*args: Any, exporter: str | None, executorch: Path | None, **kwargs: Any) -> Any:
        from harness.export.checkout.choice import choose_exporter

        choice = choose_exporter(exporter, executorch)
        return function(*args, exporter=choice, executorch=executorch, **kwargs)

    return wrapped  # type: ignore[return-value]
