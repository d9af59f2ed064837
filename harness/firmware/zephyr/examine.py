"""Examines the workspace that ``$ZEPHYR_BASE`` names, for `hil doctor`."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.core.errors import HarnessError, UsageError
from harness.firmware.zephyr.init import PROJECTS, is_old
from harness.firmware.zephyr.workspace import (
    find_compiler,
    find_west,
    is_zephyr,
    projects,
    zephyr_version,
)
from harness.system.call import CallFailed, call
from harness.system.files import text_of
from harness.system.packages import how_to_get

_SECONDS = 120
_OPTIONAL = ("hal_ethos_u",)  # the harness has a driver, too
# Packages of Zephyr's scripts/requirements-base.txt that a build needs (4.2 has jsonschema for
# pykwalify); the others are for flashing, debugging and reports.
_NEEDED = {"pyelftools", "pyyaml", "pykwalify", "jsonschema", "packaging", "west"}
_MISSING = """\
import importlib.metadata, sys
for name in sys.argv[1:]:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        print(name)
"""


@dataclass(frozen=True)
class Finding:
    """``state``: None if it is missing; then ``text`` says how to get it."""

    name: str
    state: str | None
    text: str
    required: bool = True


def examine(environ: Mapping[str, str] = os.environ) -> list[Finding]:
    """Empty if ``$ZEPHYR_BASE`` is not set."""
    base = environ.get("ZEPHYR_BASE")
    return list(_findings(Path(base).absolute(), environ)) if base else []


def _findings(base: Path, environ: Mapping[str, str]) -> Iterator[Finding]:
    if not is_zephyr(base):
        yield Finding("zephyr", None, f"{base} is not Zephyr: hil zephyr init DIR")
        return
    version = zephyr_version(base)
    if is_old(version):
        yield Finding("zephyr", None, f"{version} is too old for our targets: hil zephyr init DIR")
    else:
        yield Finding("zephyr", version, str(base))
    try:
        west = find_west(environ)
    except HarnessError as error:
        yield Finding("west", None, error.hint or error.message)
    else:
        yield Finding("west", "found", str(west))
        yield from _projects(west, base)
        yield _packages(west, base)
    # Optional: without it Zephyr skips some checks (cmake/modules/dts.cmake).
    dtc = shutil.which("dtc", path=environ.get("PATH"))
    how = f"the devicetree compiler; {how_to_get('device-tree-compiler')}"
    yield Finding("dtc", "found" if dtc else None, dtc or how, required=False)
    try:
        compiler = find_compiler(environ)
    except HarnessError as error:
        yield Finding("compiler", None, f"{error.message}: {error.hint}")
    else:
        place = str(compiler.path or "as your environment says")
        yield Finding("compiler", compiler.name, place)


def _projects(west: Path, base: Path) -> Iterator[Finding]:
    try:
        known = projects(west, base)
    except UsageError as error:
        yield Finding("workspace", None, f"{error.message}: hil zephyr init DIR")
        return
    for project in PROJECTS[1:]:
        required = project.name not in _OPTIONAL
        place = known.get(project.name)
        if place is None:
            how = f"{project.why}: put it among the projects of the manifest, then west update"
            yield Finding(project.name, None, how, required=required and project.name != "cmsis")
        elif not any(place.glob("*")):
            how = f"{project.why}: west update --narrow --fetch-opt=--depth=1 {project.name}"
            yield Finding(project.name, None, how, required)
        else:
            yield Finding(project.name, "fetched", str(place), required)
    has_build = _ask(base, str(west), "build", "--help") is not None
    how = (
        "`west build` is Zephyr's"
        if has_build
        else "give Zephyr's project in the manifest "
        "`west-commands: scripts/west-commands.yml`, then west update"
    )
    yield Finding("west-commands", "known" if has_build else None, how)


def _packages(west: Path, base: Path) -> Finding:
    """The packages of west's Python, which runs Zephyr's scripts: the first line of west's own
    script names it."""
    listed = text_of(base / "scripts" / "requirements-base.txt")
    named = re.findall(r"^([A-Za-z][\w.-]*)", listed, re.MULTILINE)
    names = [name for name in named if name.lower() in _NEEDED]
    with west.open("rb") as file:
        first = file.readline().decode("utf-8", "replace").strip()
    python = first.removeprefix("#!").split(" ")[0]
    if not (first.startswith("#!") and "python" in Path(python).name and Path(python).is_file()):
        python = sys.executable
    if missing := (_ask(base, python, "-c", _MISSING, *names) or "").split():
        how = f"{python} -m pip install {' '.join(missing)}"
        return Finding("Python packages", None, how)
    return Finding("Python packages", "installed", f"those that a build needs, for {python}")


def _ask(base: Path, *argv: str) -> str | None:
    """The program's output; None if it fails."""
    try:
        return call(argv, _SECONDS, cwd=base)
    except (OSError, CallFailed):
        return None
