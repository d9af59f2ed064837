"""The command line of an FVP that boots Linux. Nothing here was run on a real one.

The board's images are the user's: meta-arm builds them, ``$HIL_BOARD_IMAGES`` names their folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UsageError
from harness.simulate.fvp_words import bounds, options
from harness.target.fvp import Fvp
from harness.target.loading import Limits

IMAGES = "HIL_BOARD_IMAGES"
CARD = "card.img"  # in the run's directory: a FAT file system with the run's files
_ROM = "bl1.bin"
_HOW = (
    "build them with meta-arm (kas/corstone1000-a320-fvp.yml) and name the folder that has "
    f"{_ROM} and the .wic image with ${IMAGES}"
)


@dataclass(frozen=True)
class BoardImages:
    """``flash``: firmware, kernel and root file system in one."""

    rom: Path
    flash: Path


def board_images(environ: Mapping[str, str] = os.environ) -> BoardImages:
    """Raises UsageError when nobody says where they are, or not all are there."""
    said = environ.get(IMAGES)
    if not said:
        raise UsageError(
            f"the FVP boots the board's own images, and {IMAGES} is not set", hint=_HOW
        )
    folder = Path(said).absolute()
    rom, flashes = folder / _ROM, sorted(folder.glob("*.wic"))
    if not rom.is_file() or len(flashes) != 1:
        raise UsageError(
            f"{folder} has {'a' if rom.is_file() else 'no'} {_ROM} and {len(flashes)} .wic images; "
            "one of each is needed",
            hint=_HOW,
            path=folder,
        )
    return BoardImages(rom, flashes[0])


def argv(
    executable: str, settings: Fvp, limits: Limits, images: BoardImages, card: Path
) -> tuple[str, ...]:
    guest = settings.guest
    if guest is None:
        raise UsageError(f"{settings.executable} is not known to boot an operating system")
    parameters = {**settings.parameters, guest.rom: str(images.rom), guest.card: str(card)}
    return (
        executable,
        *options(parameters),
        *("--data", f"{guest.flash}={images.flash}@{guest.flash_at:#x}"),
        *bounds(limits),
    )
