"""What the user selects: the sources of the firmware, and the checkout of ExecuTorch.

A checkout is named by ``--executorch DIR``, by ``$EXECUTORCH_ROOT``, or by ``executorch`` of the
user's settings (``harness.system.settings``). Only the option also selects the checkout's
firmware; with the others ``--firmware`` must.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from harness.core.errors import UsageError
from harness.firmware.names import BUNDLED, CHECKOUT, names_of
from harness.system.settings import ROOT_VARIABLE, settings

if TYPE_CHECKING:  # Firmware is described by pydantic, 150 ms; pytest asks for the choice at once
    from harness.firmware.checkout import Checkout
    from harness.firmware.source import FirmwareSource


@dataclass(frozen=True)
class FirmwareChoice:
    """``sources``: those of the firmware, in order. ``root``: the checkout's folder, if a source
    needs one. ``parts``: local folders instead of the downloads of its build."""

    sources: tuple[FirmwareSource, ...] = field(default_factory=lambda: sources_of(BUNDLED))
    root: Path | None = None
    parts: Mapping[str, Path] = field(default_factory=dict)

    def checkout(self) -> Checkout | None:
        """None when no source needs one. Raises what ``find_checkout`` does."""
        if self.root is None:
            return None
        from harness.firmware.checkout import find_checkout

        return find_checkout(self.root, self.parts)


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
    from harness.firmware.source import source_named

    return tuple(map(source_named, names_of(word)))


def choose(word: str | None, executorch: Path | None, parts: Sequence[str]) -> FirmwareChoice:
    """The firmware that ``--firmware``, ``--executorch`` and ``--part`` select together.

    Raises NoCheckout, and UsageError for a part or settings that are malformed.
    """
    wanted = word or (BUNDLED if executorch is None else CHECKOUT)
    sources = sources_of(wanted)
    if not any(source.needs_checkout for source in sources):
        return FirmwareChoice(sources)
    root = named_root(executorch)
    if root is None:
        raise NoCheckout(f"--firmware {wanted}")
    project = settings()
    if not (project.parts or parts):
        return FirmwareChoice(sources, root)
    from harness.firmware.checkout import read_given

    inherited = read_given(project.parts, project.folder) if project.parts else {}
    return FirmwareChoice(sources, root, {**inherited, **read_given(parts)})


def named_root(executorch: Path | None) -> Path | None:
    """The checkout's folder, from ``--executorch``, the environment or the project's settings; None
    when none of them names it. Raises UsageError for settings that are malformed."""
    root = executorch or os.environ.get(ROOT_VARIABLE) or settings().executorch
    return None if root is None else Path(root).absolute()
