"""A bundle for each failure of a night, to look at on another machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.core.errors import HarnessError
from harness.nightly.history.model import Row
from harness.run.pack import pack
from harness.system.files import disk_errors

MAX_BUNDLES = 50  # enough of a fault that breaks everything


@dataclass(frozen=True)
class Bundled:
    """``path``: None if there is no bundle; ``why`` says the reason."""

    case: str
    path: Path | None
    why: str = ""


def pack_failures(rows: Sequence[Row], folder: Path) -> Iterator[Bundled]:
    """One for each bad row that ran on this machine, in the new ``folder``. Raises DiskError."""
    bad = [row for row in rows if row.bad]
    if bad:
        with disk_errors("making the folder of the bundles"):
            folder.mkdir(parents=True, exist_ok=True)
    for number, row in enumerate(bad):
        if number >= MAX_BUNDLES:
            yield Bundled(row.case, None, f"{MAX_BUNDLES} failures have one")
        elif row.run_dir is None:
            yield Bundled(row.case, None, "nothing was run")
        else:
            yield _packed(row.case, Path(row.run_dir), folder)


def _packed(case: str, run_dir: Path, folder: Path) -> Bundled:
    try:
        return Bundled(case, pack(run_dir, folder / f"{run_dir.name}.tar.zst").path)
    except HarnessError as error:
        return Bundled(case, None, error.message)
