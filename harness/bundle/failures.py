"""A bundle of each failure of a night, for whoever is to look at it on another machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.bundle.pack import pack
from harness.errors import HarnessError
from harness.history.model import Row
from harness.system.files import disk_errors

MOST = 50  # a fault that breaks everything is seen in these as well


@dataclass(frozen=True)
class Bundled:
    """``path``: None where there can be none; ``why`` says so then."""

    case: str
    path: Path | None
    why: str = ""


def pack_failures(rows: Sequence[Row], folder: Path) -> Iterator[Bundled]:
    """One for each row that is bad and ran here, in ``folder``, which is made. Raises DiskError."""
    bad = [row for row in rows if row.bad]
    if bad:
        with disk_errors("making the folder of the bundles"):
            folder.mkdir(parents=True, exist_ok=True)
    for number, row in enumerate(bad):
        if number >= MOST:
            yield Bundled(row.case, None, f"{MOST} failures have one")
        elif row.run_dir is None:
            yield Bundled(row.case, None, "nothing was run")
        else:
            yield _packed(row.case, Path(row.run_dir), folder)


def _packed(case: str, run_dir: Path, folder: Path) -> Bundled:
    try:
        return Bundled(case, pack(run_dir, folder / f"{run_dir.name}.tar.zst").path)
    except HarnessError as error:
        return Bundled(case, None, error.message)
