"""Firmware of the cache, as a build would find it."""

from __future__ import annotations

from pathlib import Path

from harness.firmware.cache import read_firmware
from harness.firmware.source import Firmware
from harness.system import artifact_cache


def load_firmware(directory: Path) -> Firmware | None:
    """None when there is none, or anything in the directory is not what was built for its key."""
    entry = artifact_cache.load(directory, directory.name)
    return None if entry is None else read_firmware(directory)
