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

from harness.config.models import find_model
from harness.export.batch import export
from harness.export.program import Program
from harness.export.request import ExportRequest


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
def exported(shared_hil_home: str) -> Callable[[str], Program]:
    """A catalogue model's Program."""
    return lambda model: export([ExportRequest(find_model(model))])[0].unwrap()


@pytest.fixture(scope="session")
def add(exported: Callable[[str], Program]) -> Program:
    return exported("add")


@pytest.fixture
def inputs(add: Program) -> list[str]:
    """``-i`` arguments of add's first input set."""
    return [x for name in add.sets[0].inputs for x in ("-i", str(add.directory / name))]
