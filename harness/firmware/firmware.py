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

from harness.config.loading import Region, Target
from harness.config.schema import checked
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
class Firmware:
    """A built runner. ``options`` are the CMake options that made it.

    ``checkout``: what it was built from, of a source that needs one. ``sources``: digest of the
    files that the bundled one was built from. ``notes``: for a record.
    """

    directory: Path
    target: str
    variant: str
    key: str
    toolchain_id: str
    build_id: str  # hex, from the ELF's note; also printed by the bundled runner
    elf_sha256: str
    seconds: float  # what building it took
    options: dict[str, str] = field(default_factory=dict)
    source: FirmwareSource = field(default_factory=lambda: source_named(BUNDLED))
    checkout: CheckoutFacts | None = None
    sources: str = ""
    notes: tuple[str, ...] = ()

    @property
    def one_set_per_process(self) -> bool:
        """Each start takes one input set, not any number of them."""
        return self.source.one_set_per_process

    @property
    def takes_flags(self) -> bool:
        """ExecuTorch's runner for Linux has a command line of its own."""
        return self.source.takes_flags(self._port)

    @property
    def _port(self) -> str | None:
        return self.options.get("HIL_PORT")

    @property
    def printed_build_id(self) -> str | None:
        """None where the runner does not print it."""
        return self.build_id if self.source.prints_build_id else None

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
        if self.source.has_linker_script(self._port):
            from harness.formats.linker_map import read_map

            return _apart(read_map(self.map).regions)
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
    variant: str | None = None,
) -> Firmware:
    """The firmware of a key, from the cache or by ``build``, which is given an empty directory;
    one process builds, others wait.

    Firmware of an equal key may have been built for another target. Raises what ``build`` does,
    DiskError, LockHeld.
    """
    directory = paths.cache_dir("firmware") / key
    name = variant or target.default_variant

    def fill(empty: Path) -> None:
        started = time.monotonic()
        firmware = build(empty)
        seconds = round(time.monotonic() - started, 3)
        stamp = stamp_of(replace(firmware, variant=name, seconds=seconds))
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
    return replace(firmware, target=target.name, variant=name)


def read_firmware(directory: Path) -> Firmware | None:
    """The Firmware that a directory describes, whose files somebody else has checked, but for the
    ELF's digest; None when there is none."""
    try:
        stamp = read_json(directory / STAMP)
        source = source_named(stamp.pop("source"))
        firmware = replace(checked(Firmware, {**stamp, "directory": directory}), source=source)
        whole = firmware.elf_sha256 == sha256_of(firmware.elf) and firmware.map.is_file()
    except (FileNotFoundError, NotADirectoryError, *MALFORMED):
        return None
    return firmware if whole else None


def stamp_of(firmware: Firmware) -> dict[str, Any]:
    """What ``firmware.json`` says, as plain data."""
    stamp = {**asdict(firmware), "source": firmware.source.name}
    del stamp["directory"]
    return stamp


def described(
    directory: Path, target: str, toolchain_id: str, options: Mapping[str, str], **facts: Any
) -> Firmware:
    """The runner that was built in ``directory``, whose name is its key. ``facts``: more fields of
    it. Raises BuildError for an ELF without its build id."""
    elf = directory / RUNNER
    given = {"variant": "", "seconds": 0.0, **facts}  # which ``obtain`` knows
    if "build_id" not in given:
        given["build_id"] = build_id(elf)
    return Firmware(
        directory=directory,
        target=target,
        key=directory.name,
        toolchain_id=toolchain_id,
        elf_sha256=sha256_of(elf),
        options=dict(options),
        **given,
    )


def build_id(elf: Path) -> str:
    """The GNU build id of an ELF, in hex. Raises BuildError when it has none."""
    from harness.formats.elf import read_elf

    try:
        found = read_elf(elf).build_id
    except MalformedFile as error:
        raise BuildError(f"{elf} is not an ELF file: {error.what}", path=elf) from error
    if found is None:
        hint = "link it with -Wl,--build-id=sha1"
        raise BuildError(f"{elf} has no build id", hint=hint, path=elf)
    return found
