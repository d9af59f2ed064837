"""``TARGET/runner`` in place of a file: the firmware of a target, and the tree it is built in."""

from __future__ import annotations

from pathlib import Path

from harness.config.case import RUNNER
from harness.config.loading import load_target
from harness.core.errors import NotThere, UsageError
from harness.firmware.firmware import Firmware
from harness.firmware.source import BuildRequest, FirmwareChoice
from harness.sim.simulator import pick
from harness.system.progress import Progress


def firmware_of(path: Path, choice: FirmwareChoice, progress: Progress) -> tuple[Firmware, ...]:
    """Each firmware that is wanted when the path is ``TARGET/runner``; none when it is a file.

    Raises UsageError when it is neither, and for a target that does not exist; what the build
    does.
    """
    target = _target(path)
    if target is None:
        return ()
    checkout = choice.checkout()
    chosen = pick(load_target(target))
    request = BuildRequest(chosen.target, chosen.name, checkout)
    return tuple(source.build(request, progress) for source in choice.sources)


def tree_of(path: Path, choice: FirmwareChoice) -> Path:
    """Where the firmware is built when the path is ``TARGET/runner``; else the path itself.

    Raises UsageError when there is no such tree: our own is kept only while a build fails.
    """
    target = _target(path)
    if target is None:
        return path
    if len(choice.sources) > 1:
        raise UsageError("one link is looked at, so --firmware both makes no sense here")
    chosen = pick(load_target(target))
    (source,) = choice.sources
    tree = source.tree(BuildRequest(chosen.target, chosen.name, choice.checkout()))
    if not tree.is_dir():
        raise UsageError(
            f"there is no build of {path} with firmware {source}",
            hint="`hil run` and `hil size` build it; the tree of the bundled runner is kept only "
            "when its build fails",
            path=tree,
        )
    return tree


def _target(path: Path) -> str | None:
    if path.exists():
        return None
    if path.name == RUNNER and len(path.parts) == 2:
        return path.parts[0]
    raise NotThere(path, hint="or TARGET/runner, for a target's firmware")
