"""The one error of the stand-in."""

from __future__ import annotations

OWN_FAULT = 1  # exit status for a command line or a program that cannot be run


class StandinError(Exception):
    """The model would refuse this, or the stand-in cannot do it. The message is for people."""
