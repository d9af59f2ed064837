"""What a run used: allocator pools, planned buffers, NPU scratch, the stack's high-water mark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.errors import UsageError
from harness.run.record import load_record


def run_use(run_dir: Path) -> dict[str, Any]:
    """The figures of a run's record, by pool: what was used, and of how much.

    A figure ``<pool>_total`` is the size of the pool whose use is ``<pool>_used``.
    """
    record = load_record(run_dir)
    if not record.metrics:
        raise UsageError(
            f"{run_dir} has no figures: the run ended in {record.verdict}",
            run_dir=str(run_dir),
        )
    totals = {n.removesuffix("_total"): v for n, v in record.metrics.items() if _is_total(n)}
    figures = [
        {"name": name, "bytes": value, "of": totals.get(name.removesuffix("_used"))}
        for name, value in sorted(record.metrics.items())
        if not _is_total(name) and not name.startswith("ticks")
    ]
    return {"case": record.case.id, "run_dir": str(run_dir), "figures": figures}


def _is_total(name: str) -> bool:
    return name.endswith("_total")


def print_use(used: dict[str, Any]) -> None:
    click.echo(used["case"])
    for figure in used["figures"]:
        of = "" if figure["of"] is None else f" of {figure['of']:,}"
        click.echo(f"  {figure['bytes']:>12,}{of}  {figure['name']}")
