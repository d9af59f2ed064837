"""The names of the sources of firmware, without importing them: for options, records and labels."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.firmware.source import CheckoutFacts

BUNDLED = "bundled"  # the source where none is named
CHECKOUT = "executorch"  # the source that ``--executorch`` asks for
_ALIASES = {"both": f"{BUNDLED}+{CHECKOUT}"}


def source_names() -> tuple[str, ...]:
    """The modules of ``harness.firmware.sources``, the bundled one first."""
    folder = Path(__file__).with_name("sources")
    names = {name[:-3] for name in os.listdir(folder) if name.endswith(".py") and name[0] != "_"}
    return (BUNDLED, *sorted(names - {BUNDLED}))


def firmware_words() -> tuple[str, ...]:
    """The values of ``--firmware``: each source, and each beside the bundled one."""
    others = source_names()[1:]
    return (BUNDLED, *others, *_ALIASES, *(f"{BUNDLED}+{name}" for name in others))


def names_of(word: str) -> tuple[str, ...]:
    """The sources of one of ``firmware_words``, in order. Raises ValueError for another word."""
    if word not in firmware_words():
        raise ValueError(f"one of {', '.join(firmware_words())} is wanted")
    return tuple(_ALIASES.get(word, word).split("+"))


def label(source: str, checkout: CheckoutFacts | None = None) -> str:
    """What distinguishes a result from one of the bundled runner, which has no label."""
    if source == BUNDLED:
        return ""
    return source if checkout is None else f"{source} {checkout.short}"


def full_label(source: str, checkout: CheckoutFacts | None) -> str:
    """The label, where the bundled runner has one too."""
    return label(source, checkout) or source
