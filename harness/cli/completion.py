"""``hil completion``: what a shell needs to complete our words; click makes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from harness.cli.verb import echo, verb
from harness.errors import HarnessError
from harness.errors.verdict import ExitCode

_WHERE = {
    "bash": "~/.bashrc",
    "zsh": "~/.zshrc",
    "fish": "~/.config/fish/completions/hil.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(_WHERE)))
@verb
def completion(shell: str, as_json: bool) -> tuple[dict[str, Any], ExitCode]:
    """Print what makes SHELL complete verbs, options, targets and models.

    \b
    Examples:
      echo 'eval "$(hil completion bash)"' >> ~/.bashrc
      echo 'eval "$(hil completion zsh)"' >> ~/.zshrc
      hil completion fish > ~/.config/fish/completions/hil.fish
    """
    from harness.cli.main import main

    made = get_completion_class(shell)
    assert made is not None
    script = made(main, {}, "hil", "_HIL_COMPLETE").source()
    if not as_json:
        echo(script)
    return {"shell": shell, "script": script, "file": _WHERE[shell]}, ExitCode.PASSED


def complete_target(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    from harness.target.loading import target_files

    try:
        return _named(target_files(), incomplete)
    except HarnessError:  # the verb itself will say what is wrong
        return []


def complete_model(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    from harness.case.models import catalogue

    return _named(catalogue(), incomplete)


def _named(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """Names, or files where none begins so: a path is as good."""
    found = [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="file")]
