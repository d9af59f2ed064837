"""Programs and firmware of a night, shared through one folder or bucket that all machines see.

``URL/programs/<key>`` and ``URL/firmware/<key>`` are folders of the artifact cache as one file
each: its sha256, then a zip archive. The URL is what fsspec takes: a folder (NFS),
``s3://bucket/folder``, ``gs://…``, ``az://…``.
"""

from __future__ import annotations

import hashlib
import io
import re
import tempfile
import uuid
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.config.case import Case
from harness.config.loading import load_target
from harness.core.errors import HarnessError, InfraError
from harness.export.batch import ExportOptions
from harness.export.checkout import selected_exporter
from harness.firmware.source import BuildRequest, build_options
from harness.run.pipeline import RunOptions
from harness.run.subjects import request_of
from harness.sim.simulator import pick
from harness.system import artifact_cache
from harness.system.files import write_whole
from harness.system.locks import in_use
from harness.system.paths import cache_dir


class StoreFailed(InfraError):
    kind = "store_failed"

    def __init__(self, store: str, why: str) -> None:
        super().__init__(
            f"the store {store} cannot be used: {why}",
            hint="name a folder that all machines see, or a bucket as s3://BUCKET/FOLDER with the "
            "package for it; is it up and not full, and may this user read and write there?",
        )


@dataclass(frozen=True)
class StoredEntry:
    """An entry of the artifact cache. ``kind``: its folder there, programs or firmware."""

    kind: str
    key: str

    def place(self) -> Path | None:
        """Its folder on this machine, if it is there and whole."""
        folders = cache_dir(self.kind).glob(f"{self.key}*")  # an export's inputs follow the key
        return next((f for f in folders if artifact_cache.load(f, self.key) is not None), None)


def entries_of(case: Case, options: RunOptions) -> list[StoredEntry]:
    """The entries that a case needs on this machine: a key covers its toolchain and exporter. For a
    malformed case only the entries found before the error; the run reports the error."""
    entries: list[StoredEntry] = []
    with suppress(HarnessError):
        chosen = pick(load_target(case.target), options.simulator)
        exporting = ExportOptions(
            selected_exporter(options.exporter), isolate=options.isolate_export
        )
        request = request_of(case.model, chosen.target)
        entries.append(StoredEntry("programs", exporting.key(request)))
        checkout = options.firmware.checkout()
        build = BuildRequest(chosen.target, chosen.name, checkout, build_options(options.oracle))
        entries += [
            StoredEntry("firmware", source.key(build)) for source in options.firmware.sources
        ]
    return entries


class Store:
    """The store at ``url``, first accessed by the first call. Only ``require`` raises: a store that
    fails later costs time but fails no case, and ``notes`` say what was wrong."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._shown = re.sub("//[^/]*@", "//", url)  # without its password
        self.notes: list[str] = []

    def require(self) -> None:
        """Checks before any work that the store can be written and read. Makes the last part of a
        folder's path, but never a bucket. Raises StoreFailed."""
        with self._files() as (fs, root):
            probe = f"{root}/probe-{uuid.uuid4().hex}"
            _write(fs, probe, b"hil")
            fs.cat_file(probe)
            fs.rm_file(probe)

    def share(self, entries: Sequence[StoredEntry]) -> None:
        """Before and after a run: what is in the store comes into this machine's cache, and what is
        there goes into the store."""
        try:
            with self._files() as (fs, root):
                for entry in entries:
                    file, place = f"{root}/{entry.kind}/{entry.key}", entry.place()
                    if not fs.exists(file):
                        if place is not None:
                            _write(fs, file, _pack(place))
                    elif place is None and not _install(fs.cat_file(file), entry):
                        self.notes.append(f"the store {self._shown} has a damaged {entry.key}")
                        fs.rm_file(file)
        except HarnessError as error:
            if error.message not in self.notes:  # it was gone before the run, too
                self.notes.append(error.message)

    @contextmanager
    def _files(self) -> Iterator[tuple[Any, str]]:
        """fsspec's file system, and the folder in it."""
        if self._url.startswith(("sftp:", "ssh:")):  # fsspec trusts any server's key
            raise StoreFailed(self._shown, "SFTP is not supported; mount it with sshfs")
        try:
            import fsspec

            yield fsspec.core.url_to_fs(self._url)
        except HarnessError:
            raise
        except Exception as error:  # the libraries below fsspec have exceptions of their own
            why = next(iter(str(error).splitlines()), "") or type(error).__name__
            raise StoreFailed(self._shown, why) from error


def _write(fs: Any, file: str, content: bytes) -> None:
    """Whole, or not at all."""
    if "file" in fs.protocol:
        Path(file).parent.mkdir(exist_ok=True)
        write_whole(Path(file), content)
    else:  # a bucket has no folders, and making one would make a bucket
        fs.pipe_file(file, content)


def _pack(folder: Path) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in (*artifact_cache.files_below(folder), artifact_cache.ENTRY):
            archive.write(folder / name, f"{folder.name}/{name}")
    return hashlib.sha256(packed.getvalue()).digest() + packed.getvalue()


def _install(packed: bytes, entry: StoredEntry) -> bool:
    """Puts what was packed into this machine's cache; False for what is not that entry."""
    digest, content = packed[:32], packed[32:]
    if hashlib.sha256(content).digest() != digest:
        return False
    folder = cache_dir(entry.kind)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{entry.key}.", dir=folder) as scratch:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.infolist():  # extract takes out of a name what leads elsewhere
                Path(archive.extract(member, scratch)).chmod(member.external_attr >> 16 & 0o777)
        unpacked = next(Path(scratch).iterdir(), Path(scratch))
        if artifact_cache.load(unpacked, entry.key) is None:
            return False
        place = folder / unpacked.name
        with artifact_cache.locked(folder / entry.key):
            if entry.place() is None:
                in_use(place)
                artifact_cache.clear(place)
                unpacked.rename(place)
    return True
