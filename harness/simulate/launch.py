"""What every simulator module returns: how to start it for one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.system.toolchain import Tool


@dataclass(frozen=True)
class Launch:
    simulator: str  # "fvp", "qemu", "host"
    tool: Tool
    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)  # to put into the guest's directory
    readable: tuple[Path, ...] = ()  # what it must be able to read, besides the system
    monitor: str | None = None  # a socket in the guest's directory that answers QEMU's monitor
