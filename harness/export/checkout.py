"""A checkout of ExecuTorch as the exporter: its Python, with the compiled parts of the wheel.

A file of the checkout counts if a wheel would carry it: Python, and what
``[tool.setuptools.package-data]`` of ExecuTorch's ``pyproject.toml`` names (at cff6f4dd32). No
other is linked into the environment, so that what an export can read and what its key stands for
are the same: an edited C++ kernel is not another exporter.

The environment, ``.hil/cache/executorch-python/<key>``, is for ``PYTHONPATH``. Its ``executorch``
has folders of its own and in them one link for each file. It is sealed: nothing else may be there,
so Python keeps no bytecode next to a module. The key stands for the names of the files; their
content is the checkout's, live.

``setup.py`` of ExecuTorch adds to the sources in a wheel (read at cff6f4dd32): copies of the
schemas, ``version.py``, flatc, and the compiled parts. The first two are made here from the
checkout; the others are the installed wheel's. So is ``cmsis_nn``, which older checkouts import as
a package of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.core.errors import InfraError, UsageError
from harness.core.tables import read_table
from harness.export.exporter import ExporterChoice, ExporterFacts
from harness.export.request import exporter_versions
from harness.firmware.checkout import find_root, revision_of, source_files
from harness.system import artifact_cache
from harness.system.artifact_cache import key_of
from harness.system.files import disk_errors, text_of
from harness.system.git import Unreadable, blob_id, changed, is_work_tree, tracked
from harness.system.paths import cache_dir, executorch_package

_KINDS = {".py", ".fbs", ".yaml", ".glsl", ".b64"}
_VERSION, _PIN = "version.txt", "torch_pin.py"
LAYOUT = 2  # raise it when what an environment holds changes
PACKAGE = "executorch"
_FLATC = "data/bin/flatc"
# Until ExecuTorch's pull request 20531 (June 2026) this was a distribution of its own, installed
# next to it, and older checkouts import it by this name alone.
_CMSIS_NN = "cmsis_nn"
_TORCH = re.compile(r"""^TORCH_VERSION\s*=\s*["']([^"']+)["']""", re.MULTILINE)


@dataclass(frozen=True)
class CheckoutExporter:
    """A checkout that exports.

    ``environment`` is for ``PYTHONPATH``. ``sources`` stands for the checkout's Python,
    ``versions`` for the wheel's compiled parts; the two decide the bytes of a program. ``pinned``:
    the version of torch that the checkout asks for, "" if it does not say."""

    root: Path
    environment: Path
    sources: str
    versions: Mapping[str, str]
    pinned: str
    facts: ExporterFacts

    def confirm(self) -> None:
        """Raise InfraError if the checkout was edited since: its program's sources are unknown."""
        if read_sources(self.root).identity() != self.sources:
            message = "the checkout changed while it exported"
            raise InfraError(message, hint="run it again", path=self.root)


def find_exporter(folder: Path) -> CheckoutExporter:
    """Find the checkout in ``folder`` as an exporter; make its environment if there is none.

    Raises UsageError (no checkout), ExporterIncomplete, ToolMissing, GitFailed, DiskError."""
    root = find_root(folder)
    there, sources, compiled = revision_of(root, _within()), read_sources(root), compiled_parts()
    installed = exporter_versions()
    wheel, torch = installed["executorch"], installed["torch"]
    version, pinned = _version(root), _pinned(root)
    name = key_of([LAYOUT, sources.identity(), wheel, sorted(compiled.items())])[:12]
    notes = [f"exported with the compiled parts of the wheel {wheel}"]
    if pinned and pinned != torch.split("+")[0]:  # a local version ("+cpu") is the same torch
        notes.append(f"exported with torch {torch}, the checkout is pinned to {pinned}")
    return CheckoutExporter(
        root=root,
        environment=lay_environment(root, sources, compiled),
        sources=sources.identity(),
        versions={"executorch": f"{version}, sources {name}"},
        pinned=pinned,
        facts=ExporterFacts(
            path=str(root),
            commit=there.commit,
            branch=there.branch,
            dirty=bool(sources.edited),
            version=version,
            compiled=wheel,
            notes=tuple(notes),
        ),
    )


def selected_exporter(choice: ExporterChoice) -> CheckoutExporter | None:
    """Return the user's checkout; None for the wheel. Raises as ``find_exporter``."""
    return None if choice.root is None else find_exporter(choice.root)


def _within() -> tuple[str, ...]:
    return (*read_table(__file__)["packages"], _VERSION, _PIN)


def _version(root: Path) -> str:
    return (root / _VERSION).read_text("utf-8").strip()


def _pinned(root: Path) -> str:
    """Return the version in ``torch_pin.py``, which is parsed, not run."""
    found = _TORCH.search(text_of(root / _PIN))
    return found[1] if found else ""


class ExporterIncomplete(UsageError):
    """``missing``: a file below ``path`` that no export can do without."""

    def __init__(self, folder: Path, missing: str, whose: str) -> None:
        self.missing = missing
        super().__init__(
            f"{whose} has no {missing}, and nothing can be exported with the checkout without it",
            hint=f"`git -C {folder} status` tells what was deleted"
            if whose == "the checkout"
            else "reinstall the wheel: delete .venv and run ./hil",
            path=folder,
        )


@dataclass(frozen=True)
class Sources:
    """The Python sources of a checkout.

    ``files``: names below the checkout with git's name of their content; ``edited``: those of them,
    or deleted ones, that are not as in the commit."""

    files: Mapping[str, str]
    edited: tuple[str, ...]

    def identity(self) -> str:
        """Equal where the same is exported, whatever the commit and wherever the checkout."""
        return key_of(dict(self.files))


def read_sources(root: Path) -> Sources:
    """Read the sources. Raises ExporterIncomplete, Unreadable, GitFailed, ToolMissing."""
    in_git = is_work_tree(root)
    there = tracked(root, _within()) if in_git else {}
    files = {name: content for name, content in there.items() if _counts(name)}
    if in_git:
        edited = tuple(filter(_counts, changed(root, _within())))
    else:
        names = (str(path.relative_to(root)) for path in source_files(root, _within()))
        edited = tuple(filter(_counts, names))
    for name in edited:
        files.pop(name, None)
        if (root / name).is_file():  # not deleted; through a link, as Python reads it
            files[name] = blob_id(_read(root / name))
    for name in read_table(__file__)["needed"]:
        if name not in files:
            raise ExporterIncomplete(root, name, "the checkout")
    return Sources(files, edited if in_git else ())


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unreadable(path, error) from error


def _counts(name: str) -> bool:
    return name in (_VERSION, _PIN) or PurePosixPath(name).suffix in _KINDS


def compiled_parts() -> dict[str, int]:
    """Return the compiled parts of the installed wheel: names below the package, with their sizes.

    Raises ExporterIncomplete for a wheel without flatc, InfraError when there is no wheel."""
    package = executorch_package()
    files = {name: (package / name).stat().st_size for name in sorted(_compiled(package))}
    if _FLATC not in files:
        raise ExporterIncomplete(package, _FLATC, "the installed wheel of ExecuTorch")
    return files


def _compiled(package: Path) -> Iterator[str]:
    for folder, below, names in os.walk(package):
        below[:] = [name for name in below if name not in ("__pycache__", "include", "test")]
        place = Path(folder).relative_to(package).as_posix()
        for name in names:
            if name.endswith(".so") or place == "data/bin":
                yield f"{place}/{name}"


def lay_environment(root: Path, sources: Sources, compiled: Mapping[str, int]) -> Path:
    """Return the folder for ``PYTHONPATH``; make it if it is not as made. Raises DiskError."""
    files = [name for name in sources.files if "/" in name]
    version, wheel = _version(root), executorch_package()
    facts = [LAYOUT, str(root), sorted(files), version, str(wheel), sorted(compiled)]
    key = key_of(facts)
    place = cache_dir("executorch-python") / key
    links = {name: root / name for name in files}
    links |= {name: root / source for name, source in read_table(__file__)["copies"].items()}
    links |= {name: wheel / name for name in compiled}

    def fill(empty: Path) -> None:
        _link(empty / PACKAGE, links, version)
        for name in compiled:
            if (file := PurePosixPath(name).name).split(".")[0] == _CMSIS_NN:
                (empty / file).symlink_to(wheel / name)

    with disk_errors("preparing the checkout's exporter"):
        artifact_cache.cached(place, key, fill)
    return place


def _link(package: Path, links: Mapping[str, Path], version: str) -> None:
    for folder in {(package / name).parent for name in links}:
        folder.mkdir(parents=True, exist_ok=True)
    for name, source in links.items():
        (package / name).symlink_to(source)
    # Without this file it would be a namespace package: Python would look for the rest of it in the
    # installed wheel, and mix the two.
    (package / "__init__.py").touch()
    (package / "version.py").write_text(f"__version__ = {version!r}\ngit_version = None\n")
