"""The one way a measured file can be wrong: damaged, at an offset."""

from __future__ import annotations

from harness.errors import UsageError


class DamagedFile(UsageError):
    """The file does not keep to its format; ``facts`` has ``offset`` (bytes from its start)."""

    kind = "damaged_file"

    def __init__(self, what: str, offset: int, hint: str | None = None) -> None:
        super().__init__(f"{what} (at offset {offset} = 0x{offset:x})", hint=hint, offset=offset)


class WrongOffset(Exception):
    """Raised while walking; the boundary of a format turns it into a DamagedFile."""

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(what)
        self.what = what
        self.offset = offset
