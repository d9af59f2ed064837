"""Which map and which memory regions belong to a file that somebody names."""

from __future__ import annotations

import json
from pathlib import Path

from harness.footprint.anatomy import Anatomy
from harness.footprint.elf import Region
from harness.footprint.measure import measure_file
from harness.target import load_target

_FIRMWARE_STAMP = "firmware.json"  # of harness.build: says which target an ELF was built for


def measure(file: Path, target: str | None = None, linker_map: Path | None = None) -> Anatomy:
    """The anatomy of a file. An ELF of ours brings its target and map with it.

    Raises UsageError for an unknown target.
    """
    if linker_map is None:
        beside = file.with_name(f"{file.name}.map")
        linker_map = beside if beside.is_file() else None
    return measure_file(file, _regions(target or _built_for(file)), linker_map)


def _built_for(file: Path) -> str | None:
    try:
        stamp = json.loads((file.parent / _FIRMWARE_STAMP).read_text())
    except (OSError, ValueError):
        return None
    name = stamp.get("target") if isinstance(stamp, dict) else None
    return name if isinstance(name, str) else None


def _regions(target: str | None) -> list[Region]:
    if target is None:
        return []
    return [Region(r.name, r.origin, r.size) for r in load_target(target).memory]
