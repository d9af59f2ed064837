"""A manifest for west with the projects that our targets are built of, and no others."""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.core.errors import UsageError

UPSTREAM = "https://github.com/zephyrproject-rtos"
FOLDER = "hil-manifest"  # in the workspace
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+(-rc[0-9]+)?")
_OLDEST = (4, 1)


@dataclass(frozen=True)
class Project:
    """``megabytes``: about what a fetch without history downloads, of Zephyr 4.1.0 (the release's
    files, compressed by gzip)."""

    name: str
    why: str
    megabytes: float


PROJECTS = (
    Project("zephyr", "the kernel, its boards and its build", 99),
    Project("cmsis", "Arm's headers, where Zephyr has not moved to CMSIS 6", 1),
    Project("cmsis_6", "Arm's headers for Cortex-M", 10),
    Project("picolibc", "the C library, where the toolchain has none that fits", 6),
    Project("hal_ethos_u", "the driver of the Ethos-U", 1),
)
MODULES = tuple(project.name for project in PROJECTS[1:])


def check_version(version: str) -> str:
    """Raises UsageError for what is no release of Zephyr, or one that is too old."""
    if not _VERSION.fullmatch(version):
        raise UsageError(
            f"{version!r} is not a version of Zephyr", hint="give one such as 4.1.0 or 4.2.0-rc1"
        )
    if is_old(version):
        raise UsageError(
            f"Zephyr {version} is too old for our targets",
            hint=f"give {'.'.join(map(str, _OLDEST))}.0 or a later one",
        )
    return version


def is_old(version: str) -> bool:
    """False for a version that nobody knows."""
    numbers = re.match(r"(\d+)\.(\d+)\.", version)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) < _OLDEST


def manifest(version: str, url: str) -> str:
    """The text of its west.yml: Zephyr's own manifest says which revision of a module fits."""
    allowed = "\n".join(f"          - {name}" for name in MODULES)
    return f"""\
# Made by `hil zephyr init`: Zephyr and the modules that the zephyr-* targets need.
manifest:
  remotes:
    - name: upstream
      url-base: {url}
  projects:
    - name: zephyr
      remote: upstream
      revision: v{version}
      west-commands: scripts/west-commands.yml
      import:
        name-allowlist:
{allowed}
  self:
    path: {FOLDER}
"""
