"""``--firmware``, ``--executorch`` and ``--part``: whose firmware, of every verb that runs one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from harness.firmware.choice import choose
from harness.firmware.names import firmware_words

_Verb = TypeVar("_Verb", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--executorch",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="A checkout of ExecuTorch whose own runner, kernels and drivers are built and put "
        "under test. $EXECUTORCH_ROOT and `executorch` of [tool.hil] in pyproject.toml also "
        "name one, for --firmware.",
    ),
    click.option(
        "--firmware",
        "word",
        type=click.Choice(firmware_words()),
        help="Whose firmware (default: bundled; executorch with --executorch). wheel: the runtime "
        "and kernels of ExecuTorch's AArch64 wheel, for targets with Linux; both: bundled and "
        "executorch.",
    ),
    click.option(
        "--part",
        "parts",
        multiple=True,
        metavar="NAME=DIR",
        help="A local folder for what the checkout's build would download; may be repeated, "
        "also in $HIL_EXECUTORCH_PARTS as NAME=DIR:NAME=DIR.",
    ),
)


def firmware_options(function: _Verb) -> _Verb:
    """The function gets ``firmware``, a FirmwareChoice."""

    @functools.wraps(function)
    def wrapped(
        *args: Any, executorch: Path | None, word: str | None, parts: tuple[str, ...], **kwargs: Any
    ) -> Any:
        return function(*args, firmware=choose(word, executorch, parts), **kwargs)

    for option in reversed(_OPTIONS):
        option(wrapped)
    return wrapped  # type: ignore[return-value]
