"""A user's checkout of ExecuTorch: what it is, where its parts are, and whether it can be built.

It is only read. Its entry for the runner is ``examples/arm/executor_runner/standalone``, which
came with ExecuTorch's pull request 19018 (May 2026).
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sysconfig
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness.core.errors import BuildError, UsageError
from harness.firmware.executorch.parts import SPECS, Part, PartMissing, find_part, places
from harness.system.git import Revision, is_work_tree, revision

ENTRY = Path("examples/arm/executor_runner/standalone/CMakeLists.txt")
LINUX_PRESET = Path("tools/cmake/preset/arm_ethosu_linux.cmake")
_SINCE = {ENTRY: "19018 (May 2026)", LINUX_PRESET: "17367 (February 2026)"}
_IS_EXECUTORCH = ("CMakeLists.txt", "version.txt", "runtime/executor/program.cpp")
# What a build of the runner can read; a change elsewhere is no other firmware.
BUILT = (
    "CMakeLists.txt",
    "Test.cmake",
    "backends",
    "codegen",
    "configurations",
    "devtools",
    "examples/arm",
    "exir",
    "extension",
    "kernels",
    "runtime",
    "schema",
    "shim_et",
    "third-party",
    "tools",
    "version.txt",
)
_OPTIONAL = ("core_platform",)
_PARTS = ("flatbuffers", "flatcc", "gflags", "json", "core_driver", "cmsis_6", "cmsis-nn")
_BARE_METAL = {"core_driver", "cmsis_6"}  # which a runner for Linux is built without (``plan``)


class NotACheckout(UsageError):
    """``missing``: a file that every checkout of ExecuTorch has."""

    def __init__(self, folder: Path, missing: str) -> None:
        self.missing = missing
        super().__init__(
            f"{folder} is not a checkout of ExecuTorch: it has no {missing}",
            hint="git clone https://github.com/pytorch/executorch, and name that folder",
            path=folder,
        )


class RevisionUnsupported(BuildError):
    """The revision has no entry for the runner that is known here."""

    kind = "revision_unsupported"

    def __init__(self, folder: Path, there: Revision, missing: Path) -> None:
        self.commit = there.commit
        self.branch = there.branch
        where = f"branch {there.branch}" if there.branch else "a detached HEAD"
        super().__init__(
            f"the checkout at {there.commit[:10]} ({where}) has no {missing}, which is how its "
            "runner is built",
            hint=f"is it the right branch? `git -C {folder} checkout main`; ExecuTorch has that "
            f"file since pull request {_SINCE[missing]}",
            path=folder,
        )


class WheelShadowed(UsageError):
    """Python would import the checkout in place of the installed package."""

    def __init__(self, folder: Path, found: Path) -> None:
        self.found = str(found)
        super().__init__(
            f"Python finds the package executorch in the checkout ({found}), not in the installed "
            "wheel, which the exporter needs",
            hint="work in another directory than the one that holds the checkout, and keep it out "
            "of PYTHONPATH; --exporter checkout, which also needs the wheel, is how to export with "
            "the checkout",
            path=folder,
        )


@dataclass(frozen=True)
class Checkout:
    """``parts`` by name, as found; those of a board without Linux only when the SDK has them."""

    root: Path
    revision: Revision
    parts: Mapping[str, Part]

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(part.note for part in self.parts.values() if part.note)

    def identity(self) -> str:
        """Equal for checkouts from which the same is built, wherever they lie."""
        facts = [
            self.revision.commit,
            self.revision.changes,
            {name: part.identity for name, part in sorted(self.parts.items())},
        ]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def find_checkout(
    folder: Path, given: Mapping[str, Path], *, fallback: Path | None = None
) -> Checkout:
    """The checkout in ``folder``. ``given``: parts by name, of the user's; ``fallback``: another
    checkout whose submodules serve for those that are not initialised here.

    Raises NotACheckout, WheelShadowed, RevisionUnsupported, PartMissing, UsageError, GitFailed.
    """
    root = find_root(folder)
    find = partial(find_part, checkout=root, given=given, fallback=fallback)
    with ThreadPoolExecutor() as pool:
        there = pool.submit(revision, root, BUILT)
        looked = {name: pool.submit(find, name) for name in (*_PARTS, *_OPTIONAL)}
        if not (root / ENTRY).is_file():
            raise RevisionUnsupported(root, there.result(), ENTRY)
        found = {name: part for name, task in looked.items() if (part := task.result())}
    missing = [name for name in _PARTS if name not in found]
    if not _BARE_METAL.issuperset(missing):
        raise PartMissing(root, {SPECS[name]: places(name, root, fallback) for name in missing})
    return Checkout(root, there.result(), found)


def find_root(folder: Path) -> Path:
    """The folder as a checkout of ExecuTorch, whatever can be built of it, beside a wheel that
    Python finds. Raises NotACheckout, WheelShadowed."""
    root = folder.absolute()
    for name in _IS_EXECUTORCH:
        if not (root / name).is_file():
            raise NotACheckout(root, name)
    if not is_work_tree(root):
        raise NotACheckout(root, ".git")
    _refuse_shadow(root)
    return root


def _refuse_shadow(root: Path) -> None:
    """An environment that lies in the checkout is no shadow."""
    spec = importlib.util.find_spec("executorch")
    installed = {Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib")}
    for place in list(spec.submodule_search_locations or ()) if spec else []:
        found = Path(place).resolve()
        inside = found == root.resolve() or root.resolve() in found.parents
        if inside and found.parent not in installed:
            raise WheelShadowed(root, found)
