"""Protects the pipelines that users copy: what the services' schemas say, and what their steps do.

What the steps install is not installed here: packages of the machine by apt, and a package of ours
that comes from an index. ``tests/packaging`` installs the wheel.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.system.packages import packages

from .conftest import EXAMPLES, Call

_GITHUB, _GITLAB = (EXAMPLES / "pipelines" / name for name in ("github.yml", "gitlab-ci.yml"))
_INSTALLS = re.compile(r"\b(apt-get|pip|sysctl)\b")


def read(file: Path) -> Any:
    return yaml.safe_load(file.read_text())["models" if file == _GITLAB else "jobs"]


def commands(file: Path) -> Iterator[str]:
    """Each step's shell text, in order."""
    if file == _GITLAB:
        yield from (*read(file)["before_script"], *read(file)["script"])
    else:
        yield from (step["run"] for step in read(file)["models"]["steps"] if "run" in step)


def work(file: Path) -> list[str]:
    return [text.strip() for text in commands(file) if not _INSTALLS.search(text)]


@pytest.mark.parametrize(
    ("file", "schema"),
    [(_GITHUB, "github-workflows"), (_GITLAB, "gitlab-ci")],
    ids=lambda p: str(p),
)
def test_the_services_schema(file: Path, schema: str) -> None:
    argv = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    done = subprocess.run([*argv, str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("file", [_GITHUB, _GITLAB], ids=lambda p: p.name)
def test_what_runs_need_is_installed(file: Path) -> None:
    """What docker/packages.txt has for them, but for what these machines have by themselves."""
    said = set(" ".join(commands(file)).split())
    there = {"ca-certificates", "python3", "python3-venv", "util-linux"}
    wanted = {name for name, package in packages().items() if package.purpose == "run"}
    assert not wanted - there - said


def test_the_steps_work(call: Call, repository: Path) -> None:
    """As a runner does it: a shell for each step, stopped by the first command that fails. Both
    pipelines have the same steps."""
    assert work(_GITHUB) == work(_GITLAB)

    for text in work(_GITHUB):
        done = call(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text], repository, CI="true"
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
    junit = (repository / "models.xml").read_text()
    assert 'tests="2"' in junit
    assert 'failures="0"' in junit
