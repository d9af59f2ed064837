"""System packages: what each is for, and how this system installs it.

``docker/packages.txt`` is the one list. It has Debian's names, and next to them Ubuntu's and
Fedora's.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from harness.system import paths

INSTALLED_ON_FIRST_USE = ("linux", "executorch")
_APT, _DNF = "apt-get install", "dnf install"
# By system, in the order of the list's columns; in a sentence a name is capitalised.
INSTALLERS: Mapping[str, str] = {"debian": _APT, "ubuntu": _APT, "fedora": _DNF}


@dataclass(frozen=True)
class Package:
    """``names``: by system ("debian", "ubuntu", "fedora"); a system without the package has
    none."""

    purpose: str
    names: Mapping[str, str]


@cache
def packages() -> Mapping[str, Package]:
    """By Debian's name."""
    lines = (paths.data_root() / "docker" / "packages.txt").read_text().splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return {
        names[0]: Package(
            purpose, {s: n for s, n in zip(INSTALLERS, names, strict=True) if n != "-"}
        )
        for purpose, *names in rows
    }


def purpose_of(debian: str) -> str:
    return packages()[debian].purpose


def install(debian: str) -> bool:
    """Installs a package with the others of its purpose, if its purpose is installed on first use.

    Works only in a clone, whose ``./hil`` installs system packages, and never with
    ``$HIL_NO_SYSTEM_PACKAGES``. Progress goes to standard error. Returns whether the installation
    succeeded.
    """
    purpose = purpose_of(debian)
    root = paths.import_root()
    script = root / "scripts" / "install-packages.sh"
    if purpose not in INSTALLED_ON_FIRST_USE or not script.is_file():
        return False
    if (
        os.environ.get("HIL_NO_SYSTEM_PACKAGES") == "1"
        or INSTALLERS.get(this_system() or "") != _APT
    ):
        return False
    log = paths.state_dir() / "bootstrap.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    command = ["sh", str(script), str(root), str(log), ".", purpose]  # all names of the purpose
    return subprocess.run(command, stdout=sys.stderr, check=False).returncode == 0


def with_its_kind(debian: str) -> tuple[str, ...]:
    """The package; for Linux targets all packages that they need, so that nobody has to find them
    one by one."""
    purpose = purpose_of(debian)
    if purpose != "linux":
        return (debian,)
    return tuple(name for name, package in packages().items() if package.purpose == purpose)


def how_to_get(*debian: str) -> str:
    """The command that installs these packages (Debian's names) on this system, or, on an unknown
    system, the commands for all known ones."""
    system = this_system()
    if system is not None:
        none = f"{system.capitalize()} has no package for {', '.join(debian)}"
        return _command(system, debian) or none
    lines: dict[str, list[str]] = {}
    for each in INSTALLERS:
        if command := _command(each, debian):
            lines.setdefault(command, []).append(each.capitalize())
    return "; ".join(f"{' and '.join(names)}: {command}" for command, names in lines.items())


def _command(system: str, debian: tuple[str, ...]) -> str:
    named = [packages()[name].names.get(system) for name in debian]
    there = [name for name in dict.fromkeys(named) if name is not None]
    return " ".join((INSTALLERS[system], *there)) if there else ""


def this_system() -> str | None:
    """The system of INSTALLERS that os-release(5) names in ID or ID_LIKE, or None."""
    try:
        said = platform.freedesktop_os_release()
    except OSError:
        return None
    like = [*said["ID"].split(), *said.get("ID_LIKE", "").split()]
    return next((name for name in like if name in INSTALLERS), None)
