"""A bundle that somebody sent, taken to be hostile: all of it is checked, or nothing is used.

The archive is read as a stream, never more of it than its manifest says and the caller accepts.
Its headers are read one by one: what a tar archive may say beyond the name and size of a regular
file (links, devices, sparse files, longer names) has no meaning here.
"""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import BinaryIO

import zstandard

from harness.bundle.errors import BundleDamaged, BundleEscapes, BundleTooLarge, NotABundle
from harness.bundle.manifest import (
    MANIFEST,
    MOST_MANIFEST,
    Manifest,
    check_name,
    read_manifest,
)
from harness.errors import UsageError
from harness.system.files import disk_errors, read_regular

MOST_BYTES = 1 << 30
_MAGIC = b"\x28\xb5\x2f\xfd"  # RFC 8878, section 3.1.1
_BLOCK = tarfile.BLOCKSIZE
_MOST_WINDOW = 1 << 27  # bytes of memory that a frame may ask for
_PIECE = 1 << 10  # of the file: a block of 128 KiB takes four bytes, so this is 32 MiB at most


def unpack(bundle: Path, into: Path, most: int = MOST_BYTES) -> Manifest:
    """Put the members of a bundle, or of a folder that one was unpacked to, into the new folder
    ``into``. Raises what ``errors`` has, and UsageError for a file that cannot be read."""
    if bundle.is_dir():
        return _unpack_folder(bundle, into, most)
    try:
        with bundle.open("rb") as file:
            return _unpack_stream(bundle, _Stream(bundle, file), into, most)
    except OSError as error:
        raise UsageError(f"cannot read {bundle}: {error.strerror}", path=bundle) from error


class _Stream:
    """The plain bytes of a frame, as far as they are asked for."""

    def __init__(self, bundle: Path, file: BinaryIO) -> None:
        self._bundle, self._file = bundle, file
        self._frame = zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW).decompressobj()
        self._ready = bytearray()
        head = file.read(len(_MAGIC))
        if head != _MAGIC:
            raise NotABundle(bundle, "it is not compressed by Zstandard")
        self._feed(head)

    def _feed(self, piece: bytes) -> None:
        try:
            self._ready += self._frame.decompress(piece)
        except zstandard.ZstdError as error:
            raise BundleDamaged(self._bundle, f"it cannot be decompressed ({error})") from error

    def _more(self) -> bool:
        piece = b"" if self._frame.eof else self._file.read(_PIECE)
        if piece:
            self._feed(piece)
        elif not self._frame.eof:
            raise BundleDamaged(self._bundle, "it is cut off")
        return bool(piece)

    def read(self, size: int) -> bytes:
        """Raises BundleDamaged when there are not so many."""
        while len(self._ready) < size:
            if not self._more():
                raise BundleDamaged(self._bundle, "it is cut off")
        data = bytes(self._ready[:size])
        del self._ready[:size]
        return data

    def end(self) -> None:
        """Nothing may follow but what fills a tar archive's last record. Raises BundleDamaged."""
        while len(self._ready) <= tarfile.RECORDSIZE and self._more():
            pass
        padding = len(self._ready) <= tarfile.RECORDSIZE and not any(self._ready)
        if not padding or self._frame.unused_data or self._file.read(1):
            raise BundleDamaged(self._bundle, "something follows its end")


def _unpack_stream(bundle: Path, stream: _Stream, into: Path, most: int) -> Manifest:
    first = _header(bundle, stream)
    if first is None or first.name != MANIFEST or first.size > MOST_MANIFEST:
        raise NotABundle(bundle, f"its first member is not {MANIFEST}")
    manifest = read_manifest(bundle, _content(stream, first.size))
    if manifest.size > most:
        raise BundleTooLarge(bundle, manifest.size, most)
    missing = set(manifest.files)
    while (member := _header(bundle, stream)) is not None:
        check_name(bundle, member.name)
        if member.name not in missing:
            raise BundleEscapes(bundle, member.name, f"{MANIFEST} does not know, or has twice")
        if member.size != manifest.files[member.name].size:
            raise BundleDamaged(bundle, f"{member.name} is not as large as {MANIFEST} says")
        missing.remove(member.name)
        _put(bundle, into, manifest, member.name, _content(stream, member.size))
    if any(stream.read(_BLOCK)):
        raise BundleDamaged(bundle, "its archive does not end")
    stream.end()
    if missing:
        raise BundleDamaged(bundle, f"it has no {min(missing)}")
    return manifest


def _header(bundle: Path, stream: _Stream) -> tarfile.TarInfo | None:
    """None at the archive's end. Raises BundleEscapes for what is no regular file."""
    block = stream.read(_BLOCK)
    if not any(block):
        return None
    try:
        member = tarfile.TarInfo.frombuf(block, "utf-8", "backslashreplace")
    except (tarfile.TarError, ValueError) as error:
        raise NotABundle(bundle, f"it is not a tar archive ({error})") from error
    if member.size < 0:
        raise BundleDamaged(bundle, f"{member.name} has a size below nothing")
    if member.type != tarfile.REGTYPE:
        raise BundleEscapes(bundle, member.name, "is no regular file")
    return member


def _content(stream: _Stream, size: int) -> bytes:
    data = stream.read(size)
    stream.read(-size % _BLOCK)
    return data


def _unpack_folder(bundle: Path, into: Path, most: int) -> Manifest:
    try:
        manifest = read_manifest(bundle, read_regular(bundle / MANIFEST, MOST_MANIFEST))
    except OSError as error:
        raise NotABundle(bundle, f"it has no {MANIFEST} that can be read") from error
    if manifest.size > most:
        raise BundleTooLarge(bundle, manifest.size, most)
    for name, content in manifest.files.items():
        path = bundle / name
        if path.is_symlink() or path.parent.is_symlink():
            raise BundleEscapes(bundle, name, "is a link")
        try:
            data = read_regular(path, content.size)
        except OSError as error:
            raise BundleDamaged(bundle, f"it has no {name} ({error.strerror})") from error
        _put(bundle, into, manifest, name, data)
    return manifest


def _put(bundle: Path, into: Path, manifest: Manifest, name: str, data: bytes) -> None:
    manifest.check(bundle, name, data)
    with disk_errors("unpacking the bundle"):
        path = into / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(data)
