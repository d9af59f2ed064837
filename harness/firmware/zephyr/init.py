"""`hil zephyr init`: makes a workspace with the projects that the zephyr-* targets need.

West fetches them without history. Projects that exist are kept, so the same command continues where
an earlier one stopped.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.core.errors import InfraError, UsageError
from harness.core.tables import read_table
from harness.firmware.zephyr.workspace import find_west, is_zephyr
from harness.system import toolchain
from harness.system.artifact_cache import locked
from harness.system.call import ENGLISH
from harness.system.files import disk_errors, text_of, write_whole
from harness.system.git import GitFailed, git, remove_locks
from harness.system.process import Bounds, Stop, Watch, run
from harness.system.progress import Progress

ENVIRONMENT = ".venv"  # in the workspace
_REQUIREMENTS = "zephyr/scripts/requirements-base.txt"
_PYTHON_MEGABYTES = 30  # of its packages
_BOUNDS = Bounds(4 * 3600.0, 900.0)
# git's and west's words for a remote that does not answer, or has no such thing.
_FATAL = re.compile(r"^(?:fatal|error|ERROR): .*$", re.MULTILINE)
_FAILED = re.compile(r"^ERROR: update failed for projects? (.+)$", re.MULTILINE)
_PROJECT = re.compile(rb"^=== updating (\S+)", re.MULTILINE)
UPSTREAM = "https://github.com/zephyrproject-rtos"
FOLDER = "hil-manifest"  # in the workspace
_OURS = {FOLDER, f"{FOLDER}.lock"}  # made before the manifest
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+(-rc[0-9]+)?")
_OLDEST = (4, 1)


@dataclass(frozen=True)
class InitPlan:
    """The steps that make a workspace in ``folder``."""

    folder: Path
    version: str
    url: str
    west: Path
    packages: bool  # whether Zephyr's Python packages are installed, into ENVIRONMENT

    @property
    def base(self) -> Path:
        return self.folder / "zephyr"

    @property
    def manifest(self) -> Path:
        return self.folder / FOLDER / "west.yml"

    @property
    def megabytes(self) -> float:
        return sum(p.megabytes for p in PROJECTS) + _PYTHON_MEGABYTES * self.packages

    def steps(self) -> dict[str, tuple[str, ...]]:
        """The commands that are still to run, in order, by what each does."""
        west = str(self.west)
        found: dict[str, tuple[str, ...]] = {}
        if not (self.folder / ".west" / "config").is_file():
            found["making the workspace"] = (west, "init", "-l", str(self.folder / FOLDER))
        found["fetching"] = (west, "update", "--narrow", "--fetch-opt=--depth=1")
        if self.packages:
            python = str(self.folder / ENVIRONMENT / "bin" / "python")
            if not (self.folder / ENVIRONMENT / "bin" / "pip").is_file():
                venv = (sys.executable, "-m", "venv", ENVIRONMENT)
                found["making its Python environment"] = venv
            pip = (python, "-m", "pip", "install", "--disable-pip-version-check")
            found["installing Python packages"] = (*pip, "-r", _REQUIREMENTS)
        return found

    def summary(self) -> dict[str, Any]:
        names = {p.name: "CMSIS_6" if p.name == "cmsis_6" else p.name for p in PROJECTS}
        rows = [(p.name, p.why, f"{self.url}/{names[p.name]}", p.megabytes) for p in PROJECTS]
        if self.packages:
            why = f"{_REQUIREMENTS}, into {ENVIRONMENT}"
            rows.append(("Python packages", why, "the package index of pip", _PYTHON_MEGABYTES))
        keys = ("what", "why", "from", "megabytes")
        return {
            "workspace": str(self.folder),
            "zephyr": self.version,
            "manifest": str(self.manifest),
            "downloads": [dict(zip(keys, row, strict=True)) for row in rows],
            "megabytes": self.megabytes,
            "commands": [" ".join(command) for command in self.steps().values()],
            "activate": self.activation(),
        }

    def activation(self) -> list[str]:
        """The shell commands that a user runs before a build."""
        python = [f". {self.folder / ENVIRONMENT}/bin/activate"] if self.packages else []
        return [*python, f"export ZEPHYR_BASE={self.base}"]


def plan_init(
    folder: Path,
    version: str,
    url: str = UPSTREAM,
    *,
    packages: bool = True,
    dry_run: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> InitPlan:
    """Writes nothing. ``dry_run``: the plan is only shown, so no tool has to be there. Raises
    UsageError, ToolMissing (west, git)."""
    folder = folder.absolute()
    if re.search(r"[\s'\"#]", url) or "://" not in url:
        raise UsageError(
            f"{url!r} is not a remote", hint=f"give what stands before a repository: {UPSTREAM}"
        )
    west = Path("west") if dry_run else find_west(environ)
    if not _VERSION.fullmatch(version):
        raise UsageError(
            f"{version!r} is not a version of Zephyr", hint="give one such as 4.1.0 or 4.2.0-rc1"
        )
    if is_old(version):
        raise UsageError(
            f"Zephyr {version} is too old for our targets",
            hint=f"give {'.'.join(map(str, _OLDEST))}.0 or a later one",
        )
    plan = InitPlan(folder, version, url.rstrip("/"), west, packages)
    if not dry_run:
        toolchain.require("git")
    outer = next((p for p in folder.parents if (p / ".west" / "config").is_file()), None)
    if outer is not None:
        raise UsageError(
            f"{folder} is inside the west workspace {outer}",
            hint="west refuses a workspace inside another one: name a folder outside it",
            path=folder,
            outer=str(outer),
        )
    if plan.manifest.is_file():
        if plan.manifest.read_text("utf-8", "replace") != manifest(plan.version, plan.url):
            raise UsageError(
                f"{folder} was made with another --zephyr or --url",
                hint=f"give what {plan.manifest} says, or name a new folder",
                path=folder,
                manifest=str(plan.manifest),
            )
    elif folder.exists() and (not folder.is_dir() or {f.name for f in folder.iterdir()} - _OURS):
        raise UsageError(
            f"{folder} is not empty, and `hil zephyr init` did not make it",
            hint="name a new folder; a workspace of your own is examined by `hil doctor` when "
            "ZEPHYR_BASE names its zephyr folder",
            path=folder,
        )
    return plan


def init(plan: InitPlan, progress: Progress) -> None:
    """Makes the workspace. Raises InfraError."""
    with disk_errors("writing the workspace's manifest"):
        plan.manifest.parent.mkdir(parents=True, exist_ok=True)
        with locked(plan.manifest.parent):
            unfinished = plan.manifest.with_name("unfinished")  # this one was never whole
            if not plan.manifest.is_file():
                unfinished.touch()
            write_whole(plan.manifest, manifest(plan.version, plan.url))
            for depth in ("zephyr", "modules/*", "modules/*/*", "modules/*/*/*"):
                for git_dir in plan.folder.glob(f"{depth}/.git"):
                    _repair(git_dir, half_written=unfinished.exists())
            for what, command in plan.steps().items():
                _step(plan, what, command, progress)
            unfinished.unlink(missing_ok=True)
    if not is_zephyr(plan.base):
        raise InfraError(
            f"west ended well, and {plan.base} is not Zephyr",
            hint=f"see what {plan.url}/zephyr has under the tag v{plan.version}",
            path=plan.base,
        )


def _repair(git_dir: Path, *, half_written: bool) -> None:
    """After a kill, which west's git did not survive: its locks, and files that it did not write.
    Another one's edits are kept."""
    remove_locks(git_dir)
    if half_written:
        with suppress(GitFailed):  # no commit yet
            git(git_dir.parent, "reset", "--hard", "--quiet")


def _step(plan: InitPlan, what: str, command: Sequence[str], progress: Progress) -> None:
    progress(what)
    log = plan.manifest.with_name(f"{what.replace(' ', '-')}.log")
    names: list[str] = []
    begun = b""

    def watch(data: bytes) -> None:
        nonlocal begun
        whole, newline, begun = (begun + data).rpartition(b"\n")  # data may end within a line
        for project in _PROJECT.findall(whole + newline):
            names.append(project.decode("utf-8", "replace"))
            progress(f"fetching {names[-1]} {len(names)}/{len(PROJECTS)}")

    ended = run(
        command,
        cwd=plan.folder,
        environment=_environment(plan.url),
        console=log,
        bounds=_BOUNDS,
        watch=Watch(watch),
    )
    if ended.stop is Stop.EXITED and ended.status == 0:
        return
    output = text_of(log)
    errors = _FATAL.findall(output)  # git's precedes west's
    own = (line for line in errors if not line.startswith("ERROR: update failed"))
    said = next(own, (output.strip().splitlines() or ["it says nothing"])[-1])
    failed = _FAILED.search(output)
    if project := failed[1] if failed else next(reversed(names), None):
        said = f"{project}: {said}"
    if ended.stop is not Stop.EXITED:
        said = f"it was stopped ({ended.stop})"
    raise InfraError(
        f"`{' '.join(command)}` failed: {said}",
        hint=f"when {plan.url} cannot be reached, --url names another remote; the same command "
        "again goes on from here",
        path=log,
        command=tuple(command),
        said=said,
    )


def _environment(url: str) -> dict[str, str]:
    """The user's environment (proxies, credentials) without the workspace that is in use. Replaces
    the remote in Zephyr's manifest by ``url`` (git-config(1), insteadOf). Git never asks for a
    password."""
    kept = {n: v for n, v in os.environ.items() if n not in ("ZEPHYR_BASE", "GIT_DIR")}
    kept |= {**ENGLISH, "GIT_TERMINAL_PROMPT": "0"}
    if url == UPSTREAM:
        return kept
    at = int(kept.get("GIT_CONFIG_COUNT", "0"))
    return {
        **kept,
        "GIT_CONFIG_COUNT": str(at + 1),
        f"GIT_CONFIG_KEY_{at}": f"url.{url}.insteadOf",
        f"GIT_CONFIG_VALUE_{at}": UPSTREAM,
    }


@dataclass(frozen=True)
class Project:
    """``megabytes``: roughly the download without history, of Zephyr 4.1.0 (gzipped files)."""

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


def is_old(version: str) -> bool:
    """False for an unknown version."""
    numbers = re.match(r"(\d+)\.(\d+)\.", version)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) < _OLDEST


def manifest(version: str, url: str) -> str:
    """The text of west.yml."""
    allowed = "\n".join(f"          - {name}" for name in MODULES)
    words = {"version": version, "url": url, "allowed": allowed, "folder": FOLDER}
    return str(read_table(__file__)["manifest"].format(**words))
