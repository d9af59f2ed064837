"""Files: written atomically, identified by their sha256; and errors of the disk with hints."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pwd
import re
import shutil
import stat
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from harness.core.errors import InfraError

_HINTS = {
    errno.ENOSPC: "free some space, or point HIL_HOME at another disk",
    errno.EDQUOT: "free some of your quota, or point HIL_HOME at another disk",
    errno.ENOLCK: "its file system has no locks (NFS?): point HIL_HOME at a local disk",
    errno.EROFS: "point HIL_HOME at a disk that can be written",
}
# Of a file that is read whole: a program, an ELF or a log of these boards has less, and a sparse
# file of gigabytes costs who sends it nothing.
MOST_BYTES = 1 << 30
_PIECE = 1 << 20  # bytes read at a time
_NOT_ALLOWED = (errno.EACCES, errno.EPERM)
# Tools' messages for ENOSPC and EDQUOT, with any text around them (strerror(3)).
DISK_FULL = re.compile(r"No space left on device|Disk quota exceeded")


def write_whole(path: Path, content: str | bytes) -> None:
    """Put ``content`` at ``path``, in one step: a reader sees all of the old or all of the new; of
    several writers the last one wins. Raises OSError."""
    data = content.encode() if isinstance(content, str) else content
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.new")
    try:
        part.write_bytes(data)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A new folder that the block fills; it becomes ``path`` when the block has ended well, and
    until then nothing is there. Removes what a killed writer left. Raises OSError."""
    part = path.with_name(f".{path.name}.new")
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(parents=True)
        yield part
        part.rename(path)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def read_regular(path: Path, most: int = MOST_BYTES) -> bytes:
    """The content of a regular file. Raises OSError as ``regular`` does."""
    with regular(path, most) as (file, _):
        return file.read()


@contextmanager
def regular(path: Path, most: int | None = MOST_BYTES) -> Iterator[tuple[BinaryIO, int]]:
    """The opened file, and its size. Raises OSError, also for any other file (a FIFO, on which
    reading might never end, a device, a directory), and EFBIG for more than ``most`` bytes."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        if most is not None and status.st_size > most:
            raise OSError(errno.EFBIG, f"more than {most} bytes", str(path))
        yield file, status.st_size


def text_of(path: Path) -> str:
    """The text of a file, with invalid UTF-8 replaced; "" for one that cannot be read."""
    try:
        return read_regular(path).decode("utf-8", "replace").replace("\r\n", "\n")
    except OSError:
        return ""


def sha256_of(path: Path) -> str:
    """The sha256 of a file's content, in hex. Raises OSError as ``read_regular`` does."""
    return content_digest([path], None)


def content_digest(files: Iterable[Path], root: Path | None) -> str:
    """A sha256 of what is in files, and of their names below ``root``, if there is one. Raises
    OSError."""
    digest = hashlib.sha256()
    for path in files:
        with regular(path, most=None) as (file, size):
            if root is not None:
                digest.update(f"{os.path.relpath(path, root)}\0{size}\0".encode())
            while piece := file.read(_PIECE):  # weights may be larger than memory
                digest.update(piece)
    return digest.hexdigest()


class DiskError(InfraError):
    """Says which action failed, and why. ``errno``: as errno.h names it, "ENOSPC"."""

    def __init__(self, doing: str, error: OSError) -> None:
        # of a copy the second is where it was written to (shutil.copyfile)
        path = (disk_full(error) and error.filename2) or error.filename
        place = f" ({path})" if path else ""
        super().__init__(
            f"{doing}: {error.strerror or error}{place}",
            hint=disk_hint(error, path),
            path=str(path) if path else None,
            kind="disk_full" if disk_full(error) else None,
        )
        self.errno = errno.errorcode.get(error.errno or 0, str(error.errno))


def is_full(folder: Path) -> bool:
    """Whether its disk has no space or no inode left for another file."""
    try:
        space = os.statvfs(folder)
    except OSError:
        return False
    return space.f_bavail * space.f_frsize < _PIECE or bool(space.f_files and not space.f_favail)


def disk_hint(error: OSError, path: object = None) -> str | None:
    """Advice about the error, if there is any. ``path``: the file it is about, if not the error's
    first."""
    path = path or error.filename
    if error.errno in _NOT_ALLOWED and isinstance(path, str):
        return _whose(Path(path).absolute())
    if error.errno == errno.ENOSPC and isinstance(path, str):
        place = Path(path).absolute()
        while not place.exists():
            place = place.parent
        space = os.statvfs(place)
        if space.f_files and not space.f_favail:
            return "no inode is free (`df -i`): remove files, or point HIL_HOME at another disk"
    return _HINTS.get(error.errno or 0)


def _whose(path: Path) -> str:
    """Names the owner of a path that may not be written; its folder's, if it cannot be seen."""
    for place in (path, *path.parents):
        try:
            status = place.lstat()
        except OSError:
            continue
        owner, we = _name_of(status.st_uid), _name_of(os.geteuid())
        said = f"{place} belongs to {owner}" + (f", and you are {we}" if owner != we else "")
        return f"{said}; change that, or point HIL_HOME at a folder that you can write"
    return "point HIL_HOME at a folder that you can write"


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def disk_full(error: BaseException | None) -> OSError | None:
    """The full disk that caused an exception of any library; None for another cause."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return error
        if said := DISK_FULL.search(str(error)):
            return OSError(errno.ENOSPC, said[0])
        error = error.__cause__ or error.__context__
    return None


@contextmanager
def disk_errors(doing: str) -> Iterator[None]:
    """Turn an OSError of the block into a DiskError."""
    try:
        yield
    except OSError as error:
        raise DiskError(doing, error) from error


# All that parsing foreign JSON into our types may raise. A reader catches these around the whole of
# it and says which file it was.
MALFORMED = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
_MOST_BYTES = 256 << 20
_MOST_VALUES = 1_500_000  # of a JSON text: Python takes some 80 bytes for each, however short


class NotJson(ValueError):
    """Its text says why; whoever reads the file knows which error of the harness that is."""


def read_json(path: Path, *, finite: bool = True) -> Any:
    """The value in a file. ``finite`` refuses ``Infinity`` and ``NaN``, which JSON does not have
    and Python writes.

    Raises NotJson, and OSError unless it is a regular file that can be read.
    """
    raw = read_regular(path, _MOST_BYTES)
    try:
        return parsed(raw.decode("utf-8"), finite=finite)
    except UnicodeDecodeError as error:
        raise NotJson(f"byte {error.start} is not UTF-8") from error


def parsed(text: str, *, finite: bool = True) -> Any:
    """Raises NotJson."""
    if sum(map(text.count, ",[{")) > _MOST_VALUES:
        raise NotJson(f"more than {_MOST_VALUES} values")
    try:
        value = json.loads(text, parse_constant=_refused if finite else None)
        if "\\ud" in text or "\\uD" in text:  # half a character cannot be written anywhere
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except RecursionError as error:
        raise NotJson("it is nested too deeply") from error
    except UnicodeEncodeError as error:
        raise NotJson("a text in it is not Unicode") from error
    except NotJson:
        raise
    except ValueError as error:
        raise NotJson(str(error)) from error
    return value


def _refused(constant: str) -> Any:
    raise NotJson(f"{constant} is not a number")
