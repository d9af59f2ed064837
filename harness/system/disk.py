"""Errors of the machine while files are written, told as what they are: infrastructure."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from harness.errors import InfraError

_HINTS = {
    errno.ENOSPC: "free some space, or point HIL_HOME at another disk",
    errno.EDQUOT: "free some of your quota, or point HIL_HOME at another disk",
    errno.EACCES: "check who owns the directory, or point HIL_HOME at one you can write",
    errno.EROFS: "point HIL_HOME at a disk that can be written",
}


@contextmanager
def disk_errors(doing: str) -> Iterator[None]:
    """Turn an OSError of the block into an InfraError that says what was being done."""
    try:
        yield
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        raise InfraError(
            f"{doing}: {error.strerror or error}{place}",
            hint=_HINTS.get(error.errno or 0),
            errno=errno.errorcode.get(error.errno or 0, str(error.errno)),
            path=str(error.filename) if error.filename else None,
        ) from error
