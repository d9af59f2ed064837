"""The one way a file can be wrong: damaged, at an offset."""

from __future__ import annotations

from harness.errors import UsageError


class DamagedFile(UsageError):
    """The file does not keep to its format; ``offset`` is in bytes from its start, and a fact."""

    kind = "damaged_file"

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(f"{what} (at offset {offset} = 0x{offset:x})", offset=offset)
        self.what = what
        self.offset = offset

    def within(self, file: object, at: int = 0) -> DamagedFile:
        """The same damage told of ``file``, in which the damaged part starts at ``at``."""
        return DamagedFile(f"{file}: {self.what}", at + self.offset)
