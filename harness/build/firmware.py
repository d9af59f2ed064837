"""Target and options -> Firmware: the runner, built by CMake and kept by content.

``.hil/cache/firmware/<key>`` holds the ELF, its linker map, ``build.log`` and, written last,
``firmware.json``. The key covers everything that decides what is built, so an equal key means
the same program, and CMake is not even started.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.build.arithmetic import Arithmetic, built_with
from harness.build.plan import BuildPlan, executorch_package, make_plan
from harness.build.source import CheckoutFacts, FirmwareSource, checkout_facts
from harness.errors import BuildError, InfraError
from harness.formats.damage import DamagedFile
from harness.system import paths, toolchain
from harness.system.files import disk_errors, sha256_of, write_whole
from harness.system.lease import in_use
from harness.system.progress import Progress, silent
from harness.target.loading import Region, Target

if TYPE_CHECKING:  # a firmware that is there needs nothing of what builds one
    from harness.build.zephyr import tree as zephyr_tree
    from harness.formats.linker_map import MapRegion

__all__ = ["Firmware", "build", "build_id", "executorch_package", "load_firmware"]

RUNNER = "executor_runner"
STRIPPED = f"{RUNNER}.stripped"  # as a board stores it, where the port makes it
ROOT = "root"  # what a root file system has to have for it, where that is anything
STAMP = "firmware.json"
_REGION = "HIL_REGION_"


class UnusedOptions(BuildError):
    """CMake was given options that nothing in the runner asks for."""

    def __init__(self, unused: Sequence[str], log: Path) -> None:
        self.unused = tuple(unused)
        super().__init__(
            f"the runner's CMake has no option {', '.join(unused)}", hint=f"see {log}", path=log
        )


class SourcesChanged(InfraError):
    """They were edited while they were built, so that nobody knows what the ELF holds."""

    def __init__(self) -> None:
        super().__init__("the runner's sources changed while it was built", hint="run it again")


@dataclass(frozen=True)
class Firmware:
    """A built runner. ``options`` are the CMake options that made it.

    ``checkout``: what it was built from when the source is not ours. ``sources``: digest of the
    files that it was built from when it is. ``notes``: what a record should say of it.
    """

    directory: Path
    target: str
    variant: str
    key: str
    toolchain_id: str
    build_id: str  # hex, from the ELF's note; also printed by our runner
    elf_sha256: str
    seconds: float  # what building it took
    options: dict[str, str] = field(default_factory=dict)
    source: FirmwareSource = FirmwareSource.BUNDLED
    checkout: CheckoutFacts | None = None
    sources: str = ""
    notes: tuple[str, ...] = ()

    @property
    def one_set_per_process(self) -> bool:
        """ExecuTorch's runner takes one input set, ours any number of them."""
        return self.source is FirmwareSource.EXECUTORCH

    @property
    def takes_flags(self) -> bool:
        """ExecuTorch's runner for Linux has a command line of its own."""
        return self.source is FirmwareSource.EXECUTORCH and self._port == "linux"

    @property
    def _port(self) -> str | None:
        return self.options.get("HIL_PORT")

    @property
    def arithmetic(self) -> Arithmetic:
        """Whose arithmetic its kernels follow; a checkout's are ExecuTorch's C++."""
        return built_with(self.options)

    @property
    def elf(self) -> Path:
        return self.directory / RUNNER

    @property
    def root(self) -> Path | None:
        """A part of a root file system, the shared libraries of the program; None for a program
        that is one file."""
        folder = self.directory / ROOT
        return folder if folder.is_dir() else None

    @property
    def images(self) -> tuple[Path, ...]:
        """Every ELF file of it."""
        libraries = () if self.root is None else sorted(self.root.rglob("*.so"))
        return (self.elf, *libraries)

    @property
    def stored_bytes(self) -> int | None:
        """The size of the file as a board stores it, where the port makes such a file."""
        stripped = self.directory / STRIPPED
        return stripped.stat().st_size if stripped.is_file() else None

    @property
    def map(self) -> Path:
        """The linker map."""
        return self.directory / f"{RUNNER}.map"

    @property
    def regions(self) -> tuple[Region | MapRegion, ...]:
        """The memory it was linked for; a simulator may have less of it than the board. A
        checkout and Zephyr have their own linker scripts, whose regions are in the map.

        Raises UsageError when the map cannot be read.
        """
        own_script = self.source is FirmwareSource.EXECUTORCH and self._port != "linux"
        if own_script or self._port == "zephyr":
            from harness.formats.linker_map import read_regions

            return _apart(read_regions(self.map))
        return linked_regions(self.options)


def _apart(regions: Sequence[MapRegion]) -> tuple[MapRegion, ...]:
    """Without those that another one covers: Zephyr's ITCM is also its FLASH."""
    kept: list[MapRegion] = []
    for region in regions:
        end = region.origin + region.size
        if not any(k.origin <= region.origin and end <= k.origin + k.size for k in kept):
            kept.append(region)
    return tuple(kept)


def linked_regions(options: Mapping[str, str]) -> tuple[Region, ...]:
    """The memory map that the CMake options of a firmware gave to the linker."""
    return tuple(
        Region(name=name.removeprefix(_REGION), origin=int(at, 16), size=int(size, 16))
        for name, value in options.items()
        if name.startswith(_REGION)
        for at, _, size in [value.partition(":")]
    )


def build(
    target: Target,
    *,
    variant: str | None = None,
    options: Mapping[str, str] | None = None,
    dev_mode: bool = False,
    progress: Progress = silent,
) -> Firmware:
    """The runner for a target, from the cache or built now; one process builds, others wait.

    ``target`` is as it is on the simulator that the runner is for (``Chosen.target``): some want
    a runner of their own. ``options`` are CMake options laid over the target's and the variant's;
    ``dev_mode``: see ``find_workspace``.
    Raises BuildError, LinkError, ToolMissing, InfraError (disk full), UsageError (no such variant
    or option).
    """
    name = variant or target.default_variant
    plan = make_plan(target, name, options or {}, dev_mode=dev_mode)
    key = plan.key()
    cache = paths.cache_dir("firmware")
    if (ready := load_firmware(cache / key)) is not None:
        return _of(ready, plan, target.name, name)
    from harness.build.step import acquire

    with disk_errors("preparing the firmware cache"):
        cache.mkdir(parents=True, exist_ok=True)
        lock = acquire(cache / f"{key}.lock", lambda: progress(f"{target.name}: waiting"))
    try:
        if (ready := load_firmware(cache / key)) is not None:
            return _of(ready, plan, target.name, name)
        with disk_errors("building the runner"):
            return _build(plan, cache / key, target.name, name, progress)
    finally:
        lock.release()


def _of(firmware: Firmware, plan: BuildPlan, target: str, variant: str) -> Firmware:
    """Firmware of equal content may have been made for another target; and before its sources were
    kept, which an equal key says they are."""
    if not firmware.sources:
        firmware = replace(firmware, sources=plan.content())
        with suppress(OSError):  # a cache that cannot be written is asked again
            write_stamp(firmware)
    return replace(firmware, target=target, variant=variant)


def load_firmware(directory: Path) -> Firmware | None:
    """The Firmware in a directory; None when there is none, or not all of it."""
    in_use(directory)
    try:
        firmware = _from_stamp(json.loads((directory / STAMP).read_text()), directory)
        complete = firmware.elf_sha256 == sha256_of(firmware.elf) and firmware.map.is_file()
        complete = complete and (firmware.source is not FirmwareSource.WHEEL or bool(firmware.root))
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError, KeyError):
        return None
    return firmware if complete else None


def write_stamp(firmware: Firmware) -> None:
    """Last of all that a build leaves: a directory without it is not a Firmware."""
    text = json.dumps(stamp_of(firmware), indent=1, sort_keys=True) + "\n"
    write_whole(firmware.directory / STAMP, text)


def stamp_of(firmware: Firmware) -> dict[str, Any]:
    """What the stamp says, as plain data."""
    stamp = {name: value for name, value in vars(firmware).items() if name != "directory"}
    if firmware.checkout is not None:
        stamp["checkout"] = firmware.checkout.to_fields()
    return stamp


def _from_stamp(stamp: dict[str, Any], directory: Path) -> Firmware:
    """Stamps of before there were checkouts have neither source nor checkout."""
    source = FirmwareSource(stamp.pop("source", FirmwareSource.BUNDLED))
    checkout = checkout_facts(stamp.pop("checkout", None))
    notes = tuple(stamp.pop("notes", ()))
    return Firmware(**stamp, directory=directory, source=source, checkout=checkout, notes=notes)


def _build(
    plan: BuildPlan, directory: Path, target: str, variant: str, progress: Progress
) -> Firmware:
    from harness.build.step import clear

    started = time.monotonic()
    clear(directory)
    directory.mkdir(parents=True)
    if (job := west_job(plan)) is not None:
        return _with_west(plan, job, directory, target, variant, progress)
    tree = directory / "build"
    tree.mkdir()
    _with_cmake(plan, tree, directory, target, progress)
    if plan.key() != directory.name:
        raise SourcesChanged
    firmware = _collect(plan, tree, directory, target, variant, time.monotonic() - started)
    shutil.rmtree(tree)
    return firmware


def _with_cmake(
    plan: BuildPlan, tree: Path, directory: Path, target: str, progress: Progress
) -> None:
    from harness.build import compiler_cache
    from harness.build import log as build_log
    from harness.build.step import run_step
    from harness.link.line import fileapi

    fileapi.ask(tree)  # so that a failed link can be explained by the names of targets
    progress(f"{target}: configuring the runner")
    environment = compiler_cache.environment(tree)
    run_step("configure", _configure(plan, tree), directory, target, progress, environment)
    said = (directory / "configure.log").read_text("utf-8", "replace")
    # a port need not use every region of its target
    unused = [n for n in build_log.unused_options(said) if not n.startswith(_REGION)]
    if unused:
        raise UnusedOptions(unused, directory / "configure.log")
    ninja = str(toolchain.require("ninja").path)
    jobs = str(len(os.sched_getaffinity(0)))
    argv = (ninja, "-C", str(tree), "-j", jobs, RUNNER)
    run_step("build", argv, directory, target, progress, environment)


def west_job(plan: BuildPlan) -> zephyr_tree.Job | None:
    """How the runner is built in a Zephyr workspace; None where it is not."""
    if plan.zephyr is None:
        return None
    from harness.build.zephyr import tree as zephyr_tree

    options = {"HIL_SCHEMA_DIR": str(plan.schemas / "schema"), **plan.options}
    sample = plan.sources / "ports" / "zephyr" / "sample"
    return zephyr_tree.Job(plan.zephyr, sample, options, plan.inputs())


def _with_west(
    plan: BuildPlan,
    job: zephyr_tree.Job,
    directory: Path,
    target: str,
    variant: str,
    progress: Progress,
) -> Firmware:
    """In the tree that stays; one process builds there."""
    from harness.build.step import acquire
    from harness.build.zephyr import tree as zephyr_tree

    started = time.monotonic()
    job.place.mkdir(parents=True, exist_ok=True)
    lock = acquire(job.place.with_suffix(".lock"), lambda: progress(f"{target}: waiting"))
    try:
        zephyr_tree.build_in_tree(job, target, progress)
        if plan.key() != directory.name:
            zephyr_tree.unsettle(job)
            raise SourcesChanged
        zephyr_tree.take_products(job.tree, RUNNER)
        shutil.copyfile(job.place / "build.log", directory / "build.log")
        seconds = time.monotonic() - started
        return _collect(plan, job.tree, directory, target, variant, seconds)
    finally:
        lock.release()


def _configure(plan: BuildPlan, tree: Path) -> tuple[str, ...]:
    from harness.build import compiler_cache

    toolchain.require("ninja")
    options = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_RUNTIME_OUTPUT_DIRECTORY": str(tree),
        "HIL_SCHEMA_DIR": str(plan.schemas / "schema"),
        **compiler_cache.launchers("CXX"),
        **plan.options,
    }
    if plan.toolchain_file is not None:
        options["CMAKE_TOOLCHAIN_FILE"] = str(plan.toolchain_file)
    else:
        options["CMAKE_CXX_COMPILER"] = str(toolchain.require("g++").path)
    return (
        str(toolchain.require("cmake").path),
        *("-S", str(plan.sources)),
        *("-B", str(tree)),
        *("-G", "Ninja"),
        *(f"-D{name}={value}" for name, value in options.items()),
    )


def _collect(
    plan: BuildPlan, tree: Path, directory: Path, target: str, variant: str, seconds: float
) -> Firmware:
    """Move the products to their place and write the stamp, last."""
    for name in (RUNNER, f"{RUNNER}.map"):
        if not (tree / name).is_file():
            raise BuildError(f"the build ended well but left no {name}", path=tree)
        (tree / name).replace(directory / name)
    if (tree / STRIPPED).is_file():
        (tree / STRIPPED).replace(directory / STRIPPED)
    firmware = Firmware(
        directory=directory,
        target=target,
        variant=variant,
        key=directory.name,
        toolchain_id=plan.toolchain_id,
        build_id=build_id(directory / RUNNER),
        elf_sha256=sha256_of(directory / RUNNER),
        seconds=round(seconds, 3),
        options=plan.options,
        sources=plan.content(),
    )
    write_stamp(firmware)
    return firmware


def build_id(elf: Path) -> str:
    """The GNU build id of an ELF, in hex. Raises BuildError when it has none."""
    from harness.formats.elf import read_elf

    try:
        found = read_elf(elf).build_id
    except DamagedFile as error:
        raise BuildError(f"{elf} is not an ELF file: {error.what}", path=elf) from error
    if found is None:
        hint = "link it with -Wl,--build-id=sha1"
        raise BuildError(f"{elf} has no build id", hint=hint, path=elf)
    return found
