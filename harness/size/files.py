"""What ``hil size`` shows: of a file its anatomy, of a run directory what the run used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.build.firmware import linked_regions
from harness.errors import UsageError
from harness.footprint.anatomy import Anatomy
from harness.footprint.measure import measure_file
from harness.run.record import load_record
from harness.target.figures import figure
from harness.target.loading import load_target
from harness.target.model import Region

_FIRMWARE_STAMP = "firmware.json"  # of harness.build.firmware: says how an ELF was built
_TOTAL = "_total"


def measure(file: Path, target: str | None = None, linker_map: Path | None = None) -> Anatomy:
    """The anatomy of a file. An ELF of ours brings its memory regions and its map with it.

    Raises UsageError for an unknown target.
    """
    if linker_map is None:
        beside = file.with_name(f"{file.name}.map")
        linker_map = beside if beside.is_file() else None
    regions = load_target(target).memory if target else _linked_for(file)
    return measure_file(file, regions, linker_map)


def _linked_for(file: Path) -> tuple[Region, ...]:
    try:
        stamp = json.loads((file.parent / _FIRMWARE_STAMP).read_text())
    except (OSError, ValueError):
        return ()
    options = stamp.get("options") if isinstance(stamp, dict) else None
    return linked_regions(options) if isinstance(options, dict) else ()


def run_use(run_dir: Path) -> dict[str, Any]:
    """The figures of a run's record in bytes: what was used, of how much, and what it means.

    A figure ``<pool>_total`` is the size of the pool whose use is ``<pool>``.
    """
    record = load_record(run_dir)
    if not record.metrics:
        raise UsageError(
            f"{run_dir} has no figures: the run ended in {record.verdict}",
            run_dir=str(run_dir),
        )
    figures = []
    for name, value in sorted(record.metrics.items()):
        row = figure(name)
        if name.endswith(_TOTAL) or (row is not None and row.unit != "bytes"):
            continue
        total = record.metrics.get(name + _TOTAL, record.metrics.get(_pool(name) + _TOTAL))
        meaning = "" if row is None else row.meaning
        figures.append({"name": name, "bytes": value, "of": total, "meaning": meaning})
    return {"case": record.case.id, "run_dir": str(run_dir), "figures": figures}


def _pool(name: str) -> str:
    return name.removesuffix("_used")
