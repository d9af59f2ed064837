"""The one error of the stand-in."""

from __future__ import annotations

OWN_FAULT = 1  # exit status for a command line or a program that cannot be run


class StandinError(Exception):
    """What the model would refuse, or what this stand-in cannot do; the message is for people."""
