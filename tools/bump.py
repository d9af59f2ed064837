"""Another release of ExecuTorch: ``python -m tools.bump 1.6.0 [--torch 2.14.0]``.

Changes the pins (pyproject.toml, scripts/bootstrap.sh), writes both locks, and prints what a person
has to decide: what differs between the two wheels in what this project reads or computes itself,
and which of our tests fail with the new one. The project is edited in place; ``git diff`` shows it.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from xml.etree import ElementTree

import click

from harness.core.errors import HarnessError, InfraError, UsageError
from harness.core.verdict import ExitCode
from harness.formats.schema import conform, read_schema
from harness.run.version_skew import Signatures, declared
from harness.suites.suites import SUITES
from harness.system.paths import executorch_package, state_dir
from tools.clone import project_root

PINS = (
    ("pyproject.toml", r"(executorch\[ethos-u\]==)([\w.]+)", "executorch"),
    ("pyproject.toml", r'("torch==)([\w.]+)', "torch"),
    ("scripts/bootstrap.sh", r"(?m)^(torch_version=)(\S+)", "torch"),
)
# Formats that this project reads or writes itself.
SCHEMAS = (
    "schema/program.fbs",
    "devtools/bundled_program/schema/bundled_program_schema.fbs",
)
# Files whose behaviour this project follows, and what follows it.
FOLLOWED = {
    "backends/cortex_m/ops/operators.py": "what Cortex-M operators mean: targets/runner/kernels",
    "backends/arm/arm_vela.py": "a stream's container: formats/ethosu.py, vela_stream.h",
    "backends/arm/scripts/aot_arm_compiler.py": "the steps of lowering: export/child/lower.py",
    "backends/arm/ethosu/compile_spec.py": "Vela's options: config/npu.py",
    "backends/arm/test/runner_utils.py": "how suites start a runner: suites/standin",
    "examples/models/__init__.py": "names of networks: models/catalogue.yaml",
}
# Packages of the compiler, each with what was found in one version of it.
TOOLS = {
    "ethos-u-vela": "known defects: targets/npu/defects.yaml; its tables: export/estimates.py",
    "tosa-tools": "TOSA's reference model, the oracle of tests/npu",
    "torchao": "the quantiser's scales: references/",
}
# The tests that tell of differences, and what a failure of theirs is about.
CHECKS = {
    "tests/formats": "readers of files",
    "tests/kernels": "the runner's kernels against the wheel's definitions",
    "tests/export": "exporting",
    "tests/judge": "known defects of ExecuTorch (config/known_defects.yaml: seen_in), by design",
    "tests/npu": "the NPU model against Vela and TOSA",
    "tests/suites": "ExecuTorch's suites and their known failures",
    "tests/firmware/wheel": "the wheel's own runtime",
    "tests/regression": "references: `hil accept` where the difference is ExecuTorch's",
}


@dataclass(frozen=True)
class Wheel:
    """An ExecuTorch: ``package`` is its folder, ``requires`` its requirements by name, as the
    metadata has them."""

    version: str
    package: Path
    requires: Mapping[str, str]


def pinned(root: Path, name: str) -> str:
    """The version of ``name`` (executorch, torch) that the project pins."""
    file, pattern, _ = next(pin for pin in PINS if pin[2] == name)
    match = re.search(pattern, (root / file).read_text())
    assert match is not None, f"{file} has no pin of {name}"
    return match[2]


def write_pins(root: Path, versions: Mapping[str, str]) -> None:
    """Changes every place that pins a package of ``versions``."""
    for file, pattern, name in PINS:
        if name in versions:
            text, places = re.subn(pattern, rf"\g<1>{versions[name]}", (root / file).read_text())
            assert places == 1, f"{file} has {places} pins of {name}"
            (root / file).write_text(text)


def differences(old: Wheel, new: Wheel) -> Iterator[str]:
    """What of two releases concerns this project, a line each."""
    yield from _of_operators(declared(old.package), declared(new.package))
    for name in SCHEMAS:
        yield from _of_schemas(name, old.package / name, new.package / name)
    for name, follower in FOLLOWED.items():
        if (text := _of_file(old.package / name, new.package / name)) is not None:
            yield f"{name} {text}; it is followed by {follower}"
    for folder in sorted({f"{suite.root}/{suite.tests}" for suite in SUITES.values()}):
        yield from _of_tests(folder, old.package / folder, new.package / folder)
    for name, reason in TOOLS.items():
        before, after = old.requires.get(name, "none"), new.requires.get(name, "none")
        if before != after:
            yield f"{name} {before} -> {after}: {reason}"


def _of_operators(old: Signatures, new: Signatures) -> Iterator[str]:
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before is None:
            yield f"operator {name} is new: ({', '.join(after or ())})"
        elif after is None:
            yield f"operator {name} is gone"
        elif before != after:
            yield f"operator {name}: ({', '.join(before)}) -> ({', '.join(after)})"


def _of_schemas(name: str, old: Path, new: Path) -> Iterator[str]:
    if not (old.is_file() and new.is_file()):
        if old.is_file() != new.is_file():
            yield f"{name} is {'gone' if old.is_file() else 'new'}"
        return
    found = conform(read_schema(old), read_schema(new))
    if (difference := found.difference) is not None:
        yield f"{name}: {difference.where} is '{difference.reader}', was '{difference.writer}'"
    for grown in found.grown:
        yield f"{name}: {grown}"


def _of_file(old: Path, new: Path) -> str | None:
    if not new.is_file():
        return "is gone" if old.is_file() else None
    if not old.is_file():
        return "is new"
    before, after = (_code(file) for file in (old, new))
    return None if before == after else "changed"


def _code(file: Path) -> str:
    """A Python file without comments and layout."""
    return ast.dump(ast.parse(file.read_bytes()))


def _of_tests(name: str, old: Path, new: Path) -> Iterator[str]:
    """The functions of each file; which parameters they have is not known without a run."""
    before, after = _test_functions(old), _test_functions(new)
    for file in sorted(before.keys() | after.keys()):
        gone = before.get(file, set()) - after.get(file, set())
        fresh = after.get(file, set()) - before.get(file, set())
        texts = (
            f"{what}: {', '.join(sorted(t))}" for what, t in (("new", fresh), ("gone", gone)) if t
        )
        if text := "; ".join(texts):
            yield f"suite {Path(name) / file}: {text}"


def _test_functions(folder: Path) -> dict[Path, set[str]]:
    return {
        file.relative_to(folder): {
            node.name
            for node in ast.walk(ast.parse(file.read_bytes()))
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        }
        for file in folder.rglob("test_*.py")
    }


def installed() -> Wheel:
    """The ExecuTorch of this environment."""
    package = executorch_package()
    (metadata,) = package.parent.glob("executorch-*.dist-info/METADATA")
    return _wheel(package, metadata.read_text())


def fetch(version: str, folder: Path) -> Wheel:
    """The wheel of a release, from the package index pip is configured for, unpacked.

    Raises UsageError when there is none for this Python and platform.
    """
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    command = [*pip, "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--dest", str(folder), f"executorch=={version}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UsageError(
            f"the package index has no executorch {version} for this Python",
            hint=done.stderr.strip().splitlines()[0] if done.stderr.strip() else None,
        )
    (file,) = folder.glob("executorch-*.whl")
    with zipfile.ZipFile(file) as archive:
        archive.extractall(folder)
    (metadata,) = folder.glob("executorch-*.dist-info/METADATA")
    return _wheel(folder / "executorch", metadata.read_text())


def _wheel(package: Path, metadata: str) -> Wheel:
    headers = HeaderParser().parsestr(metadata)
    requires = (re.match(r"([\w.-]+) *([^;]*)", r) for r in headers.get_all("Requires-Dist", []))
    by_name = {match[1].lower(): match[2].strip() for match in requires if match}
    return Wheel(str(headers["Version"]), package, by_name)


def lock(root: Path) -> None:
    """Writes both locks by scripts/lock.sh, with a uv of its own. Raises InfraError."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        subprocess.run([*pip, "--target", folder, "uv"], check=True)
        path = os.pathsep.join([f"{folder}/bin", os.environ.get("PATH", "")])
        done = subprocess.run(
            ["sh", "scripts/lock.sh"], cwd=root, env={**os.environ, "PATH": path}, check=False
        )
    if done.returncode != 0:
        raise InfraError("the locks could not be written: uv's message is above")


def run_checks(root: Path) -> dict[str, list[str]]:
    """The failing tests, by the key of CHECKS. ``./hil`` installs what the new lock names first."""
    subprocess.run([str(root / "hil"), "test", "--only", "pytest", *CHECKS], cwd=root, check=False)
    try:
        cases = ElementTree.parse(state_dir() / "junit.xml").iter("testcase")
    except (OSError, ElementTree.ParseError) as error:
        raise InfraError(f"the tests with the new release gave no report: {error}") from error
    failed: dict[str, list[str]] = {}
    for case in cases:
        if case.find("failure") is not None or case.find("error") is not None:
            name = f"{case.get('classname', '')}::{case.get('name', '')}"
            folder = next(f for f in CHECKS if name.startswith(f.replace("/", ".")))
            failed.setdefault(folder, []).append(name)
    return failed


def bump(version: str, torch: str | None, *, run_tests: bool) -> ExitCode:
    """Raises HarnessError for a release that cannot be had."""
    root = project_root()
    old = installed()
    with tempfile.TemporaryDirectory() as folder:
        click.echo(f"fetching executorch {version} ...", err=True)
        found = list(differences(old, fetch(version, Path(folder))))
    write_pins(root, {"executorch": version, **({} if torch is None else {"torch": torch})})
    click.echo("writing the locks ...", err=True)
    lock(root)
    click.echo(f"executorch {old.version} -> {version}, torch {pinned(root, 'torch')}")
    if torch is None:
        click.echo(
            f"  torch is as it was; torch_pin.py of ExecuTorch v{version} names the right one"
        )
    click.echo(f"{len(found)} differences to look at:")
    for line in found:
        click.echo(f"  {line}")
    failed = run_checks(root) if run_tests else {}
    for name, tests in failed.items():
        click.echo(f"{len(tests)} failures in {name}: {CHECKS[name]}")
        for test in tests:
            click.echo(f"  {test}")
    click.echo("then: ./hil test; docs/versions.md; config/known_defects.yaml: seen_in; CHANGELOG")
    return ExitCode.FAILED if failed else ExitCode.PASSED


@click.command(help=__doc__)
@click.argument("version")
@click.option("--torch", metavar="VERSION", help="The torch that the release is built for.")
@click.option("--tests/--no-tests", default=True, help="Run the tests that tell of differences.")
def main(version: str, torch: str | None, tests: bool) -> None:
    try:
        sys.exit(bump(version, torch, run_tests=tests))
    except HarnessError as error:
        raise click.ClickException(f"{error.message}\n{error.hint or ''}".strip()) from error


if __name__ == "__main__":
    main()
