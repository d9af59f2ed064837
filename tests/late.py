"""Modules that take seconds to import, for files that every run of pytest collects.

``torch = Late("torch")`` imports nothing until something of it is used: when a test runs. Names of
it are then written in full: ``from torch import nn`` would import it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Late:
    """A module, as ``import name`` gives it, from its first use on."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__") or attribute == "_mock_name":  # pytest looks what it is
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)
