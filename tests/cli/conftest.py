"""Running ``hil`` as a user does: its exit code and its words."""

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
from click.testing import CliRunner

from harness.cli.main import main
from harness.config.case import Case
from harness.config.loading import load_target
from harness.export.process import ExportProcess
from harness.export.program import Program
from harness.run.subjects import export_cases
from harness.system.confine import required


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
    """``hil(*arguments, **environment)``; never with colours, never in a terminal, and at a desk:
    in CI what was never accepted fails. In this process, but for ``process=True``, a ``prefix``
    that starts the command, or another PATH."""

    def call(
        *arguments: str | Path,
        prefix: tuple[str, ...] = (),
        process: bool = False,
        **environment: str,
    ) -> Result:
        words = [str(argument) for argument in arguments]
        desk = {"CI": "", **({"HIL_REQUIRE_CONFINEMENT": "1"} if required() else {})}
        variables = {"HIL_HOME": shared_hil_home, **desk, **environment}
        if process or prefix or "PATH" in environment:
            result = _in_a_process([*prefix, sys.executable, "-m", "harness", *words], variables)
        else:
            done = CliRunner().invoke(main, words, env=variables, prog_name="hil")
            if done.exception is not None and not isinstance(done.exception, SystemExit):
                raise done.exception
            result = Result(done.exit_code, done.stdout, done.stderr)
        assert "Traceback" not in result.err, result.err
        assert "\x1b" not in result.out + result.err
        return result

    return call


def _in_a_process(command: list[str], variables: dict[str, str]) -> Result:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, **variables},
    )
    return Result(done.returncode, done.stdout, done.stderr)


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
