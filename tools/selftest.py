"""``./hil test``: every check of the project. Static checks and C++ run beside pytest."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO, Any

import click

from harness.core.errors import HarnessError, Unknown
from harness.core.verdict import ExitCode
from harness.system.confine import REQUIRE, required, what_lacks
from harness.system.paths import state_dir
from tools import cpp
from tools.clone import project_root
from tools.skips import unexpected_skips
from tools.systems import systems

PIPELINES = ("action.yml", ".github/workflows", "examples/pipelines/github.yml")
WORKFLOWS = (
    ".github/workflows/nightly.yml",
    ".github/workflows/thorough.yml",
    PIPELINES[-1],
)


@dataclass(frozen=True)
class Options:
    """What the user gave: seconds for each fuzzer (0: none), whether everything is tried, and
    arguments for pytest."""

    fuzz_seconds: int = 0
    everything: bool = False
    pytest_arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Step:
    """One check. ``run`` gets the stream for its output and returns whether the check passed."""

    name: str
    description: str
    run: Callable[[IO[str], Options], bool]
    beside_pytest: bool = True
    thorough: bool = False  # only with --all or by name
    only_by_name: bool = False


@dataclass(frozen=True)
class Result:
    passed: bool
    seconds: float


def _run(command: Sequence[str], output: IO[str], **environment: str) -> bool:
    done = subprocess.run(
        command,
        cwd=project_root(),
        stdout=output,
        stderr=subprocess.STDOUT,
        env={**os.environ, **environment},
    )
    return done.returncode == 0


def _module(output: IO[str], *arguments: str) -> bool:
    return _run([sys.executable, "-m", *arguments], output)


def _lint(output: IO[str], _options: Options) -> bool:
    style = _module(output, "ruff", "check", ".")
    called = _module(output, "vulture")
    zizmor = str(cpp.environment_tool("zizmor"))
    safe = _run([zizmor, "--offline", "--no-progress", *PIPELINES], output)
    if actionlint := shutil.which("actionlint"):  # no wheel has it: whoever has it runs it
        safe = _run([actionlint, *WORKFLOWS], output) and safe
    return style and called and safe


def _imports(output: IO[str], _options: Options) -> bool:
    return _run([str(cpp.environment_tool("lint-imports"))], output)


def _pytest(output: IO[str], options: Options) -> bool:
    arguments = options.pytest_arguments
    # One more than there are processors: tests wait for simulators, limits and locks a fifth of
    # their time. With a second one more the whole takes longer. worksteal: a folder's fixtures are
    # made once, by the worker that has it.
    workers = ["-n", str((os.cpu_count() or 1) + 1), "--dist", "worksteal"]
    if any(argument.startswith("-n") for argument in arguments):
        workers = []
    # Containers often set it; then each of a thousand processes compiles what it imports.
    environment = {"PYTHONDONTWRITEBYTECODE": ""}
    if (missing := what_lacks()) and required():
        print(f"guests cannot be confined here, so those tests are skipped: {missing}", file=output)
        environment[REQUIRE] = "0"
    junit = state_dir() / "junit.xml"
    if options.everything:
        workers.append("--hil-npu-cases=all")
    command = [sys.executable, "-m", "pytest", *workers, f"--junitxml={junit}", *arguments]
    passed = _run(command, output, **environment)
    if arguments or not os.environ.get("CI"):
        return passed
    problems = unexpected_skips(junit)
    for problem in problems:
        print(f"skipped tests: {problem}", file=output, flush=True)
    return passed and not problems


def _fuzz(output: IO[str], options: Options) -> bool:
    return options.fuzz_seconds == 0 or cpp.fuzz(options.fuzz_seconds, output)


STEPS = (
    Step("lint", "ruff check; vulture: code that nobody calls; zizmor: the pipelines", _lint),
    Step("format", "ruff format", lambda out, _: _module(out, "ruff", "format", "--check", ".")),
    Step("types", "mypy --strict", lambda out, _: _module(out, "mypy")),
    Step("imports", "the layers of harness/ (import-linter)", _imports),
    Step("cpp-format", "clang-format", lambda out, _: cpp.check_format(out)),
    Step("cpp", "C++ unit tests under ASan and UBSan", lambda out, _: cpp.run_unit_tests(out)),
    Step(
        "cpp-lint",
        "clang-tidy (with --all, or --only cpp-lint)",
        lambda out, _: cpp.check_tidy(out),
        thorough=True,
    ),
    Step("fuzz", "program loader and Vela reader under libFuzzer", _fuzz),
    Step("pytest", "unit, plugin, export, kernel and regression tests", _pytest, False),
    Step(
        "systems",
        "the README's first command in clean Debians (an hour; only with --only systems)",
        lambda _out, options: systems(options.pytest_arguments),
        beside_pytest=False,
        only_by_name=True,
    ),
)


def run_steps(
    only: Sequence[str], options: Options, *, as_json: bool
) -> tuple[dict[str, Any], ExitCode]:
    """Runs all steps, or those in ``only``, also after one has failed.

    The steps beside pytest run one after the other in the background; what each printed appears
    when it has ended.
    """
    project_root()  # raises UsageError: an installed package has no tests
    if options.everything:
        os.environ["HIL_TEST_ALL"] = "1"  # of every step; tests/thorough.py
    known = {step.name: step for step in STEPS}
    if "list" in only:
        for step in () if as_json else STEPS:
            click.echo(f"{step.name:10} {step.description}")
        return {"steps": list(known)}, ExitCode.PASSED
    for name in only:
        if name not in known:
            raise Unknown(f"there is no step {name!r}", name, known, listing="steps: ")
    chosen = [known[name] for name in only] or [
        s for s in STEPS if not s.only_by_name and (options.everything or not s.thorough)
    ]
    results: dict[str, Result] = {}
    with ThreadPoolExecutor(max_workers=1) as background:
        beside = {
            s: background.submit(_in_background, s, options) for s in chosen if s.beside_pytest
        }
        for step in chosen:
            if not step.beside_pytest:
                results[step.name] = _in_foreground(step, options)
        results |= {step.name: future.result() for step, future in beside.items()}
    return _summary(results, as_json=as_json)


def _in_foreground(step: Step, options: Options) -> Result:
    _headline(f"{step.name}: {step.description}")
    return _timed(step, options, sys.stderr)


def _in_background(step: Step, options: Options) -> Result:
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        result = _timed(step, options, output)
        output.seek(0)
        state = "passed" if result.passed else "FAILED"
        _headline(f"{step.name}: {state} in {result.seconds} s")
        sys.stderr.write(output.read() if not result.passed else "")
        sys.stderr.flush()
    return result


def _headline(text: str) -> None:
    click.secho(f"== {text}", err=True, bold=True)


def _timed(step: Step, options: Options, output: IO[str]) -> Result:
    started = time.monotonic()
    try:
        passed = step.run(output, options)
    except HarnessError as error:
        print(f"hil: error: {error.message}\nhil: {error.hint or ''}", file=output, flush=True)
        passed = False
    return Result(passed, round(time.monotonic() - started, 1))


def _summary(results: dict[str, Result], *, as_json: bool) -> tuple[dict[str, Any], ExitCode]:
    failed = [name for name, result in results.items() if not result.passed]
    if not as_json:
        for name, result in results.items():
            click.echo(f"{name:10} {'passed' if result.passed else 'FAILED'} in {result.seconds} s")
        click.echo(f"steps: {len(results) - len(failed)} passed, {len(failed)} failed")
    steps = {name: vars(result) for name, result in results.items()}
    return {"steps": steps}, ExitCode.FAILED if failed else ExitCode.PASSED
