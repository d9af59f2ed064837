"""``hil test``: every check the project has, in one order, each with its result."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from harness.dev.cpp_tests import fuzz, layout, lint, unit_tests
from harness.errors import ExitCode, HarnessError, Unknown
from harness.system.paths import project_root


@dataclass(frozen=True)
class Step:
    """``run`` takes what the user gave (fuzz seconds, pytest arguments), returns success."""

    name: str
    what: str
    run: Callable[[int, Sequence[str]], bool]


def _python(*arguments: str) -> bool:
    return _command([sys.executable, "-m", *arguments])


def _command(argv: Sequence[str]) -> bool:
    # stdout of the whole command belongs to --json, so steps speak on stderr.
    return subprocess.run(argv, cwd=project_root(), stdout=sys.stderr).returncode == 0


def _lint() -> bool:
    style = _python("ruff", "check", ".")
    return _python("vulture") and style


def _imports() -> bool:
    return _command([str(Path(sys.executable).with_name("lint-imports"))])


def _pytest(arguments: Sequence[str]) -> bool:
    workers = [] if any(a.startswith("-n") for a in arguments) else ["-n", str(os.cpu_count() or 1)]
    junit = Path(os.environ.get("HIL_HOME", project_root() / ".hil")) / "junit.xml"
    return _python("pytest", *workers, f"--junitxml={junit}", *arguments)


def steps() -> tuple[Step, ...]:
    return (
        Step("lint", "ruff check; vulture: what nobody calls", lambda _s, _a: _lint()),
        Step("format", "ruff format", lambda _s, _a: _python("ruff", "format", "--check", ".")),
        Step("types", "mypy --strict", lambda _s, _a: _python("mypy")),
        Step("imports", "the rooms: who may import whom", lambda _s, _a: _imports()),
        Step("cpp-format", "clang-format", lambda _s, _a: layout()),
        Step("cpp-lint", "clang-tidy on the runner's sources", lambda _s, _a: lint()),
        Step("cpp", "the runner's unit tests under ASan and UBSan", lambda _s, _a: unit_tests()),
        Step("pytest", "unit, plugin, export, kernel and regression tests",
             lambda _s, a: _pytest(a)),
        Step("fuzz", "program loader and Vela reader under libFuzzer and sanitizers",
             lambda s, _a: s == 0 or fuzz(s)),
    )  # fmt: skip


def run_steps(
    only: Sequence[str], fuzz_seconds: int, pytest_args: Sequence[str], *, as_json: bool
) -> tuple[dict[str, Any], ExitCode]:
    """Run the steps, all of them even when one fails. Returns the results and the exit code."""
    known = {step.name: step for step in steps()}
    if "list" in only:
        for step in known.values():
            click.echo(f"{step.name:10} {step.what}")
        return {"steps": list(known)}, ExitCode.PASSED
    for name in only:
        if name not in known:
            raise Unknown(f"there is no step {name!r}", name, known, listing="steps: ")
    results: dict[str, dict[str, Any]] = {}
    for name in only or known:
        click.secho(f"== {name}: {known[name].what}", err=True, bold=True)
        started = time.monotonic()
        try:
            passed = known[name].run(fuzz_seconds, pytest_args)
        except HarnessError as error:
            click.echo(f"hil: error: {error.message}", err=True)
            passed = False
        results[name] = {"passed": passed, "seconds": round(time.monotonic() - started, 1)}
    return _summary(results, as_json=as_json)


def _summary(
    results: dict[str, dict[str, Any]], *, as_json: bool
) -> tuple[dict[str, Any], ExitCode]:
    failed = [name for name, result in results.items() if not result["passed"]]
    if not as_json:
        for name, result in results.items():
            state = "passed" if result["passed"] else "FAILED"
            click.echo(f"{name:10} {state} in {result['seconds']} s")
        click.echo(f"steps: {len(results) - len(failed)} passed, {len(failed)} failed")
    return {"steps": results}, ExitCode.FAILED if failed else ExitCode.PASSED
