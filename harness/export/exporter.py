"""The exporter: the installed wheel of ExecuTorch, or a user's checkout of it. No torch here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.core.verdict import Word
from harness.firmware.choice import NoCheckout, named_root
from harness.system.git import shown


class ExporterSource(Word):
    """The values of ``--exporter``."""

    WHEEL = "wheel"
    CHECKOUT = "checkout"


@dataclass(frozen=True)
class ExporterFacts:
    """Facts for the record about a checkout that exported; the wheel has none.

    ``dirty``: something that the export reads is not as in the commit. ``version`` is the
    checkout's ``version.txt``, ``compiled`` the version of the wheel that gave the compiled
    parts. ``notes``: differences from a wheel built from that checkout.
    """

    path: str
    commit: str
    branch: str
    dirty: bool
    version: str
    compiled: str
    notes: tuple[str, ...] = ()


def exporter_label(facts: ExporterFacts | None, wheel: str = "") -> str:
    """As people write it: "checkout cff6f4dd+edits", "wheel 1.5.1"."""
    if facts is None:
        return f"{ExporterSource.WHEEL} {wheel}".strip()
    return f"{ExporterSource.CHECKOUT} {shown(facts.commit, edited=facts.dirty)}"


@dataclass(frozen=True)
class ExporterChoice:
    """Who exports.

    ``root``: the checkout's folder; None for the installed wheel. ``fixed``: the user said so; else
    the checkout may export instead of a wheel whose programs do not fit it."""

    root: Path | None = None
    fixed: bool = False


WHEEL = ExporterChoice()


def choose_exporter(word: str | None, executorch: Path | None) -> ExporterChoice:
    """Return the choice of ``--exporter``; the checkout is named as for the firmware.

    Raises NoCheckout, and UsageError for a ``pyproject.toml`` that is malformed."""
    if word != ExporterSource.CHECKOUT:
        return ExporterChoice(fixed=word is not None)
    root = named_root(executorch)
    if root is None:
        raise NoCheckout("--exporter checkout")
    return ExporterChoice(root, fixed=True)
