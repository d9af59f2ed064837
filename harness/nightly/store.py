"""Programs and firmware for many machines: a store with one object for each, known by its content.

``URL/objects/<sha256>`` is an entry of a cache as one compressed archive; ``URL/programs/<key>``
and ``URL/firmware/<key>`` say which object has the entry of a key. What is read is held against
the sha256 that is its name, so that a damaged object is found, and made again. Writing is to
another name and renaming, so that what a killed writer left is nobody's object.

The URL is anything that ``fsspec`` takes: a folder, ``sftp://user@host/folder``, ``s3://bucket``.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import tarfile
import tempfile
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

import zstandard

from harness.errors import InfraError, ToolMissing, UsageError
from harness.system.files import sha256_of
from harness.system.json_file import MALFORMED, parsed

_T = TypeVar("_T")
_FULL = (errno.ENOSPC, errno.EDQUOT)
_OF_SFTP = {"timeout": 10, "banner_timeout": 10, "auth_timeout": 10}  # seconds
_MOST_MEMBER = 1 << 30  # bytes


class StoreUnusable(UsageError):
    """``url``: what is no store."""

    kind = "store_unusable"

    def __init__(self, url: str, why: str) -> None:
        self.url = url
        super().__init__(
            f"{url} cannot be a store: {why}",
            hint="name a folder, or a URL as sftp://user@host/folder or s3://bucket/folder",
        )


class StorePackageMissing(ToolMissing):
    """``url``: of what needs it."""

    kind = "store_package_missing"

    def __init__(self, url: str, missing: str) -> None:
        self.url = url
        own = "executorch-hil[nightly]" if missing in ("fsspec", "paramiko") else missing
        super().__init__(
            f"the store {url} needs the Python package {missing}, which is not installed",
            tool=missing,
            hint=f"pip install '{own}'",
        )


class StoreError(InfraError):
    """Of a store that is one, and does not serve. ``url``: without its password."""

    def __init__(self, url: str, message: str, hint: str) -> None:
        self.url = url
        super().__init__(message, hint=hint)


class StoreUnreachable(StoreError):
    """``cause``: the exception of who was asked, ``detail`` what it says."""

    kind = "store_unreachable"

    def __init__(self, url: str, error: BaseException) -> None:
        self.cause, self.detail = type(error).__name__, _said(error)
        super().__init__(
            url, f"the store {url} does not answer: {self.detail}",
            "is its server up, and may this user in? An SFTP server has to be in known_hosts",
        )  # fmt: skip


class StoreFull(StoreError):
    kind = "store_full"

    def __init__(self, url: str) -> None:
        super().__init__(url, f"the store {url} is full", "make room there, and run again")


class StoreNotWritable(StoreError):
    """``cause`` and ``detail`` as of StoreUnreachable."""

    kind = "store_not_writable"

    def __init__(self, url: str, error: BaseException) -> None:
        self.cause, self.detail = type(error).__name__, _said(error)
        super().__init__(
            url, f"the store {url} can be read but not be written: {self.detail}",
            "is its disk full, or does the folder belong to somebody else? An SFTP server says no "
            "more than Failure",
        )  # fmt: skip


class StoreDamaged(StoreError):
    """``name``: of what is not what it should be."""

    kind = "store_damaged"

    def __init__(self, url: str, name: str) -> None:
        self.name = name
        super().__init__(
            url, f"{name} in the store {url} is not what was stored",
            "nothing is to be done: it is made again and replaced",
        )  # fmt: skip


class Store:
    """At ``url``; nothing is asked of it before the first call."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.shown = without_password(url)

    def require(self) -> None:
        """Asked before any work: whether it can be written and read. Raises StoreUnusable,
        StorePackageMissing, StoreError."""
        name, content = f"probe-{uuid.uuid4().hex}", b"hil"
        self._write(name, lambda fs, path: fs.pipe_file(path, content))
        try:
            if self._read(name) != content:
                raise StoreDamaged(self.shown, name)
        finally:
            self._remove(name)

    def has(self, kind: str, key: str) -> bool:
        """Whether there is an entry. What was there once in this process is taken to be there."""
        try:
            return _seen(self.url, kind, key)
        except LookupError:
            return False

    def fetch(self, kind: str, key: str, into: Path) -> str | None:
        """Put an entry into the new folder ``into``; the name that the entry had, or None when
        there is none. Raises StoreDamaged, StoreError, OSError."""
        said = self._read(_pointer(kind, key))
        if said is None:
            return None
        try:
            pointer = parsed(said.decode())
            digest, name = str(pointer["object"]), str(pointer["name"])
            if pointer["seal"] != _seal(key, digest, name) or not _is_plain(name):
                raise ValueError
        except MALFORMED as error:
            raise StoreDamaged(self.shown, _pointer(kind, key)) from error
        with tempfile.TemporaryDirectory() as scratch:
            there = Path(scratch) / "object"
            found = self._ask(lambda fs, root: fs.get_file(f"{root}/{_object(digest)}", str(there)))
            if found is _ABSENT or sha256_of(there) != digest:
                raise StoreDamaged(self.shown, _object(digest))
            try:
                _unpack(there, into)
            except (tarfile.TarError, zstandard.ZstdError, ValueError) as error:
                raise StoreDamaged(self.shown, _object(digest)) from error
        return name

    def keep(self, kind: str, key: str, folder: Path) -> None:
        """Put an entry there, in place of one that may be. Raises StoreError, OSError."""
        with tempfile.TemporaryDirectory() as scratch:
            packed = Path(scratch) / "object"
            _pack(folder, packed)
            digest = sha256_of(packed)
            self._write(_object(digest), lambda fs, path: fs.put_file(str(packed), path))
        name = folder.name
        pointer = {"object": digest, "name": name, "seal": _seal(key, digest, name)}
        content = json.dumps(pointer, sort_keys=True).encode()
        self._write(_pointer(kind, key), lambda fs, path: fs.pipe_file(path, content))

    def size(self, name: str) -> int | None:
        """Of a file, in bytes. Raises StoreError."""
        found = self._ask(lambda fs, root: fs.info(f"{root}/{name}"))
        return None if found is _ABSENT else int(found["size"])

    def _read(self, name: str) -> bytes | None:
        found = self._ask(lambda fs, root: fs.cat_file(f"{root}/{name}"))
        return None if found is _ABSENT else found

    def _write(self, name: str, put: Callable[[Any, str], object]) -> None:
        """Whole, or not at all."""

        def write(fs: Any, root: str) -> None:
            path = f"{root}/{name}"
            folder, part = path.rpartition("/")[0], f"{path}.{uuid.uuid4().hex[:8]}.part"
            fs.makedirs(folder, exist_ok=True)
            try:
                put(fs, part)
                fs.mv(part, path)
            except BaseException:
                with suppress(Exception):  # it is told what came first
                    fs.rm_file(part)
                raise

        self._ask(write, writing=True)

    def _remove(self, name: str) -> None:
        self._ask(lambda fs, root: fs.rm_file(f"{root}/{name}"))

    def _ask(self, ask: Callable[[Any, str], _T], *, writing: bool = False) -> _T | Any:
        """What the file system answers; _ABSENT where there is no such file. Once more over a new
        connection where the first one may have been at fault."""
        fs, root = self._opened(fresh=False)
        try:
            return ask(fs, root)
        except FileNotFoundError:
            if not writing:
                return _ABSENT
        except Exception as error:  # the libraries below fsspec have exceptions of their own
            if isinstance(error, OSError) and error.errno in _FULL:
                raise StoreFull(self.shown) from error
        fs, root = self._opened(fresh=True)
        try:
            return ask(fs, root)
        except FileNotFoundError as error:
            if writing:
                raise StoreNotWritable(self.shown, error) from error
            return _ABSENT
        except Exception as error:
            if writing and self._answers(fs, root):
                raise StoreNotWritable(self.shown, error) from error
            raise StoreUnreachable(self.shown, error) from error

    @staticmethod
    def _answers(fs: Any, root: str) -> bool:
        try:
            fs.info(root)
        except FileNotFoundError:
            return True
        except Exception:  # of paramiko and others
            return False
        return True

    def _opened(self, *, fresh: bool) -> tuple[Any, str]:
        """The file system, which fsspec keeps for each thread, and the folder in it."""
        try:
            import fsspec
        except ModuleNotFoundError as error:
            raise StorePackageMissing(self.shown, str(error.name)) from error
        remote = urlsplit(self.url).scheme in ("sftp", "ssh")
        try:
            options: dict[str, Any] = {}
            if remote:
                from harness.nightly.known_hosts import only_known

                options = {**_OF_SFTP, "host_key_policy": only_known()}
            cls = fsspec.get_filesystem_class(fsspec.core.split_protocol(self.url)[0] or "file")
            if fresh:
                cls.clear_instance_cache()
            fs, root = fsspec.core.url_to_fs(self.url, **options)
        except ModuleNotFoundError as error:
            raise StorePackageMissing(self.shown, str(error.name)) from error
        except ImportError as error:  # fsspec says it so, of what it knows
            raise StorePackageMissing(self.shown, _package(error)) from error
        except ValueError as error:
            raise StoreUnusable(self.shown, _said(error)) from error
        except Exception as error:  # of paramiko and others
            raise StoreUnreachable(self.shown, error) from error
        return fs, root


_ABSENT = object()


@lru_cache(maxsize=65536)
def _seen(url: str, kind: str, key: str) -> bool:
    """Raises LookupError, which is not remembered, and StoreError."""
    if Store(url).size(_pointer(kind, key)) is None:
        raise LookupError
    return True


def without_password(url: str) -> str:
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}{at}{host}"))


def _pointer(kind: str, key: str) -> str:
    return f"{kind}/{key}"


def _object(digest: str) -> str:
    return f"objects/{digest}"


def _seal(key: str, digest: str, name: str) -> str:
    """It shows damage and what was moved; there is no secret in it."""
    return hashlib.sha256(json.dumps([key, digest, name]).encode()).hexdigest()


def _said(error: BaseException) -> str:
    # paramiko's failed connection is an OSError without a number
    words = str(error).removeprefix("[Errno None] ")
    return next(iter(words.splitlines()), "") or type(error).__name__


def _package(error: ImportError) -> str:
    """fsspec says in words what is wanted: 'Install s3fs to access S3'."""
    words = str(error).split()
    return words[words.index("Install") + 1] if "Install" in words[:-1] else str(error.name)


def _pack(folder: Path, into: Path) -> None:
    """The files of a folder; the same bytes for the same content."""
    with (
        into.open("wb") as file,
        zstandard.ZstdCompressor(level=3).stream_writer(file) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink():
                member = tarfile.TarInfo(path.relative_to(folder).as_posix())
                member.size, member.mode = path.stat().st_size, path.stat().st_mode & 0o777
                with path.open("rb") as content:
                    archive.addfile(member, content)


def _unpack(packed: Path, into: Path) -> None:
    """An object whose digest was looked at. Raises OSError, and ValueError, TarError or ZstdError
    for what is no archive of ours."""
    with (
        packed.open("rb") as file,
        zstandard.ZstdDecompressor().stream_reader(file) as plain,
        tarfile.open(fileobj=io.BufferedReader(plain), mode="r|") as archive,
    ):
        into.mkdir(parents=True)
        for member in archive:
            if not member.isreg() or not _is_plain(member.name) or member.size > _MOST_MEMBER:
                raise ValueError(member.name)
            content = archive.extractfile(member)
            assert content is not None, "it is a regular file"
            path = into / member.name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as target:
                target.write(content.read())
            path.chmod(member.mode & 0o777)


def _is_plain(name: str) -> bool:
    """A path below a folder, and nowhere else."""
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts
