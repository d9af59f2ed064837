"""The names of the simulators."""

from __future__ import annotations

from harness.core.verdict import Word


class SimulatorName(Word):
    """Each is a module of harness.sim, and a section of a target file."""

    FVP = "fvp"
    QEMU = "qemu"
    QEMU_USER = "qemu_user"
    HOST = "host"
    BOARD = "board"
