"""What the shell completes in place of TARGET and MODEL; click does the rest."""

from __future__ import annotations

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem

from harness.config.loading import target_files
from harness.config.models import catalogue
from harness.core.errors import HarnessError


def complete_target(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    try:
        return _items(target_files(), incomplete)
    except HarnessError:  # the verb itself reports it
        return []


def complete_model(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return _items(catalogue(), incomplete)


def _items(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """The names that begin so; without any, the shell completes a file's path."""
    matches = [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return matches or [CompletionItem(incomplete, type="file")]
