"""The one way a file can be wrong: damaged, at an offset."""

from __future__ import annotations

from typing import Any

from harness.core.errors import UsageError


class DamagedFile(UsageError):
    """The file does not keep to its format; ``offset`` is in bytes from its start."""

    kind = "damaged_file"

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(f"{what} (at offset {offset} = 0x{offset:x})")
        self.what = what
        self.offset = offset

    @property
    def facts(self) -> dict[str, Any]:
        """Without ``what``, which is in the message."""
        return {name: value for name, value in super().facts.items() if name != "what"}

    def within(self, file: object, part_offset: int = 0) -> DamagedFile:
        """The same error with the name of ``file``, in which the damaged part starts at
        ``part_offset``."""
        return DamagedFile(f"{file}: {self.what}", part_offset + self.offset)
