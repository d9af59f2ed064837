"""The file of a bundle: a tar archive (POSIX.1-2017, "ustar") in one Zstandard frame (RFC 8878).

``manifest.json`` is the first member and has size and sha256 of every other, all regular files::

    console.log, record.json, program.json, program.pte (.bpte), target.json, repro.sh
    firmware/   executor_runner, its linker map, firmware.json
    inputs/     s<k>i<n>.bin     expected/  set<k>-<n>.bin     outputs/  s<k>-<n>.bin

Reading takes the file to be hostile: all of it is checked before anything is used.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard

from harness.core.errors import UsageError
from harness.system.files import disk_errors, read_regular
from harness.system.json_file import MALFORMED, parsed

FORMAT = 1
MANIFEST, PROGRAM, TARGET, REPRO = "manifest.json", "program.json", "target.json", "repro.sh"
FIRMWARE, INPUTS, EXPECTED, OUTPUTS = "firmware", "inputs", "expected", "outputs"
MAX_BYTES = 1 << 30  # that a bundle may unpack to
_LEVEL = 10
_NAME = re.compile(
    rf"(?:(?:{FIRMWARE}|{INPUTS}|{EXPECTED}|{OUTPUTS})/)?[A-Za-z0-9][A-Za-z0-9_.-]{{0,79}}"
)
_AGAIN = "copy it again, or ask whoever made it to run `hil bundle` again"


class BadBundle(UsageError):
    """Of a file that is no sound bundle. ``what`` is wrong with it."""

    advice = _AGAIN

    def __init__(self, path: Path, what: str) -> None:
        self.what = what
        super().__init__(f"{path}: {self.problem}: {what}", hint=self.advice, path=path)

    problem = "damaged bundle"
    kind = "bundle_damaged"


class NotABundle(BadBundle):
    problem, kind, advice = "not a bundle", "not_a_bundle", "`hil bundle RUN_DIR` makes one"


class BundleEscapes(BadBundle):
    """A member that no bundle has: of another name or kind."""

    problem, kind = "a bundle that `hil bundle` did not make", "bundle_escapes"
    advice = "nothing of it was run; do not trust where it comes from"


class BundleTooLarge(BadBundle):
    problem, kind = "too large", "bundle_too_large"
    advice = "if you trust where it comes from, --max-mib accepts more"


class BundleNewer(BadBundle):
    problem, kind = "a newer format", "bundle_newer"
    advice = "use the version of the harness that made it, or a newer one"


@dataclass(frozen=True)
class Content:
    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """``case``, ``verdict`` and ``simulator`` are for people; the record has them, too."""

    case: str
    verdict: str
    simulator: str
    made_by: str
    files: dict[str, Content]

    def text(self) -> str:
        files = {name: vars(content) for name, content in self.files.items()}
        fields = {"format": FORMAT, **vars(self), "files": files}
        return json.dumps(fields, indent=1, sort_keys=True) + "\n"


def content_of(data: bytes) -> Content:
    return Content(len(data), hashlib.sha256(data).hexdigest())


def packed(manifest: Manifest, members: Mapping[str, bytes], executable: frozenset[str]) -> bytes:
    """The same bytes whenever, wherever and by whom the bundle is made."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in [(MANIFEST, manifest.text().encode()), *sorted(members.items())]:
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o755 if name in executable else 0o644
            archive.addfile(member, io.BytesIO(data))
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
    return compressor.compress(made.getvalue())


def unpack(bundle: Path, into: Path, max_bytes: int = MAX_BYTES) -> Manifest:
    """Writes the members of a bundle, or of a folder that one was unpacked to, into the new folder
    ``into``. Raises BadBundle, DiskError, and UsageError for a file that cannot be read."""
    members = _from_folder(bundle, max_bytes) if bundle.is_dir() else _from_file(bundle, max_bytes)
    manifest = _manifest(bundle, members.pop(MANIFEST), max_bytes)
    if missing := sorted(manifest.files.keys() - members.keys()):
        raise BadBundle(bundle, f"it has no {missing[0]}")
    for name, data in members.items():
        if name not in manifest.files:
            raise BundleEscapes(bundle, f"{name!r} is not in {MANIFEST}")
        if manifest.files[name] != content_of(data):
            raise BadBundle(bundle, f"{name} is not what was packed")
    with disk_errors("unpacking the bundle"):
        for name, data in members.items():
            path = into / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                file.write(data)
    return manifest


def _from_file(bundle: Path, max_bytes: int) -> dict[str, bytes]:
    try:
        data = read_regular(bundle, max_bytes)
    except OSError as error:
        raise UsageError(f"cannot read {bundle}: {error.strerror}", path=bundle) from error
    try:
        size = zstandard.frame_content_size(data)
        if size > max_bytes:
            raise BundleTooLarge(bundle, f"{size} bytes, and {max_bytes} are accepted")
    except zstandard.ZstdError as error:
        raise NotABundle(bundle, f"it is not compressed by Zstandard ({error})") from error
    try:
        if size < 0:
            raise NotABundle(bundle, "it does not say how large it is")
        # allocates what the frame's header says, and refuses a byte more
        plain = zstandard.ZstdDecompressor().decompress(data, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise BadBundle(bundle, f"it cannot be decompressed ({error})") from error
    return _members(bundle, plain)


def _members(bundle: Path, plain: bytes) -> dict[str, bytes]:
    members: dict[str, bytes] = {}
    end = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as archive:
            for member in archive:
                if not members and member.name != MANIFEST:
                    raise NotABundle(bundle, f"its first member is not {MANIFEST}")
                if member.type != tarfile.REGTYPE or member.pax_headers:
                    raise BundleEscapes(bundle, f"{member.name[:200]!r} is no regular file")
                if member.name in members or not _NAME.fullmatch(member.name):
                    raise BundleEscapes(bundle, f"{member.name[:200]!r} is no file of a bundle")
                content = archive.extractfile(member)
                assert content is not None, "it is a regular file"
                members[member.name] = content.read()
                end = member.offset_data + member.size
    except (tarfile.TarError, ValueError, EOFError) as error:
        raise (BadBundle if members else NotABundle)(bundle, f"no tar archive: {error}") from error
    if not members:
        raise NotABundle(bundle, "it is empty")
    if plain[end:].strip(b"\0"):
        raise BadBundle(bundle, "something follows its end")
    return members


def _from_folder(bundle: Path, max_bytes: int) -> dict[str, bytes]:
    try:
        members = {MANIFEST: read_regular(bundle / MANIFEST, max_bytes)}
    except OSError as error:
        raise NotABundle(bundle, f"it has no {MANIFEST} that can be read") from error
    for name, content in _manifest(bundle, members[MANIFEST], max_bytes).files.items():
        path = bundle / name
        if path.is_symlink() or path.parent.is_symlink():
            raise BundleEscapes(bundle, f"{name!r} is a link")
        try:
            members[name] = read_regular(path, content.size)
        except OSError as error:
            raise BadBundle(bundle, f"it has no {name} ({error.strerror})") from error
    return members


def _manifest(bundle: Path, data: bytes, max_bytes: int) -> Manifest:
    try:
        fields = parsed(data.decode())
    except ValueError as error:
        raise NotABundle(bundle, f"{MANIFEST} is not JSON ({error})") from error
    try:
        if int(fields["format"]) > FORMAT:
            made_by = str(fields.get("made_by", "another version"))
            raise BundleNewer(bundle, f"{fields['format']}, of {made_by}; this reads {FORMAT}")
        if int(fields["format"]) != FORMAT:
            raise ValueError(fields["format"])
        files = {str(name): _content(entry) for name, entry in fields["files"].items()}
        words = {name: str(fields[name]) for name in ("case", "verdict", "simulator", "made_by")}
    except MALFORMED as error:
        raise BadBundle(bundle, f"{MANIFEST} does not list what is in it") from error
    for name in files:
        if name == MANIFEST or not _NAME.fullmatch(name):
            raise BundleEscapes(bundle, f"{name[:200]!r} is no file of a bundle")
    if (size := sum(content.size for content in files.values())) > max_bytes:
        raise BundleTooLarge(bundle, f"{size} bytes, and {max_bytes} are accepted")
    return Manifest(**words, files=files)


def _content(entry: Mapping[str, Any]) -> Content:
    size = entry["size"]
    if type(size) is not int or size < 0:
        raise ValueError(size)
    return Content(size, str(entry["sha256"]))
