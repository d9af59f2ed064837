"""Builds an application with west, in a tree that is kept (``build_tree``).

A workspace, a board and options share the tree ``.hil/cache/zephyr/<tree>``: Zephyr and its C
library are a thousand files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.core.errors import BuildError, UsageError
from harness.firmware.build_tree import BuildTree, SourcesChanged
from harness.firmware.firmware import RUNNER
from harness.firmware.step import ccache, ninja, run_step
from harness.firmware.zephyr.workspace import Workspace
from harness.system import artifact_cache, paths
from harness.system.progress import Progress

# Zephyr's ELF and map, with the names of the other ports' products.
PRODUCTS = {"zephyr/zephyr.elf": RUNNER, "zephyr/zephyr.map": f"{RUNNER}.map"}
_ETHOSU = "HIL_ETHOSU"
_REGISTERS = "registers"
_NO_BUILD = 'unknown command "build"'


@dataclass(frozen=True)
class Job:
    """An application to build for a workspace's board. ``sources``: the harness's files that the
    build may read."""

    workspace: Workspace
    application: Path
    options: Mapping[str, str]
    sources: Sequence[Path]

    @property
    def place(self) -> Path:
        """The folder of the tree and its logs; the sources' content does not change it."""
        workspace = self.workspace
        facts = [
            str(workspace.base),
            workspace.board,
            str(self.application),
            workspace.compiler.environment,
            dict(self.options),
        ]
        return paths.cache_dir("zephyr") / artifact_cache.key_of(facts)

    @property
    def tree(self) -> Path:
        return self.place / "build"

    def command(self) -> tuple[str, ...]:
        """Works from any directory, because ZEPHYR_BASE is set."""
        return (
            *(str(self.workspace.west), "build", "-b", self.workspace.board),
            *("-d", str(self.tree), str(self.application), "--"),
            *(f"-D{name}={value}" for name, value in self.options.items()),
        )


def in_kconfig(options: Mapping[str, str]) -> dict[str, str]:
    """The runner's CMake options for Zephyr, where Kconfig has the Ethos-U backend
    (targets/runner/ports/zephyr/module/Kconfig). Kconfig also chooses the NPU's driver and its
    registers' address, by what the workspace has."""
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
    """Raises what ``run_step`` does, SourcesChanged, and UsageError if west has no ``build``. The
    caller holds the tree's lock."""
    workspace = job.workspace
    facts = [list(job.command()), workspace.identity, workspace.compiler.name]
    environment = {**workspace.environment, **ccache(job.place)}
    tree = BuildTree(job.place, facts, lambda: job.sources)
    with tree.building(SourcesChanged("the harness")) as usable:
        argv = ninja(job.tree) if usable else job.command()
        progress(f"{target}: building the runner with west")
        try:
            run_step("build", argv, job.place, target, progress, environment)
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
