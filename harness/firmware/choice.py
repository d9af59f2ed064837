"""Which firmware a user asked for, decided in one place for every verb.

A checkout is named by ``--executorch DIR``, by ``$EXECUTORCH_ROOT``, or by ``executorch`` of the
user's settings (``harness.system.settings``). Only the option also asks for the checkout's
firmware; with the others ``--firmware`` has to.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from harness.core.errors import UsageError
from harness.firmware import names
from harness.firmware.source import FirmwareSource, source_named
from harness.system.settings import Settings, settings

if TYPE_CHECKING:
    from harness.firmware.executorch.checkout import Checkout

ROOT_VARIABLE = "EXECUTORCH_ROOT"


@dataclass(frozen=True)
class FirmwareChoice:
    """``sources``: whose firmware, in order. ``root``: the folder of the checkout, when a source
    needs one; ``parts``: local folders for what its build would download."""

    sources: tuple[FirmwareSource, ...] = field(
        default_factory=lambda: (source_named(names.BUNDLED),)
    )
    root: Path | None = None
    parts: Mapping[str, Path] = field(default_factory=dict)

    def checkout(self) -> Checkout | None:
        """None when no source needs one. Raises what ``find_checkout`` does."""
        if self.root is None:
            return None
        from harness.firmware.executorch.checkout import find_checkout

        return find_checkout(self.root, self.parts)


BUNDLED = FirmwareChoice()


class NoCheckout(UsageError):
    """``option`` needs a checkout of ExecuTorch, and nothing names one."""

    def __init__(self, option: str) -> None:
        self.option = option
        super().__init__(
            f"{option} needs a checkout of ExecuTorch, and none was named",
            hint="name it with --executorch DIR (for pytest: --hil-executorch DIR), with "
            f'${ROOT_VARIABLE}, or with executorch = "DIR" under [tool.hil] in pyproject.toml',
        )


def sources_of(word: str) -> tuple[FirmwareSource, ...]:
    """The sources of a value of ``--firmware``, in order. Raises ValueError for another word."""
    return tuple(map(source_named, names.names_of(word)))


def choose(
    word: str | None,
    executorch: Path | None,
    parts: Sequence[str],
    *,
    environ: Mapping[str, str] = os.environ,
    directory: Path | None = None,
) -> FirmwareChoice:
    """The firmware that ``--firmware``, ``--executorch`` and ``--part`` ask for together.

    Raises NoCheckout, and UsageError for a part or settings that are malformed.
    """
    wanted = word or (names.BUNDLED if executorch is None else names.CHECKOUT)
    sources = sources_of(wanted)
    if not any(source.needs_checkout for source in sources):
        return FirmwareChoice(sources)
    root = named_root(executorch, environ=environ, directory=directory)
    if root is None:
        raise NoCheckout(f"--firmware {wanted}")
    return FirmwareChoice(sources, root, _parts(parts, settings(directory, environ)))


def named_root(
    executorch: Path | None,
    *,
    environ: Mapping[str, str] = os.environ,
    directory: Path | None = None,
) -> Path | None:
    """The checkout's folder, from ``--executorch``, the environment or the project's settings; None
    when none of them names it. Raises UsageError for settings that are malformed."""
    root = executorch or _named_elsewhere(environ, directory)
    return None if root is None else root.absolute()


def _named_elsewhere(environ: Mapping[str, str], directory: Path | None) -> Path | None:
    if environ.get(ROOT_VARIABLE):
        return Path(environ[ROOT_VARIABLE])
    return settings(directory, environ).executorch


def _parts(words: Sequence[str], project: Settings) -> dict[str, Path]:
    """Parts of the command line replace those of the settings."""
    if not (project.parts or words):
        return {}
    from harness.firmware.executorch.parts import read_given

    inherited = read_given(project.parts, project.folder) if project.parts else {}
    return {**inherited, **read_given(words)}
