"""A built runner, and the cache of them.

``.hil/cache/firmware/<key>`` holds the ELF, its linker map, ``build.log``, ``firmware.json`` and,
written last, the seal of them all (``harness.system.artifact_cache``). The key covers everything
that decides what is built, so an equal key means the same program, and nothing is started.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.config.schema import Data, checked
from harness.config.target import Region, Target
from harness.core.errors import BuildError, InfraError, MalformedFile
from harness.firmware.source import (
    BUNDLED,
    Arithmetic,
    CheckoutFacts,
    FirmwareSource,
    built_with,
    source_named,
)
from harness.system import artifact_cache, paths
from harness.system.files import MALFORMED, disk_errors, read_json, sha256_of, write_whole
from harness.system.progress import Progress

if TYPE_CHECKING:
    from harness.formats.linker_map import MapRegion

RUNNER = "executor_runner"
STRIPPED = f"{RUNNER}.stripped"  # as a board stores it, where the port makes it
ROOT = "root"  # files that the guest's root file system must have, if any
STAMP = "firmware.json"
REGION = "HIL_REGION_"  # begins the CMake options of the memory map


@dataclass(frozen=True)
class Firmware(Data):
    """A built runner. ``options`` are the CMake options that made it.

    ``checkout``: the one it was built from, if the source needs one. ``sources``: digest of the
    bundled runner's source files. ``notes``: for a record. ``program``: sha256 of the program that
    is compiled into it; "" for a runner that reads programs.
    """

    directory: Path
    target: str
    key: str
    toolchain_id: str
    build_id: str  # hex, from the ELF's note; also printed by the bundled runner
    elf_sha256: str
    seconds: float  # of its build
    options: dict[str, str] = field(default_factory=dict)
    source: FirmwareSource = field(default_factory=lambda: source_named(BUNDLED))
    checkout: CheckoutFacts | None = None
    sources: str = ""
    notes: tuple[str, ...] = ()
    program: str = ""

    @property
    def one_set_per_process(self) -> bool:
        """Whether each start takes only one input set."""
        return self.source.one_set_per_process

    @property
    def takes_flags(self) -> bool:
        """Whether it has the command line of ExecuTorch's runner for Linux."""
        return self.source.takes_flags(self._port)

    @property
    def _port(self) -> str | None:
        return self.options.get("HIL_PORT")

    @property
    def printed_build_id(self) -> str | None:
        """The build id; None if the runner does not print it."""
        return self.build_id if self.source.prints_build_id else None

    @property
    def arithmetic(self) -> Arithmetic:
        """The arithmetic of its kernels; a checkout's are ExecuTorch's C++."""
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
        """All its ELF files, the program first."""
        libraries = () if self.root is None else sorted(self.root.rglob("*.so"))
        return (self.elf, *libraries)

    @property
    def stored_bytes(self) -> int | None:
        """The size of the file that a board stores; None if the port makes no such file."""
        stripped = self.directory / STRIPPED
        return stripped.stat().st_size if stripped.is_file() else None

    @property
    def map(self) -> Path:
        """The linker map."""
        return self.directory / f"{RUNNER}.map"

    @property
    def regions(self) -> tuple[Region | MapRegion, ...]:
        """The memory regions that it was linked for; a simulator may have less than the board. A
        checkout and Zephyr have their own linker scripts, whose regions are in the map.

        Raises UsageError when the map cannot be read.
        """
        if self.source.has_linker_script(self._port):
            from harness.formats.linker_map import read_map

            return _apart(read_map(self.map).regions)
        return linked_regions(self.options)


def _apart(regions: Sequence[MapRegion]) -> tuple[MapRegion, ...]:
    """The regions without those that another one covers: Zephyr's ITCM is also its FLASH."""
    kept: list[MapRegion] = []
    for region in regions:
        end = region.origin + region.size
        if not any(k.origin <= region.origin and end <= k.origin + k.size for k in kept):
            kept.append(region)
    return tuple(kept)


def linked_regions(options: Mapping[str, str]) -> tuple[Region, ...]:
    """The memory map that the CMake options of a firmware gave to the linker."""
    return tuple(
        Region(name=name.removeprefix(REGION), origin=int(at, 16), size=int(size, 16))
        for name, value in options.items()
        if name.startswith(REGION)
        for at, _, size in [value.partition(":")]
    )


def obtain(
    key: str,
    target: Target,
    build: Callable[[Path], Firmware],
    progress: Progress,
) -> Firmware:
    """The firmware of a key, from the cache or by ``build``, which gets an empty directory; one
    process builds, others wait.

    Another target may have built the firmware of this key. Raises what ``build`` does, DiskError,
    InfraError.
    """
    directory = paths.cache_dir("firmware") / key

    def fill(empty: Path) -> None:
        started = time.monotonic()
        firmware = build(empty)
        stamp = stamp_of(replace(firmware, seconds=round(time.monotonic() - started, 3)))
        write_whole(empty / STAMP, json.dumps(stamp, indent=1, sort_keys=True) + "\n")

    with disk_errors("building the runner"):
        artifact_cache.cached(directory, key, fill, lambda: progress(f"{target.name}: waiting"))
    firmware = read_firmware(directory)
    if firmware is None or firmware.key != key:
        raise InfraError(
            f"{directory} is sealed, and its {STAMP} cannot be read",
            hint="delete the directory; the firmware is then built again",
            path=directory,
        )
    return replace(firmware, target=target.name)


def read_firmware(directory: Path) -> Firmware | None:
    """The Firmware in a directory; None when there is none. Checks only the ELF's digest; the
    caller has checked the other files."""
    try:
        stamp = read_json(directory / STAMP)
        source = source_named(stamp.pop("source"))
        firmware = replace(checked(Firmware, {**stamp, "directory": directory}), source=source)
        whole = firmware.elf_sha256 == sha256_of(firmware.elf) and firmware.map.is_file()
    except (FileNotFoundError, NotADirectoryError, *MALFORMED):
        return None
    return firmware if whole else None


def stamp_of(firmware: Firmware) -> dict[str, Any]:
    """The content of ``firmware.json``, as plain data."""
    stamp = {**asdict(firmware), "source": firmware.source.name}
    del stamp["directory"]
    return stamp


def described(
    directory: Path, target: str, toolchain_id: str, options: Mapping[str, str], **facts: Any
) -> Firmware:
    """The runner built in ``directory``, whose name is its key. ``facts``: further fields. Raises
    BuildError for an ELF without a build id, SectionsOverlap for one that overwrites itself."""
    elf = directory / RUNNER
    require_disjoint(elf)
    if "build_id" not in facts:
        facts["build_id"] = build_id(elf)
    return Firmware(
        directory=directory,
        target=target,
        key=directory.name,
        toolchain_id=toolchain_id,
        elf_sha256=sha256_of(elf),
        seconds=0.0,  # ``obtain`` sets it
        options=dict(options),
        **facts,
    )


def require_disjoint(path: Path) -> None:
    """Raises SectionsOverlap when sections of a program lie over each other at run time."""
    from harness.formats.elf import read_elf
    from harness.formats.elf_overlap import SectionsOverlap, overlaps

    try:
        found = tuple(overlaps(read_elf(path)))
    except MalformedFile as error:
        raise BuildError(f"{path} is not an ELF file: {error.what}", path=path) from error
    if found:
        raise SectionsOverlap(path.name, found)


def build_id(elf: Path) -> str:
    """The GNU build id of an ELF, in hex. Raises BuildError when it has none."""
    from harness.formats.elf import read_elf

    try:
        identity = read_elf(elf).build_id
    except MalformedFile as error:
        raise BuildError(f"{elf} is not an ELF file: {error.what}", path=elf) from error
    if identity is None:
        hint = "link it with -Wl,--build-id=sha1"
        raise BuildError(f"{elf} has no build id", hint=hint, path=elf)
    return identity
