"""Whose firmware a run puts under test: ours, what a user's ExecuTorch checkout builds, or the
runtime that ExecuTorch's wheel has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from harness.errors.verdict import Word


class FirmwareSource(Word):
    """In every record; a result of one is never shown as the other's."""

    BUNDLED = "bundled"  # the runner in targets/runner
    EXECUTORCH = "executorch"  # the runner of a checkout of ExecuTorch
    WHEEL = "wheel"  # the runtime and kernels of ExecuTorch's wheel, for a target with Linux


# What ``--firmware`` takes.
FIRMWARE: Mapping[str, tuple[FirmwareSource, ...]] = {
    "bundled": (FirmwareSource.BUNDLED,),
    "executorch": (FirmwareSource.EXECUTORCH,),
    "wheel": (FirmwareSource.WHEEL,),
    "both": (FirmwareSource.BUNDLED, FirmwareSource.EXECUTORCH),
    "bundled+wheel": (FirmwareSource.BUNDLED, FirmwareSource.WHEEL),
}
_SHOWN_COMMIT = 8  # characters


@dataclass(frozen=True)
class CheckoutFacts:
    """What a record says of a checkout under test.

    ``diff_sha256`` is of the edits that are not committed, "" where there are none. ``platform``:
    who gave start-up, linker script and libraries ("hil" or "sdk"). ``notes``: what is otherwise
    than in ExecuTorch's own build.
    """

    path: str
    commit: str
    branch: str
    dirty: bool
    diff_sha256: str
    platform: str
    notes: tuple[str, ...] = ()

    @property
    def short(self) -> str:
        """The commit as people write it, and whether there is more than it."""
        return self.commit[:_SHOWN_COMMIT] + ("+edits" if self.dirty else "")

    def to_fields(self) -> dict[str, Any]:
        return asdict(self)


def checkout_facts(fields: Mapping[str, Any] | None) -> CheckoutFacts | None:
    """From plain data. Raises TypeError, KeyError for what is none."""
    if fields is None:
        return None
    return CheckoutFacts(**{**fields, "notes": tuple(fields["notes"])})


def label(source: FirmwareSource, checkout: CheckoutFacts | None) -> str:
    """How a result of this firmware is told from one of the bundled runner, which has no label."""
    if source is FirmwareSource.BUNDLED:
        return ""
    return str(source) if checkout is None else f"{source} {checkout.short}"


def named(source: FirmwareSource, checkout: CheckoutFacts | None) -> str:
    """The label, where every result has to have one."""
    return label(source, checkout) or str(source)
