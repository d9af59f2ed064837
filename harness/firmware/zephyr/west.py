"""Builds an application with `west build` in a Zephyr workspace, in a tree that stays."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.core.errors import BuildError, UsageError
from harness.firmware.build_tree import BuildTree, SourcesChanged
from harness.firmware.source import RUNNER
from harness.firmware.step import ccache, ninja, run_step, take
from harness.firmware.zephyr.workspace import Workspace
from harness.system import artifact_cache, paths
from harness.system.progress import Progress

# Zephyr's ELF and map, with the names of the other ports' products.
PRODUCTS = {"zephyr/zephyr.elf": RUNNER, "zephyr/zephyr.map": f"{RUNNER}.map"}
_NO_BUILD = 'unknown command "build"'


@dataclass(frozen=True)
class WestJob:
    """An application to build for a workspace's board. ``sources``: the files outside of it that
    the build may read. ``each``: options that change from build to build in one tree, which CMake
    then configures again. ``environment``: more variables. ``places``: see ``run_step``.
    ``folder``: of the tree and its logs; None: one of the cache."""

    workspace: Workspace
    application: Path
    options: Mapping[str, str]
    sources: Sequence[Path]
    each: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None

    @property
    def facts(self) -> list[object]:
        workspace = self.workspace
        return [
            str(workspace.base),
            workspace.board,
            str(self.application),
            workspace.compiler.environment,
            dict(self.options),
        ]

    @property
    def place(self) -> Path:
        """The folder of the tree and its logs; the sources' content does not change it."""
        return self.folder or paths.cache_dir("zephyr") / artifact_cache.key_of(self.facts)

    @property
    def tree(self) -> Path:
        return self.place / "build"

    def command(self) -> tuple[str, ...]:
        """Works from any directory, because ZEPHYR_BASE is set."""
        return (
            *(str(self.workspace.west), "build", "-b", self.workspace.board),
            *("-d", str(self.tree), str(self.application), "--"),
            *(f"-D{name}={value}" for name, value in {**self.options, **self.each}.items()),
        )


def build_in_tree(
    job: WestJob, target: str, progress: Progress, whose: str = "the harness"
) -> None:
    """Raises what ``run_step`` does, SourcesChanged, and UsageError if west has no ``build``. The
    caller holds the tree's lock."""
    workspace = job.workspace
    facts = [str(workspace.west), *job.facts, workspace.identity, workspace.compiler.name]
    environment = {**workspace.environment, **ccache(job.place), **job.environment}
    tree = BuildTree(job.place, facts, lambda: job.sources)
    with tree.building(SourcesChanged(whose)) as usable:
        argv = ninja(job.tree) if usable and not job.each else job.command()
        progress(f"{target}: building the runner with west")
        try:
            run_step("build", argv, job.place, target, progress, environment, job.places)
        except BuildError as error:
            log = job.place / "build.log"
            if _NO_BUILD in log.read_text("utf-8", "replace"):
                raise UsageError(
                    "west has no command `build` in this workspace: its manifest does not import "
                    "Zephyr's commands",
                    hint="give Zephyr's project in the manifest (west.yml) `west-commands: "
                    "scripts/west-commands.yml`, then `west update`; `west help` in "
                    f"{workspace.base} lists the commands",
                    path=log,
                    base=str(workspace.base),
                ) from error
            raise


def build_with_west(
    job: WestJob, directory: Path, target: str, progress: Progress, whose: str = "the harness"
) -> None:
    """Builds in the tree that stays, one process at a time, and copies its products."""
    job.place.mkdir(parents=True, exist_ok=True)
    with artifact_cache.locked(job.place, on_wait=lambda: progress(f"{target}: waiting")):
        build_in_tree(job, target, progress, whose)
        take(job.tree, PRODUCTS, directory)
        shutil.copyfile(job.place / "build.log", directory / "build.log")
