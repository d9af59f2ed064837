"""Programs and firmware of a night, shared through one folder or bucket that all machines see.

``URL/programs/<key>`` and ``URL/firmware/<key>`` are folders of the artifact cache as one file
each: a zip archive behind its sha256. The URL is what fsspec takes: a folder (NFS),
``s3://bucket/folder``, ``gs://…``, ``az://…``.
"""

from __future__ import annotations

import hashlib
import io
import tempfile
import uuid
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from harness.config.case import Case
from harness.config.loading import load_target
from harness.core.errors import HarnessError, InfraError, UsageError
from harness.export import cache
from harness.export.batch import ExportOptions
from harness.firmware.source import BuildRequest, build_options
from harness.run.artifacts import request_of
from harness.run.pipeline import RunOptions
from harness.sim.simulator import pick
from harness.system import artifact_cache
from harness.system.files import disk_errors
from harness.system.locks import in_use
from harness.system.paths import cache_dir

_DIGEST = 32  # bytes of a sha256
_USABLE = "name a folder that all machines see, or a bucket as s3://bucket/folder"


class StoreUnusable(UsageError):
    kind = "store_unusable"


class StoreError(InfraError):
    """Of a store that does not serve."""

    kind = "store_unreachable"


@dataclass(frozen=True)
class Entry:
    """A program or firmware. ``place``: its folder in the cache of this machine, if it is there and
    whole; ``locked``: the right to write it."""

    kind: str
    key: str
    place: Callable[[], Path | None]
    locked: Callable[[], AbstractContextManager[object]]

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.key}"


def entries_of(case: Case, options: RunOptions) -> list[Entry]:
    """What a case needs on this machine: a key covers its toolchain and exporter. Of a case that is
    wrong, what is known: the run says what is wrong with it."""
    entries: list[Entry] = []
    with suppress(HarnessError):
        chosen = pick(load_target(case.target), options.simulator)
        exporting = ExportOptions(options.exporter.find(), isolate=options.isolate_export)
        request = request_of(case.model, chosen.target)
        key = exporting.key(request)

        def program() -> Path | None:
            cached = exporting.cached(request)
            return None if cached is None else cached.directory

        entries.append(Entry("programs", key, program, partial(cache.locked, key)))
        checkout = options.firmware.checkout()
        build = BuildRequest(chosen.target, chosen.name, checkout, build_options(options.oracle))
        entries += [_firmware(source.key(build)) for source in options.firmware.sources]
    return entries


def _firmware(key: str) -> Entry:
    folder = cache_dir("firmware") / key

    def place() -> Path | None:
        return None if artifact_cache.load(folder, key) is None else folder

    return Entry("firmware", key, place, partial(artifact_cache.locked, folder))


class Store:
    """At ``url``; nothing is asked of it before the first call. ``shown``: without its password.

    Only ``require`` raises. Later a store that does not serve costs time and no case: ``notes`` say
    what was wrong, and it is not asked again.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        parts = urlsplit(url)
        user, at, host = parts.netloc.rpartition("@")
        self.shown = urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}{at}{host}"))
        self.notes: list[str] = []
        self._serves = True

    def require(self) -> None:
        """Before any work: the folder or bucket exists and can be written and read. Of a folder the
        last part is made; a bucket never is. Raises StoreUnusable, StoreError."""
        probe = f"probe-{uuid.uuid4().hex}"
        self._ask(self._find)
        self._write(probe, b"hil")
        if self._ask(lambda fs, root: fs.cat_file(f"{root}/{probe}")) != b"hil":
            raise StoreError(f"the store {self.shown} does not give back what is written")
        self._ask(lambda fs, root: fs.rm_file(f"{root}/{probe}"))

    def fetch(self, entries: Sequence[Entry]) -> None:
        """Before the run: what is not in this machine's cache and is in the store."""
        with self._noting():
            for entry in entries:
                if self._serves and entry.place() is None and self._has(entry):
                    self._fetch(entry)

    def keep(self, entries: Sequence[Entry]) -> None:
        """After the run: what is in this machine's cache and not in the store."""
        with self._noting():
            for entry in entries:
                place = entry.place()
                if self._serves and place is not None and not self._has(entry):
                    self._write(entry.name, _pack(place))

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except HarnessError as error:
            self.notes.append(error.message)
            self._serves = False

    def _has(self, entry: Entry) -> bool:
        return bool(self._ask(lambda fs, root: fs.exists(f"{root}/{entry.name}")))

    def _fetch(self, entry: Entry) -> None:
        packed = self._ask(lambda fs, root: fs.cat_file(f"{root}/{entry.name}"))
        folder = cache_dir(entry.kind)
        with disk_errors("taking from the store"):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=f".{entry.key}.", dir=folder) as scratch:
                fetched = _unpack(packed, Path(scratch), entry.key)
                if fetched is None:
                    self.notes.append(f"the store {self.shown} has a damaged {entry.name}")
                    self._ask(lambda fs, root: fs.rm_file(f"{root}/{entry.name}"))
                    return
                place = folder / fetched.name
                with entry.locked():
                    if entry.place() is None:
                        in_use(place)
                        artifact_cache.clear(place)
                        fetched.rename(place)

    def _find(self, fs: Any, root: str) -> None:
        bucket = root.strip("/").split("/")[0]
        if "file" in fs.protocol:
            with suppress(FileExistsError):
                Path(root).mkdir()
        elif not fs.exists(root[: root.index(bucket)] + bucket):
            raise StoreUnusable(
                f"{self.shown} cannot be a store: there is no bucket {bucket}", hint=_USABLE
            )

    def _write(self, name: str, content: bytes) -> None:
        """Whole, or not at all."""
        part = f"{name}.{uuid.uuid4().hex[:8]}.part"

        def write(fs: Any, root: str) -> None:
            if "file" in fs.protocol:  # buckets have no folders, and making one makes a bucket
                Path(root, part).parent.mkdir(exist_ok=True)
            try:
                fs.pipe_file(f"{root}/{part}", content)
                fs.mv(f"{root}/{part}", f"{root}/{name}")
            except BaseException:
                with suppress(Exception):  # the first error is the one to report
                    fs.rm_file(f"{root}/{part}")
                raise

        self._ask(write)

    def _ask(self, call: Callable[[Any, str], Any]) -> Any:
        """``call`` with the file system, which fsspec keeps for each thread, and the folder in it.
        The libraries below fsspec have exceptions of their own."""
        if urlsplit(self.url).scheme in ("sftp", "ssh"):  # fsspec trusts any server's key
            hint = "mount it as a folder, with sshfs"
            raise StoreUnusable(f"{self.shown} cannot be a store: SFTP is not supported", hint=hint)
        try:
            import fsspec

            return call(*fsspec.core.url_to_fs(self.url))
        except HarnessError:
            raise
        except ImportError as error:  # also in fsspec's words: "Install s3fs to access S3"
            hint = "pip install 'executorch-hil[nightly]', and the package for this kind of URL"
            raise StoreError(f"the store {self.shown}: {error}", hint=hint) from error
        except (ValueError, FileNotFoundError, NotADirectoryError) as error:
            raise StoreUnusable(f"{self.shown} cannot be a store: {error}", hint=_USABLE) from error
        except Exception as error:
            why = next(iter(str(error).splitlines()), "") or type(error).__name__
            hint = "is it up and not full, and may this user read and write there?"
            raise StoreError(f"the store {self.shown} cannot be used: {why}", hint=hint) from error


def _pack(folder: Path) -> bytes:
    packed = io.BytesIO()
    with (
        disk_errors("giving to the store"),
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
    ):
        for name in (*artifact_cache.files_below(folder), artifact_cache.ENTRY):
            archive.write(folder / name, f"{folder.name}/{name}")
    return hashlib.sha256(packed.getvalue()).digest() + packed.getvalue()


def _unpack(packed: bytes, into: Path, key: str) -> Path | None:
    """The folder of ``key``; None for what ``_pack`` did not make of it. Raises OSError."""
    digest, content = packed[:_DIGEST], packed[_DIGEST:]
    if hashlib.sha256(content).digest() != digest:
        return None
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist():  # extract takes out of a name what leads elsewhere
            Path(archive.extract(member, into)).chmod(member.external_attr >> 16 & 0o777)
    place = next(into.iterdir(), into)
    # the inputs of an export are named behind its key
    whole = place.name.partition("+")[0] == key and artifact_cache.load(place, key) is not None
    return place if whole else None
