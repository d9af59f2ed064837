"""Which firmware a user asked for, decided in one place for every verb, and how to get it.

A checkout is named by ``--executorch DIR``, by ``$EXECUTORCH_ROOT``, or by ``executorch`` of the
user's settings (``harness.system.settings``). Only the first also asks for its firmware; the others
say where it is when ``--firmware`` does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from harness.build.source import FIRMWARE, FirmwareSource
from harness.errors import UsageError
from harness.system.paths import cache_dir
from harness.system.progress import Progress, silent
from harness.system.settings import settings

if TYPE_CHECKING:  # pytest asks for the choice in every session, and few of them build
    from harness.build.executorch.checkout import Checkout
    from harness.build.firmware import Firmware
    from harness.target.loading import Target
    from harness.target.model import SimulatorName

ROOT_VARIABLE = "EXECUTORCH_ROOT"
PARTS_VARIABLE = "HIL_EXECUTORCH_PARTS"


@dataclass(frozen=True)
class FirmwareChoice:
    """``sources``: whose firmware, in order. ``root``: the checkout's folder, when one of them is
    ExecuTorch's; ``parts``: local folders for what its build would download."""

    sources: tuple[FirmwareSource, ...] = (FirmwareSource.BUNDLED,)
    root: Path | None = None
    parts: Mapping[str, Path] = field(default_factory=dict)

    def checkout(self) -> Checkout | None:
        """None when only the bundled runner is wanted. Raises what ``find_checkout`` does."""
        if self.root is None:
            return None
        from harness.build.executorch.checkout import find_checkout

        return find_checkout(self.root, self.parts)


BUNDLED = FirmwareChoice()


class NoCheckout(UsageError):
    """``asked``: the option that needs ExecuTorch, and nobody says where ExecuTorch is."""

    def __init__(self, asked: str) -> None:
        self.asked = asked
        super().__init__(
            f"{asked} needs a checkout of ExecuTorch, and none was named",
            hint="name it with --executorch DIR (for pytest: --hil-executorch DIR), with "
            f'${ROOT_VARIABLE}, or with executorch = "DIR" under [tool.hil] in pyproject.toml',
        )


def choose(
    word: str | None,
    executorch: Path | None,
    parts: Sequence[str],
    *,
    environ: Mapping[str, str] = os.environ,
    directory: Path | None = None,
) -> FirmwareChoice:
    """What ``--firmware``, ``--executorch`` and ``--part`` ask for together.

    Raises NoCheckout, and UsageError for a part or settings that are malformed.
    """
    wanted = word or ("bundled" if executorch is None else "executorch")
    sources = FIRMWARE[wanted]
    if FirmwareSource.EXECUTORCH not in sources:
        return FirmwareChoice(sources)
    root = named_root(executorch, environ=environ, directory=directory)
    if root is None:
        raise NoCheckout(f"--firmware {wanted}")
    return FirmwareChoice(sources, root, _parts(parts, environ))


def named_root(
    executorch: Path | None,
    *,
    environ: Mapping[str, str] = os.environ,
    directory: Path | None = None,
) -> Path | None:
    """Where the checkout is: as ``--executorch`` says, or the environment, or the project; None
    when nobody does. Raises UsageError for settings that are malformed."""
    root = executorch or _named_elsewhere(environ, directory)
    return None if root is None else root.absolute()


def _named_elsewhere(environ: Mapping[str, str], directory: Path | None) -> Path | None:
    if environ.get(ROOT_VARIABLE):
        return Path(environ[ROOT_VARIABLE])
    return settings(directory, environ).executorch


def _parts(words: Sequence[str], environ: Mapping[str, str]) -> dict[str, Path]:
    """Those of the command line over those of the environment."""
    inherited = [word for word in environ.get(PARTS_VARIABLE, "").split(os.pathsep) if word]
    if not (inherited or words):
        return {}
    from harness.build.executorch.parts import read_given

    return {**read_given(inherited), **read_given(words)}


def build_for(
    source: FirmwareSource,
    target: Target,
    simulator: SimulatorName,
    checkout: Checkout | None,
    *,
    options: Mapping[str, str] | None = None,
    dev_mode: bool = False,
    progress: Progress = silent,
) -> Firmware:
    """The firmware of a source for a target as it is on ``simulator`` (``Chosen.target``).

    ``options`` and ``dev_mode`` are of our runner's build (``harness.build.firmware.build``).
    Raises what the three builds do.
    """
    if source is FirmwareSource.BUNDLED:
        from harness.build.firmware import build

        return build(target, options=options, dev_mode=dev_mode, progress=progress)
    if source is FirmwareSource.WHEEL:
        from harness.build.wheel.firmware import build_wheel

        return build_wheel(target, progress=progress)
    from harness.build.executorch.firmware import build_checkout

    assert checkout is not None, "a choice with ExecuTorch's firmware has its checkout"
    return build_checkout(target, simulator, checkout, progress=progress)


def firmware_key(
    source: FirmwareSource,
    target: Target,
    simulator: SimulatorName,
    checkout: Checkout | None,
    *,
    options: Mapping[str, str] | None = None,
    dev_mode: bool = False,
) -> str:
    """The name in the cache of what ``build_for`` gives, whether it is there or not."""
    if source is FirmwareSource.BUNDLED:
        from harness.build.plan import make_plan

        return make_plan(target, target.default_variant, options or {}, dev_mode=dev_mode).key()
    from harness.build.executorch import plan

    assert checkout is not None, "a choice with ExecuTorch's firmware has its checkout"
    return plan.make_plan(target, simulator, checkout).key()


def build_tree(
    source: FirmwareSource, target: Target, simulator: SimulatorName, checkout: Checkout | None
) -> Path:
    """The directory that ``build_for`` builds in, whether it is there or not."""
    if source is FirmwareSource.BUNDLED:
        from harness.build.firmware import west_job
        from harness.build.plan import make_plan

        made = make_plan(target, target.default_variant, {})
        job = west_job(made)
        return cache_dir("firmware") / made.key() / "build" if job is None else job.tree
    if source is FirmwareSource.WHEEL:
        from harness.build.wheel import firmware as wheel

        return cache_dir("firmware") / wheel.make_plan(target).key() / "build"
    from harness.build.executorch import plan

    assert checkout is not None, "a choice with ExecuTorch's firmware has its checkout"
    return cache_dir("executorch") / plan.make_plan(target, simulator, checkout).tree() / "build"
