"""Running ``hil`` as a user does: a process, its exit code, its words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.config.case import Case
from harness.config.loading import load_target
from harness.export.process import ExportProcess
from harness.export.program import Program
from harness.run.artifacts import export_cases


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.out)
        assert parsed["version"] == 1
        return parsed


Hil = Callable[..., Result]
Exported = Callable[..., Program]


@pytest.fixture(scope="session")
def hil(shared_hil_home: str) -> Hil:
    """``hil(*arguments, **environment)``; never with colours, never in a terminal."""

    def call(*arguments: str | Path, prefix: tuple[str, ...] = (), **environment: str) -> Result:
        done = subprocess.run(
            [*prefix, sys.executable, "-m", "harness", *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
            env={**os.environ, "HIL_HOME": shared_hil_home, **environment},
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert "\x1b" not in done.stdout + done.stderr
        return Result(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture(scope="session")
def exported(shared_hil_home: str, hil_export_process: ExportProcess) -> Exported:
    """A model's Program, of the catalogue or of a file. ``hil`` finds it in the cache: it imports
    torch for as long as ten runs take."""

    def get(model: str | Path, target: str = "corstone-300-m55") -> Program:
        (program,) = export_cases(
            [Case(target, str(model))], {target: load_target(target)}, process=hil_export_process
        )
        assert isinstance(program, Program), program
        return program

    return get


@pytest.fixture(scope="session")
def add(exported: Exported) -> Program:
    return exported("add")


@pytest.fixture
def inputs(add: Program) -> list[str]:
    """``-i`` arguments of add's first input set."""
    return [x for name in add.sets[0].inputs for x in ("-i", str(add.directory / name))]
