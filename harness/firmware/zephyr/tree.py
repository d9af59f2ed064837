"""`west build` of our sample application in a tree that stays.

``.hil/cache/zephyr/<tree>`` is one build tree for a workspace, a board and the options. Zephyr and
its C library are a thousand files, so that after an edit of the runner only what depends on it is
built. ninja compares times: where that could deceive it, the tree is begun from nothing.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.core.errors import BuildError, UsageError
from harness.firmware import step
from harness.firmware.step import run_step
from harness.firmware.zephyr.workspace import Workspace
from harness.system import artifact_cache, paths, toolchain
from harness.system.files import sha256_of, write_whole
from harness.system.locks import in_use
from harness.system.progress import Progress

_SETTLED = "settled.json"
_CLOCK = ".clock"
_ETHOSU = "HIL_ETHOSU"
_REGISTERS = "registers"
_NO_BUILD = 'unknown command "build"'


class WestCannotBuild(UsageError):
    """The workspace's west has no command `build`."""

    def __init__(self, workspace: Workspace, log: Path) -> None:
        self.base = str(workspace.base)
        super().__init__(
            "west has no command `build` in this workspace: its manifest does not import Zephyr's "
            "commands",
            hint="give Zephyr's project in the manifest (west.yml) `west-commands: "
            f"scripts/west-commands.yml`, then `west update`; `west help` in {workspace.base} "
            "lists the commands",
            path=log,
        )


@dataclass(frozen=True)
class Job:
    """What is built: an application, for a workspace's board. ``sources``: every file of ours
    that the build may read."""

    workspace: Workspace
    application: Path
    options: Mapping[str, str]
    sources: Sequence[Path]

    @property
    def place(self) -> Path:
        """Where the tree is and its logs are; equal whatever is in the sources."""
        workspace = self.workspace
        facts = [
            str(workspace.base),
            workspace.board,
            str(self.application),
            workspace.compiler.environment,
            dict(self.options),
        ]
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
        return paths.cache_dir("zephyr") / digest.hexdigest()[:32]

    @property
    def tree(self) -> Path:
        return self.place / "build"

    def command(self) -> tuple[str, ...]:
        """From any directory, thanks to ZEPHYR_BASE."""
        return (
            *(str(self.workspace.west), "build", "-b", self.workspace.board),
            *("-d", str(self.tree), str(self.application), "--"),
            *(f"-D{name}={value}" for name, value in self.options.items()),
        )


def in_kconfig(options: Mapping[str, str]) -> dict[str, str]:
    """The CMake options of our runner for Zephyr: there the Ethos-U backend is Kconfig's
    (targets/runner/ports/zephyr/module/Kconfig). Whose driver is at the NPU's registers, and where
    they are, is decided there, by what the workspace has."""
    kept = {name: value for name, value in options.items() if not name.startswith(_ETHOSU)}
    if options.get(_ETHOSU) != "ON":
        return kept
    kept[f"CONFIG_{_ETHOSU}"] = "y"
    scratch = f"{_ETHOSU}_FAST_SCRATCH_BYTES"
    kept[f"CONFIG_{scratch}"] = options.get(scratch, "0")
    driver = options.get(f"{_ETHOSU}_DRIVER", _REGISTERS)
    if driver != _REGISTERS:
        kept[f"CONFIG_{_ETHOSU}_{driver.upper()}"] = "y"
    return kept


def build_in_tree(job: Job, target: str, progress: Progress) -> None:
    """Raises what ``run_step`` does, and WestCannotBuild. The caller has the tree's lock."""
    from harness.link import fileapi

    place = job.place
    in_use(place)
    now = {str(path): sha256_of(path) for path in job.sources}
    argv, environment = job.command(), _environment(job)
    if _usable(job, now):
        argv = (str(toolchain.locate("ninja")), "-C", str(job.tree))
    else:
        artifact_cache.clear(job.tree)
        job.tree.mkdir(parents=True)
        fileapi.ask(job.tree)  # so that a failed link can be explained by the names of targets
    (place / _SETTLED).unlink(missing_ok=True)
    (place / _CLOCK).touch()
    progress(f"{target}: building the runner with west")
    try:
        run_step("build", argv, place, target, progress, environment)
    except BuildError as error:
        if _NO_BUILD in (place / "build.log").read_text("utf-8", "replace"):
            raise WestCannotBuild(job.workspace, place / "build.log") from error
        _settle(job, now)
        raise
    _settle(job, now)


def unsettle(job: Job) -> None:
    """The tree is begun from nothing the next time."""
    (job.place / _SETTLED).unlink(missing_ok=True)


def take_products(tree: Path, name: str) -> None:
    """Zephyr's ELF and map under the names of the other ports'."""
    for made, wanted in (("zephyr.elf", name), ("zephyr.map", f"{name}.map")):
        if not (tree / "zephyr" / made).is_file():
            raise BuildError(f"west ended well but left no zephyr/{made}", path=tree)
        shutil.copy2(tree / "zephyr" / made, tree / wanted)


def _environment(job: Job) -> dict[str, str]:
    """Equal compilations are shared between trees, whose own paths do not count."""
    return {**job.workspace.environment, **step.environment(job.place)}


def _facts(job: Job) -> list[object]:
    return [list(job.command()), job.workspace.identity, job.workspace.compiler.name]


def _usable(job: Job, now: Mapping[str, str]) -> bool:
    """Whether ninja sees all that changed: a file of ours whose content is another one has to be
    younger than the last build. Another Zephyr is a build from nothing."""
    try:
        settled = json.loads((job.place / _SETTLED).read_text())
        facts, before, moment = settled["facts"], settled["sources"], int(settled["moment"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
    if facts != json.loads(json.dumps(_facts(job))) or not (job.tree / "build.ninja").is_file():
        return False
    changed = (path for path, digest in now.items() if before.get(path) != digest)
    return all(Path(path).stat().st_mtime_ns > moment for path in changed)


def _settle(job: Job, sources: Mapping[str, str]) -> None:
    """After a build that ended by itself, well or not. ``moment``: when it began."""
    moment = (job.place / _CLOCK).stat().st_mtime_ns
    state = {"facts": _facts(job), "sources": dict(sources), "moment": moment}
    write_whole(job.place / _SETTLED, json.dumps(state))
