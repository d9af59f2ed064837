"""The names of the sources of a runner under test: the modules of ``harness.firmware.sources``."""

from __future__ import annotations

import os
from pathlib import Path

BUNDLED = "bundled"  # the source where none is named
CHECKOUT = "executorch"  # the source that ``--executorch`` asks for
_ALIASES = {"both": f"{BUNDLED}+{CHECKOUT}"}


def source_names() -> tuple[str, ...]:
    """The modules of ``harness.firmware.sources``, the bundled one first."""
    folder = Path(__file__).with_name("sources")
    names = {name[:-3] for name in os.listdir(folder) if name.endswith(".py") and name[0] != "_"}
    return (BUNDLED, *sorted(names - {BUNDLED}))


def firmware_words() -> tuple[str, ...]:
    """The values of ``--firmware``: each source, and each together with the bundled one."""
    others = source_names()[1:]
    return (BUNDLED, *others, *_ALIASES, *(f"{BUNDLED}+{name}" for name in others))


def names_of(word: str) -> tuple[str, ...]:
    """The sources of one of ``firmware_words``, in order. Raises ValueError for another word."""
    if word not in firmware_words():
        raise ValueError(f"one of {', '.join(firmware_words())} is wanted")
    return tuple(_ALIASES.get(word, word).split("+"))
