"""Reference runs: the accepted figures of a case, as reviewed files.

``references/<target>/<model>.json`` is written by ``hil accept`` and by nothing else. Figures
of the program (``.pte``, outputs) hold for every toolchain; figures of the firmware are kept
per toolchain id, because another compiler makes another size without anybody's fault.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.case.case import Case
from harness.errors import UsageError
from harness.target.budget import Slack

PROGRAM_METRICS = ("pte_bytes", "method_allocator_planned")


@dataclass(frozen=True)
class Growth:
    """One figure that outgrew its accepted value, in bytes; ``limit`` includes the slack."""

    metric: str
    accepted: int
    measured: int

    @property
    def limit(self) -> int:
        return limit(self.accepted)

    def describe(self) -> str:
        return (
            f"{self.metric} grew from {self.accepted} to {self.measured} bytes "
            f"({self.measured - self.accepted:+d}, allowed up to {self.limit})"
        )


@dataclass(frozen=True)
class Reference:
    """What was accepted for a case.

    ``outputs`` are the sha256 of every output of every input set, in order; they are compared
    only when the run's ``.pte`` is the accepted one (``pte_sha256``), because another host's
    floating point may calibrate another program. ``firmware`` maps toolchain id to figures.
    """

    pte_sha256: str
    outputs: tuple[tuple[str, ...], ...]
    program: dict[str, int]
    firmware: dict[str, dict[str, int]]
    history: tuple[dict[str, str], ...]

    def growth(self, metrics: Mapping[str, int], toolchain: str) -> list[Growth]:
        """Figures beyond their accepted value plus slack, largest growth first."""
        accepted = {**self.program, **self.firmware.get(toolchain, {})}
        grown = [
            Growth(name, value, metrics[name])
            for name, value in accepted.items()
            if name in metrics and metrics[name] > limit(value)
        ]
        return sorted(grown, key=lambda g: g.accepted - g.measured)

    def unmeasured(self, metrics: Mapping[str, int], toolchain: str) -> list[str]:
        """Accepted figures that this run did not measure."""
        accepted = {**self.program, **self.firmware.get(toolchain, {})}
        return sorted(accepted.keys() - metrics.keys())


def limit(accepted: int) -> int:
    """The largest value still accepted: slack is the larger of 256 bytes and 0.5 %."""
    return Slack().limit(accepted)


def reference_path(root: Path, case: Case) -> Path:
    return root / case.target / f"{case.label}.json"


def load_reference(root: Path, case: Case) -> Reference | None:
    """The accepted reference of a case, or None. Raises UsageError on a malformed file."""
    path = reference_path(root, case)
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    try:
        return from_fields(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path} is not a reference: {error!r}",
            hint="restore it from version control, or accept the case again",
            file=str(path),
        ) from error


def from_fields(fields: Mapping[str, Any]) -> Reference:
    return Reference(
        pte_sha256=str(fields["pte_sha256"]),
        outputs=tuple(tuple(map(str, s)) for s in fields["outputs"]),
        program={str(k): int(v) for k, v in fields["program"].items()},
        firmware={
            str(t): {str(k): int(v) for k, v in figures.items()}
            for t, figures in fields["firmware"].items()
        },
        history=tuple(dict(entry) for entry in fields["history"]),
    )


def to_fields(reference: Reference) -> dict[str, Any]:
    return {
        "pte_sha256": reference.pte_sha256,
        "outputs": [list(s) for s in reference.outputs],
        "program": reference.program,
        "firmware": reference.firmware,
        "history": list(reference.history),
    }


def propose(
    old: Reference | None,
    *,
    pte_sha256: str,
    outputs: tuple[tuple[str, ...], ...],
    metrics: Mapping[str, int],
    toolchain: str,
    reason: str,
    when: str,
) -> Reference:
    """The reference that would make this run the accepted one; other toolchains are kept."""
    program = {k: metrics[k] for k in PROGRAM_METRICS if k in metrics}
    own = {
        k: v for k, v in metrics.items() if k not in PROGRAM_METRICS and not k.startswith("ticks")
    }
    return Reference(
        pte_sha256=pte_sha256,
        outputs=outputs,
        program=program,
        firmware={**(old.firmware if old else {}), toolchain: own},
        history=(
            *(old.history if old else ()),
            {"when": when, "toolchain": toolchain, "why": reason},
        ),
    )


def render(reference: Reference) -> str:
    return json.dumps(to_fields(reference), indent=1, sort_keys=True) + "\n"


def diff(path: Path, old: Reference | None, new: Reference) -> str:
    """The proposed change as a unified diff."""
    before = render(old).splitlines(keepends=True) if old else []
    return "".join(
        difflib.unified_diff(
            before,
            render(new).splitlines(keepends=True),
            fromfile=str(path) if old else "/dev/null",
            tofile=str(path),
        )
    )
