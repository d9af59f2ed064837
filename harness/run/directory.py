"""The directory of one run: where it is, and what judging it again will need."""

from __future__ import annotations

import shutil
import uuid
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from harness.core.errors import InfraError
from harness.export.program import InputSet, Program, load_program
from harness.sim.run_files import by_design_name, expected_name
from harness.system.files import MALFORMED
from harness.system.locks import in_use
from harness.system.paths import runs_dir

EXPECTED = "expected"


def new_run_dir(label: str) -> Path:
    """A fresh directory under ``.hil/runs``. Raises InfraError when it cannot be made."""
    stamp = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S")
    path = runs_dir() / f"{stamp}-{label}-{uuid.uuid4().hex[:6]}"
    in_use(path)
    try:
        path.mkdir(parents=True)
    except OSError as error:
        raise InfraError(f"cannot make the run directory {path}: {error}", path=path) from error
    return path


def keep_expectations(program: Program, run_dir: Path) -> None:
    """Copy what judging needs (not the program) into the run directory."""
    kept = replace(
        program,
        directory=run_dir / EXPECTED,
        sets=tuple(
            InputSet(
                s.inputs,
                tuple(expected_name(k, n) for n in range(len(s.expected))),
                tuple(by_design_name(k, n) for n in range(len(s.by_design))),
            )
            for k, s in enumerate(program.sets)
        ),
    )
    try:
        kept.directory.mkdir()
        for old, new in zip(program.sets, kept.sets, strict=True):
            pairs = zip(
                (*old.expected, *old.by_design), (*new.expected, *new.by_design), strict=True
            )
            for source, name in pairs:
                shutil.copyfile(program.directory / source, kept.directory / name)
        kept.save()
    except OSError as error:
        raise InfraError(f"cannot write into {run_dir}: {error}", path=run_dir) from error


def kept_expectations(run_dir: Path) -> Program | None:
    """What ``keep_expectations`` kept; None when there is nothing whole."""
    try:
        return load_program(run_dir / EXPECTED)
    except (OSError, *MALFORMED):
        return None
