"""What is in a bundle: the names of its members, and ``manifest.json``, the first of them.

A bundle is a tar archive (POSIX.1-2017, pax: "ustar Interchange Format") of regular files in one
Zstandard frame (RFC 8878)::

    manifest.json   the format's number, and size and sha256 of everything else
    console.log     every byte that the simulator and the target wrote
    record.json     the run's record, with paths of the bundle
    program.json    inputs, outputs and oracle of the program; program.pte or .bpte, itself
    target.json     the target as it was resolved
    repro.sh        runs it again
    firmware/       executor_runner, its linker map, firmware.json
    inputs/         s<k>i<n>.bin, as the guest was given them
    expected/       set<k>-<n>.bin, what the outputs were held against
    outputs/        s<k>-<n>.bin, what they were
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.bundle.errors import BundleDamaged, BundleEscapes, BundleNewer, NotABundle
from harness.system.json_file import MALFORMED, NotJson, parsed

FORMAT = 1
MANIFEST, PROGRAM, TARGET, REPRO = "manifest.json", "program.json", "target.json", "repro.sh"
FIRMWARE, INPUTS, EXPECTED, OUTPUTS = "firmware", "inputs", "expected", "outputs"
MOST_MANIFEST = 1 << 20
_NAME = re.compile(
    rf"(?:(?:{FIRMWARE}|{INPUTS}|{EXPECTED}|{OUTPUTS})/)?[A-Za-z0-9][A-Za-z0-9_.-]{{0,79}}"
)


@dataclass(frozen=True)
class Content:
    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """``case``, ``verdict`` and ``simulator`` are for who looks at it; the record has them, too."""

    case: str
    verdict: str
    simulator: str
    made_by: str
    files: dict[str, Content]

    def text(self) -> str:
        fields = {"format": FORMAT, **vars(self)}
        fields["files"] = {name: vars(content) for name, content in self.files.items()}
        return json.dumps(fields, indent=1, sort_keys=True) + "\n"

    @property
    def size(self) -> int:
        return sum(content.size for content in self.files.values())

    def check(self, bundle: Path, name: str, data: bytes) -> None:
        """Raises BundleDamaged for a member that is not what was packed."""
        if self.files[name] != content_of(data):
            raise BundleDamaged(bundle, f"{name} is not what was packed")


def content_of(data: bytes) -> Content:
    return Content(len(data), hashlib.sha256(data).hexdigest())


def read_manifest(bundle: Path, data: bytes) -> Manifest:
    """Raises NotABundle, BundleNewer, BundleDamaged, BundleEscapes."""
    try:
        fields = parsed(data.decode())
        number = int(fields["format"])
        if number < 1:
            raise ValueError(number)
        if number > FORMAT:
            raise BundleNewer(bundle, number, FORMAT, str(fields.get("made_by", "another version")))
        files = {str(name): _content(said) for name, said in fields["files"].items()}
        words = {n: str(fields[n]) for n in ("case", "verdict", "simulator", "made_by")}
        manifest = Manifest(**words, files=files)
    except NotJson as error:
        raise NotABundle(bundle, f"{MANIFEST} is not JSON ({error})") from error
    except MALFORMED as error:
        raise BundleDamaged(bundle, f"{MANIFEST} does not say what is in it") from error
    for name in files:
        check_name(bundle, name)
    return manifest


def check_name(bundle: Path, name: str) -> None:
    """Every member is a file of the bundle's own or of one of its folders, and nothing else.
    Raises BundleEscapes."""
    if name == MANIFEST or not _NAME.fullmatch(name):
        raise BundleEscapes(bundle, name[:200], "is no file of a bundle")


def _content(said: Mapping[str, Any]) -> Content:
    size = said["size"]
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise ValueError(size)
    return Content(size, str(said["sha256"]))
