"""A checkout that exports: found, checked, and named so that its programs are its own."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from harness.core.errors import InfraError
from harness.export.checkout.environment import LAYOUT, Compiled, compiled_parts, lay_environment
from harness.export.checkout.sources import Sources, read_sources
from harness.export.exporter import ExporterFacts
from harness.export.request import ExporterMissing
from harness.firmware.executorch.checkout import find_root
from harness.system.git import revision

_TORCH = re.compile(r"""^TORCH_VERSION\s*=\s*["']([^"']+)["']""", re.MULTILINE)


class CheckoutEdited(InfraError):
    """It was edited while it exported, so that nobody knows what made the program."""

    def __init__(self, root: Path) -> None:
        super().__init__("the checkout changed while it exported", hint="run it again", path=root)


@dataclass(frozen=True)
class CheckoutExporter:
    """``environment`` is for ``PYTHONPATH``. ``sources`` and ``versions`` stand for everything
    that decides the bytes of a program: the one for the checkout's Python, the other, beside it,
    for the wheel's compiled parts. ``pinned``: the version of torch that the checkout asks for,
    "" when it does not say."""

    root: Path
    environment: Path
    sources: str
    versions: Mapping[str, str]
    pinned: str
    facts: ExporterFacts

    def confirm(self) -> None:
        """Raises CheckoutEdited when the checkout is not as it was when it was found."""
        if read_sources(self.root).identity() != self.sources:
            raise CheckoutEdited(self.root)


def find_exporter(folder: Path) -> CheckoutExporter:
    """The checkout in ``folder`` as an exporter; its environment is made when it is not there.

    Raises NotACheckout, WheelShadowed, ExporterIncomplete, ExporterMissing, GitFailed, DiskError.
    """
    root = find_root(folder)
    there, sources, compiled = revision(root), read_sources(root), compiled_parts()
    wheel, torch = _installed("executorch"), _installed("torch")
    version, pinned = (root / "version.txt").read_text("utf-8").strip(), _pinned(root)
    return CheckoutExporter(
        root=root,
        environment=lay_environment(root, sources, compiled),
        sources=sources.identity(),
        versions={"executorch": f"{version}, sources {_name(sources, compiled, wheel)}"},
        pinned=pinned,
        facts=ExporterFacts(
            path=str(root),
            commit=there.commit,
            branch=there.branch,
            dirty=bool(sources.edited),
            version=version,
            compiled=wheel,
            notes=(f"exported with the compiled parts of the wheel {wheel}", *_pin(pinned, torch)),
        ),
    )


def _name(sources: Sources, compiled: Compiled, wheel: str) -> str:
    facts = [LAYOUT, sources.identity(), wheel, sorted(compiled.files.items())]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]


def _installed(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError as error:
        raise ExporterMissing(package) from error


def _pinned(root: Path) -> str:
    """What ``torch_pin.py`` says; it is read, not run."""
    try:
        found = _TORCH.search((root / "torch_pin.py").read_text("utf-8"))
    except (OSError, ValueError):
        return ""
    return found[1] if found else ""


def _pin(pinned: str, torch: str) -> tuple[str, ...]:
    """A local version ("+cpu") is the same torch."""
    if not pinned or pinned == torch.split("+")[0]:
        return ()
    return (f"exported with torch {torch}, the checkout is pinned to {pinned}",)
