"""Which exporter a user asked for, decided in one place for every verb."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.export.exporter import ExporterSource
from harness.firmware.source import NoCheckout, named_root

if TYPE_CHECKING:  # pytest asks for the choice in every session
    from harness.export.checkout.exporter import CheckoutExporter


@dataclass(frozen=True)
class ExporterChoice:
    """``root``: the checkout's folder; None for the installed wheel."""

    root: Path | None = None

    def find(self) -> CheckoutExporter | None:
        """None for the wheel. Raises what ``find_exporter`` does."""
        if self.root is None:
            return None
        from harness.export.checkout.exporter import find_exporter

        return find_exporter(self.root)


WHEEL = ExporterChoice()


def choose_exporter(
    word: str | None,
    executorch: Path | None,
    *,
    environ: Mapping[str, str] = os.environ,
    directory: Path | None = None,
) -> ExporterChoice:
    """What ``--exporter`` asks for; the checkout is named as for the firmware.

    Raises NoCheckout, and UsageError for a ``pyproject.toml`` that is malformed.
    """
    if word in (None, ExporterSource.WHEEL):
        return WHEEL
    root = named_root(executorch, environ=environ, directory=directory)
    if root is None:
        raise NoCheckout("--exporter checkout")
    return ExporterChoice(root)
