"""The cache of built runners.

``.hil/cache/firmware/<key>`` holds the ELF, its linker map, ``build.log``, ``firmware.json`` and,
written last, the seal of them all (``harness.system.artifact_cache``). The key covers everything
that decides what is built, so an equal key means the same program, and nothing is started.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from harness.config.schema import checked
from harness.config.target import Target
from harness.core.errors import BuildError, InfraError, MalformedFile
from harness.firmware.source import RUNNER, STAMP, Firmware, source_named
from harness.system import artifact_cache, paths
from harness.system.files import MALFORMED, disk_errors, read_json, sha256_of, write_whole
from harness.system.progress import Progress


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
    from harness.formats.elf import read_elf
    from harness.formats.elf_overlap import SectionsOverlap, overlaps

    elf = directory / RUNNER
    try:
        program = read_elf(elf)
        found = tuple(overlaps(program))
        if "build_id" not in facts:
            facts["build_id"] = program.build_id
    except MalformedFile as error:
        raise BuildError(f"{elf} is not an ELF file: {error.what}", path=elf) from error
    if found:
        raise SectionsOverlap(elf.name, found)
    if facts["build_id"] is None:
        hint = "link it with -Wl,--build-id=sha1"
        raise BuildError(f"{elf} has no build id", hint=hint, path=elf)
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
