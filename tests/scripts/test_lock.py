"""Protects what ./hil installs: all that pyproject.toml asks for, in one version, with hashes."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PYTHONS = ("3.10", "3.11", "3.12", "3.13")


def project() -> dict[str, list[str]]:
    said = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = said["optional-dependencies"]
    run = [*said["dependencies"], *extras["export"], *extras["nightly"]]
    return {"run": run, "dev": [*run, *extras["dev"]]}


def locked(purpose: str, python: str) -> dict[str, str]:
    """Versions by name, as pip would choose them on x86-64 Linux."""
    system = {
        "python_version": python,
        "python_full_version": f"{python}.1",
        "sys_platform": "linux",
        "platform_machine": "x86_64",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "extra": "",
    }
    found: dict[str, str] = {}
    text = (ROOT / "scripts" / f"{purpose}.lock").read_text().replace("\\\n", " ")
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        named, *hashes = re.split(r"\s+--hash=", line)
        assert hashes, line
        assert all(word.startswith("sha256:") for word in hashes)
        requirement = Requirement(named)
        if requirement.marker is None or requirement.marker.evaluate(system):
            (version,) = requirement.specifier
            assert version.operator == "=="
            name = canonicalize_name(requirement.name)
            assert name not in found
            found[name] = version.version
    return found


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("purpose", ["run", "dev"])
def test_all_that_is_asked_for_is_locked(purpose: str, python: str) -> None:
    """`scripts/lock.sh` writes them again after a change of pyproject.toml."""
    versions = locked(purpose, python)
    assert "torch" not in versions  # its index is PyTorch's
    for text in project()[purpose]:
        wanted = Requirement(text)
        name = canonicalize_name(wanted.name)
        if name == "torch" or (
            wanted.marker and not wanted.marker.evaluate({"python_version": python})
        ):
            continue
        assert name in versions, f"{text} is not locked: scripts/lock.sh"
        assert wanted.specifier.contains(versions[name]), f"{text}: scripts/lock.sh"


@pytest.mark.parametrize("python", PYTHONS)
def test_our_own_tests_run_with_what_users_have(python: str) -> None:
    run, dev = locked("run", python), locked("dev", python)
    assert run.items() <= dev.items()
    assert {"mypy", "ruff", "selenium"}.isdisjoint(run)


def test_torch_is_one_version_everywhere() -> None:
    bootstrap = (ROOT / "scripts" / "bootstrap.sh").read_text()
    (version,) = re.findall(r"^torch_version=(.*)$", bootstrap, re.MULTILINE)
    assert f"torch=={version}" in project()["run"]
