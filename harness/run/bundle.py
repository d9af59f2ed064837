"""The file of a bundle: one run, to be run again on another machine (``harness.run.replay``).

It is a tar archive (POSIX.1-2017, "ustar") in one Zstandard frame (RFC 8878). ``manifest.json``
has the sha256 of every other member, all regular files::

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
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import zstandard

from harness.core.errors import UsageError
from harness.system.files import disk_errors, parsed, read_regular

FORMAT = 1
MANIFEST, PROGRAM, TARGET, REPRO = "manifest.json", "program.json", "target.json", "repro.sh"
FIRMWARE, INPUTS, EXPECTED, OUTPUTS = "firmware", "inputs", "expected", "outputs"
MAX_BYTES = 1 << 30  # that a bundle may unpack to
_NAME = re.compile(
    rf"(?:(?:{FIRMWARE}|{INPUTS}|{EXPECTED}|{OUTPUTS})/)?[A-Za-z0-9][A-Za-z0-9_.-]{{0,79}}"
)


class BadBundle(UsageError):
    """Of a file that is no sound bundle. ``problem``: what is wrong with it."""

    kind = "bad_bundle"

    def __init__(self, path: Path, problem: str, hint: str = "") -> None:
        self.problem = problem
        again = "copy it again, or ask whoever made it to run `hil bundle` again"
        super().__init__(f"{path} is not a sound bundle: {problem}", hint=hint or again, path=path)


@dataclass(frozen=True)
class Manifest:
    """``case``, ``verdict`` and ``simulator`` are for people; the record has them, too. ``files``:
    sha256 by name."""

    case: str
    verdict: str
    simulator: str
    made_by: str
    files: dict[str, str] = field(default_factory=dict)
    format: int = FORMAT

    def text(self) -> str:
        return json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def archived(members: Mapping[str, bytes], executable: Collection[str]) -> bytes:
    """The same bytes whenever, wherever and by whom the bundle is made."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o755 if name in executable else 0o644
            archive.addfile(member, io.BytesIO(data))
    return zstandard.ZstdCompressor(level=10, write_checksum=True).compress(plain.getvalue())


def unpack(bundle: Path, into: Path, max_bytes: int = MAX_BYTES) -> Manifest:
    """Writes the members of a bundle into the new folder ``into``. Raises BadBundle, DiskError, and
    UsageError for a file that cannot be read."""
    members = _members(bundle, max_bytes)
    manifest = _manifest(bundle, members.pop(MANIFEST, None))
    for name, digest in manifest.files.items():
        if name not in members:
            raise BadBundle(bundle, f"it has no {name}")
        if sha256(members[name]) != digest:
            raise BadBundle(bundle, f"{name} is not what was packed")
    if unlisted := sorted(members.keys() - manifest.files.keys()):
        raise BadBundle(bundle, f"{unlisted[0]} is not in {MANIFEST}")
    with disk_errors("unpacking the bundle"):
        for name, data in members.items():
            path = into / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                file.write(data)
    return manifest


def _members(bundle: Path, max_bytes: int) -> dict[str, bytes]:
    try:
        data = read_regular(bundle, max_bytes)
    except OSError as error:
        raise UsageError(f"cannot read {bundle}: {error.strerror}", path=bundle) from error
    members: dict[str, bytes] = {}
    try:
        size = zstandard.frame_content_size(data)
        if size > max_bytes:
            hint = "if you trust where it comes from, --max-mib accepts more"
            raise BadBundle(bundle, f"it is larger than the {max_bytes} bytes accepted", hint)
        if size < 0:
            raise BadBundle(bundle, "it does not say how large it is")
        # allocates what the frame's header says, and refuses a byte more
        plain = zstandard.ZstdDecompressor().decompress(data, allow_extra_data=False)
        with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as archive:
            for member in archive:
                if member.type != tarfile.REGTYPE or member.pax_headers:
                    raise BadBundle(bundle, f"{member.name[:200]!r} is no regular file")
                if member.name in members or not _NAME.fullmatch(member.name):
                    raise BadBundle(bundle, f"{member.name[:200]!r} is no file of a bundle")
                content = archive.extractfile(member)
                assert content is not None, "it is a regular file"
                members[member.name] = content.read()
    except zstandard.ZstdError as error:
        raise BadBundle(bundle, f"it cannot be decompressed ({error})") from error
    except (tarfile.TarError, ValueError, EOFError) as error:
        raise BadBundle(bundle, f"it holds no tar archive: {error}") from error
    return members


def _manifest(bundle: Path, data: bytes | None) -> Manifest:
    from pydantic import TypeAdapter  # 100 ms, which a run does not need

    if data is None:
        raise BadBundle(bundle, f"it has no {MANIFEST}", "`hil bundle RUN_DIR` makes a bundle")
    try:
        manifest = TypeAdapter(Manifest).validate_python(parsed(data.decode()))
    except ValueError as error:
        raise BadBundle(bundle, f"{MANIFEST} does not list what is in it") from error
    if manifest.format != FORMAT:
        hint = "use the version of the harness that made it"
        problem = f"format {manifest.format}, of {manifest.made_by}; this reads {FORMAT}"
        raise BadBundle(bundle, problem, hint)
    return manifest
