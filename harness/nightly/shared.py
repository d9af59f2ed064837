"""Programs and firmware of a night, shared through one folder or bucket that all machines see.

``URL/programs/<key>`` and ``URL/firmware/<key>`` are the artifact cache's folders as one
file each: a zip archive behind its sha256. What was damaged, cut or moved is found when it
is read. A store that does not serve costs time and a note: what it lacks is made where it is
needed.

The URL is what fsspec takes: a folder (NFS), ``s3://bucket/folder``, ``gs://…``, ``az://…``.
"""

from __future__ import annotations

import hashlib
import io
import tempfile
import uuid
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from harness.config.case import Case
from harness.config.loading import load_target
from harness.core.errors import HarnessError, InfraError, UsageError
from harness.export import cache
from harness.export.batch import ExportOptions
from harness.firmware.firmware import load_firmware
from harness.firmware.source import BuildRequest, build_options
from harness.run.artifacts import request_of
from harness.run.pipeline import RunOptions
from harness.sim.simulator import pick
from harness.system import artifact_cache
from harness.system.files import disk_errors
from harness.system.locks import in_use
from harness.system.paths import cache_dir

_T = TypeVar("_T")
_DIGEST = 32  # bytes of a sha256
PROGRAMS, FIRMWARE = "programs", "firmware"


class StoreUnusable(UsageError):
    kind = "store_unusable"

    def __init__(self, url: str, why: str) -> None:
        self.url = url
        super().__init__(
            f"{url} cannot be a store: {why}",
            hint="name a folder that all machines see, or a bucket as s3://bucket/folder",
        )


class StoreError(InfraError):
    """Of a store that does not serve. ``url``: without its password."""

    kind = "store_unreachable"

    def __init__(self, url: str, message: str, hint: str) -> None:
        self.url = url
        super().__init__(f"the store {url} {message}", hint=hint)


class StoreDamaged(StoreError):
    kind = "store_damaged"


class Store:
    """At ``url``; nothing is asked of it before the first call. All methods raise StoreUnusable
    and StoreError."""

    def __init__(self, url: str) -> None:
        self.url = url
        parts = urlsplit(url)
        user, at, host = parts.netloc.rpartition("@")
        self.shown = urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}{at}{host}"))

    def require(self) -> None:
        """Called before any work: the folder or bucket exists and can be written and read. Of a
        folder the last part is made; a bucket never is."""
        fs, root = self._open()
        if "file" in fs.protocol:
            try:
                Path(root).mkdir(exist_ok=True)
            except OSError as error:
                raise StoreUnusable(self.shown, str(error.strerror)) from error
        else:
            bucket = root[: len(root) - len(root.lstrip("/"))] + root.strip("/").split("/")[0]
            if not self._call(lambda: fs.exists(bucket)):
                raise StoreUnusable(self.shown, f"there is no bucket {bucket.strip('/')}")
        probe, content = f"probe-{uuid.uuid4().hex}", b"hil"
        self._write(probe, content)
        try:
            if self._call(lambda: fs.cat_file(f"{root}/{probe}")) != content:
                raise StoreError(self.shown, "does not give back what is written", "is it shared?")
        finally:
            self._call(lambda: fs.rm_file(f"{root}/{probe}"))

    def has(self, kind: str, key: str) -> bool:
        fs, root = self._open()
        return bool(self._call(lambda: fs.exists(f"{root}/{kind}/{key}")))

    def fetch(self, kind: str, key: str, into: Path) -> Path | None:
        """Unpacks the folder of a key below ``into``; None when the store has none. Raises
        StoreDamaged, OSError."""
        fs, root = self._open()
        try:
            data = self._call(lambda: fs.cat_file(f"{root}/{kind}/{key}"))
        except FileNotFoundError:
            return None
        with suppress(zipfile.BadZipFile, ValueError):
            place = _unpack(data, into)
            # the inputs of an export are named behind its key
            if artifact_cache.load(place, key) is not None and place.name.partition("+")[0] == key:
                return place
        raise StoreDamaged(self.shown, f"has a damaged {kind}/{key}", "nothing: it is replaced")

    def keep(self, kind: str, key: str, folder: Path) -> None:
        """Puts a sealed folder there, in place of one that may be. Raises OSError."""
        self._write(f"{kind}/{key}", _pack(folder))

    def _write(self, name: str, content: bytes) -> None:
        """Whole, or not at all."""
        fs, root = self._open()
        part = f"{root}/{name}.{uuid.uuid4().hex[:8]}.part"

        def write() -> None:
            if "file" in fs.protocol:  # buckets have no folders, and making one makes a bucket
                Path(part).parent.mkdir(exist_ok=True)
            try:
                fs.pipe_file(part, content)
                fs.mv(part, f"{root}/{name}")
            except BaseException:
                with suppress(Exception):  # the first error is the one to report
                    fs.rm_file(part)
                raise

        try:
            self._call(write)
        except FileNotFoundError as error:
            raise StoreError(self.shown, "is not there", "is its folder mounted?") from error

    def _call(self, ask: Callable[[], _T]) -> _T:
        try:
            return ask()
        except FileNotFoundError:
            raise
        except Exception as error:  # the libraries below fsspec have exceptions of their own
            why = next(iter(str(error).splitlines()), "") or type(error).__name__
            hint = "is it up and not full, and may this user read and write there?"
            raise StoreError(self.shown, f"cannot be used: {why}", hint) from error

    def _open(self) -> tuple[Any, str]:
        """The file system, which fsspec keeps for each thread, and the folder in it."""
        if urlsplit(self.url).scheme in ("sftp", "ssh"):  # fsspec trusts any server's key
            raise StoreUnusable(self.shown, "SFTP is not supported; mount it with sshfs")
        try:
            import fsspec

            fs, root = fsspec.core.url_to_fs(self.url)
        except ImportError as error:  # also in fsspec's words: "Install s3fs to access S3"
            message = f"needs a Python package that is not installed: {error}"
            hint = "pip install 'executorch-hil[nightly]', and the package for this kind of URL"
            raise StoreError(self.shown, message, hint) from error
        except ValueError as error:
            raise StoreUnusable(self.shown, str(error)) from error
        return fs, root


def _pack(folder: Path) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink():
                archive.write(path, path.relative_to(folder.parent).as_posix())
    return hashlib.sha256(packed.getvalue()).digest() + packed.getvalue()


def _unpack(packed: bytes, into: Path) -> Path:
    """The one folder of an archive; ``extract`` takes out of a name what leads elsewhere. Raises
    OSError, and BadZipFile or ValueError for what ``_pack`` did not make."""
    digest, content = packed[:_DIGEST], packed[_DIGEST:]
    if hashlib.sha256(content).digest() != digest:
        raise ValueError("damaged")
    into.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist():
            Path(archive.extract(member, into)).chmod(member.external_attr >> 16 & 0o777)
    (place,) = into.iterdir()
    return place


@dataclass(frozen=True)
class _Entry:
    """``place``: its folder in the cache of this machine, if it is there and whole."""

    kind: str
    key: str
    place: Callable[[], Path | None]
    locked: Callable[[], AbstractContextManager[object]]


class SharedCase:
    """The program and firmware of one case, in the caches of this machine and in a store. Keys are
    those of the machine that runs the case: they cover its toolchain and exporter.

    ``notes``: what was wrong with the store; one that does not answer is not asked again. Nothing
    raises: what is wrong with the case itself is found when it is run.
    """

    def __init__(self, store: Store, case: Case, options: RunOptions) -> None:
        self._store = store
        self._answers = True
        self._damaged: set[str] = set()
        self.notes: list[str] = []
        self._entries: list[_Entry] = []
        with suppress(HarnessError):
            self._entries += _entries_of(case, options)

    def fetch(self) -> None:
        """Before the run: what is not here and is there."""
        for entry in self._entries:
            self._try(partial(self._fetch, entry), entry)

    def keep(self) -> None:
        """After the run: what is here and not there, and what is damaged there."""
        for entry in self._entries:
            self._try(partial(self._keep, entry), entry)

    def _try(self, call: Callable[[], object], entry: _Entry) -> None:
        try:
            if self._answers:
                call()
        except StoreDamaged as error:
            self._damaged.add(entry.key)
            self.notes.append(error.message)
        except (StoreError, StoreUnusable) as error:
            self._answers = False
            self.notes.append(error.message)
        except HarnessError:
            pass  # of the case: it is found again when the case is run

    def _fetch(self, entry: _Entry) -> None:
        if entry.place() is not None:
            return
        folder = cache_dir(entry.kind)
        with disk_errors("taking from the store"):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=f".{entry.key}.", dir=folder) as scratch:
                fetched = self._store.fetch(entry.kind, entry.key, Path(scratch))
                if fetched is None:
                    return
                place = folder / fetched.name
                with entry.locked():
                    if entry.place() is None:
                        in_use(place)
                        artifact_cache.clear(place)
                        fetched.rename(place)

    def _keep(self, entry: _Entry) -> None:
        place, store = entry.place(), self._store
        if place is not None and (
            entry.key in self._damaged or not store.has(entry.kind, entry.key)
        ):
            store.keep(entry.kind, entry.key, place)


def _entries_of(case: Case, options: RunOptions) -> Iterator[_Entry]:
    chosen = pick(load_target(case.target), options.simulator)
    export_options = ExportOptions(options.exporter.find(), isolate=options.isolate_export)
    request = request_of(case.model, chosen.target)
    key = export_options.key(request)

    def program() -> Path | None:
        cached = export_options.cached(request)
        return None if cached is None else cached.directory

    yield _Entry(PROGRAMS, key, program, partial(cache.locked, key))
    checkout = options.firmware.checkout()
    build = BuildRequest(chosen.target, chosen.name, checkout, build_options(options.oracle))
    for source in options.firmware.sources:
        yield _firmware(source.key(build))


def _firmware(key: str) -> _Entry:
    def place() -> Path | None:
        firmware = load_firmware(cache_dir(FIRMWARE) / key)
        return None if firmware is None else firmware.directory

    return _Entry(FIRMWARE, key, place, lambda: artifact_cache.locked(cache_dir(FIRMWARE) / key))
