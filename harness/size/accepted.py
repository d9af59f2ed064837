"""Accepted sizes: reviewed files beside the reference runs, with an anatomy to compare with.

``references/<target>/<subject>.size.json``: the subject is a model (its program) or ``runner``
(its firmware, by toolchain id). The anatomy is kept compact: small parts are folded together,
so that a later growth can still be named by its cause without the file that was accepted.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.errors import InfraError, UsageError
from harness.footprint import anatomy as names
from harness.footprint.anatomy import Anatomy, Part, Tally

RUNNER = "runner"
ANY_TOOLCHAIN = "any"  # a program does not depend on the C++ compiler
_MOST_PARTS = 600
_SMALL = "(smaller parts)"


@dataclass(frozen=True)
class AcceptedSize:
    """``anatomy`` was folded with ``threshold`` bytes; fold what is compared with it alike."""

    figures: dict[str, int]
    anatomy: Anatomy
    threshold: int

    def to_fields(self) -> dict[str, Any]:
        def flat(parts: tuple[Part, ...]) -> dict[str, int]:
            return {names.join(p.path): p.bytes for p in parts}

        return {
            "figures": self.figures, "kind": self.anatomy.kind, "total": self.anatomy.total,
            "threshold": self.threshold, "parts": flat(self.anatomy.parts),
            "memory": flat(self.anatomy.memory),
        }  # fmt: skip


@dataclass(frozen=True)
class AcceptedSizes:
    """By toolchain id; ``history`` says when, why and what, oldest first."""

    by_toolchain: dict[str, AcceptedSize]
    history: tuple[dict[str, Any], ...] = ()

    def render(self) -> str:
        fields = {
            "sizes": {t: s.to_fields() for t, s in self.by_toolchain.items()},
            "history": list(self.history),
        }
        return json.dumps(fields, indent=1, sort_keys=True) + "\n"


def size_path(root: Path, target: str, subject: str) -> Path:
    return root / target / f"{subject}.size.json"


def load_sizes(path: Path) -> AcceptedSizes | None:
    """None when nothing was accepted. Raises UsageError on a malformed file."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InfraError(f"cannot read {path}: {error.strerror}", path=str(path)) from error
    try:
        fields = json.loads(text)
        sizes = {str(t): _size(s) for t, s in fields["sizes"].items()}
        return AcceptedSizes(sizes, tuple(dict(entry) for entry in fields["history"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path} is not a file of accepted sizes: {error!r}",
            hint="restore it from version control, or accept the size again",
            file=str(path),
        ) from error


def _size(fields: Mapping[str, Any]) -> AcceptedSize:
    def parts(name: str) -> tuple[Part, ...]:
        return tuple(Part(names.split(p), int(n)) for p, n in fields[name].items())

    kept = Anatomy(str(fields["kind"]), int(fields["total"]), parts("parts"), parts("memory"))
    figures = {str(k): int(v) for k, v in fields["figures"].items()}
    return AcceptedSize(figures, kept, int(fields["threshold"]))


def fold(anatomy: Anatomy, threshold: int) -> Anatomy:
    """Parts below ``threshold`` bytes summed under their second-level path."""
    if threshold <= 1:
        return anatomy
    tally = Tally()
    for part in anatomy.parts:
        small = part.bytes < threshold and len(part.path) > 2
        tally.add((*part.path[:2], _SMALL) if small else part.path, part.bytes, part.count)
    return replace(anatomy, parts=tally.parts(), dropped=())


def threshold_for(anatomy: Anatomy) -> int:
    """The size that leaves at most a few hundred parts."""
    sizes = sorted((p.bytes for p in anatomy.parts), reverse=True)
    return 1 if len(sizes) <= _MOST_PARTS else sizes[_MOST_PARTS]


def propose(
    old: AcceptedSizes | None,
    anatomy: Anatomy,
    figures: Mapping[str, int],
    toolchain: str,
    *,
    reason: str,
    when: str,
) -> AcceptedSizes:
    """What would make this size the accepted one; other toolchains are kept."""  # fmt: skip
    threshold = threshold_for(anatomy)
    before = old.by_toolchain.get(toolchain) if old else None
    kept = fold(anatomy, threshold)
    size = AcceptedSize(dict(figures), kept, threshold)
    what = {
        name: [None if before is None else before.figures.get(name), value]
        for name, value in sorted(figures.items())
        if before is None or before.figures.get(name) != value
    }
    entry = {"when": when, "why": reason, "toolchain": toolchain, "what": what}
    return AcceptedSizes(
        {**(old.by_toolchain if old else {}), toolchain: size},
        (*(old.history if old else ()), entry),
    )


def change(path: Path, old: AcceptedSizes | None, new: AcceptedSizes) -> str:
    """The proposed change as a unified diff."""
    before = old.render().splitlines(keepends=True) if old else []
    after = new.render().splitlines(keepends=True)
    name = str(path) if old else "/dev/null"
    return "".join(difflib.unified_diff(before, after, fromfile=name, tofile=str(path), n=1))
