"""Which map and which memory regions belong to a file that somebody names."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from harness.build.firmware import linked_regions
from harness.footprint.anatomy import Anatomy
from harness.footprint.measure import measure_file
from harness.target.loading import load_target
from harness.target.model import Region

_FIRMWARE_STAMP = "firmware.json"  # of harness.build.firmware: says how an ELF was built


def measure(file: Path, target: str | None = None, linker_map: Path | None = None) -> Anatomy:
    """The anatomy of a file. An ELF of ours brings its memory regions and its map with it.

    Raises UsageError for an unknown target.
    """
    if linker_map is None:
        beside = file.with_name(f"{file.name}.map")
        linker_map = beside if beside.is_file() else None
    regions = load_target(target).memory if target else _linked_for(file)
    return measure_file(file, as_regions(regions), linker_map)


def as_regions(regions: Iterable[Region]) -> list[Region]:
    """A target's memory in the terms of harness.footprint."""
    return list(regions)


def _linked_for(file: Path) -> tuple[Region, ...]:
    try:
        stamp = json.loads((file.parent / _FIRMWARE_STAMP).read_text())
    except (OSError, ValueError):
        return ()
    options = stamp.get("options") if isinstance(stamp, dict) else None
    return linked_regions(options) if isinstance(options, dict) else ()
