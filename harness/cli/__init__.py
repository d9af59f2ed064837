"""The ``hil`` command: ``main`` is what the installed script and ``python -m harness`` call."""

from harness.cli.group import main

__all__ = ["main"]
