"""A package ``executorch`` made of a checkout's Python and the compiled parts of a wheel.

``.hil/cache/executorch-python/<key>/executorch`` has folders of its own and in them one link for
each file, so that the bytecode that Python keeps beside a module is kept there: nothing is ever
written into the checkout. The key stands for the names of the files; their content is the
checkout's, live.

What ``setup.py`` of ExecuTorch puts into a wheel beside the sources (read at cff6f4dd32): copies
of the schemas, ``version.py``, flatc, and what was compiled. The first two are made here from
the checkout; the others are the installed wheel's. Beside the package lies ``cmsis_nn``, which
older checkouts import as a package of its own: also the wheel's.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.export.checkout.sources import ExporterIncomplete, Sources
from harness.system.files import disk_errors
from harness.system.locks import in_use
from harness.system.paths import cache_dir, executorch_package

LAYOUT = 2  # raise it when what an environment holds changes
PACKAGE = "executorch"
_BUNDLED = "devtools/bundled_program"
_COPIES = {
    "exir/_serialize/program.fbs": "schema/program.fbs",
    "exir/_serialize/scalar_type.fbs": "schema/scalar_type.fbs",
    **{
        f"{_BUNDLED}/serialize/{name}": f"{_BUNDLED}/schema/{name}"
        for name in ("bundled_program_schema.fbs", "scalar_type.fbs")
    },
}
_FLATC = "data/bin/flatc"
# Until ExecuTorch's pull request 20531 (June 2026) this was a distribution of its own, installed
# beside it, and older checkouts import it by this name alone.
_CMSIS_NN = "cmsis_nn"


@dataclass(frozen=True)
class Compiled:
    """The compiled parts of the installed wheel: names below the package, with their sizes."""

    package: Path
    files: Mapping[str, int]


def compiled_parts() -> Compiled:
    """Raises ExporterIncomplete for a wheel without flatc, InfraError when there is no wheel."""
    package = executorch_package()
    files = {name: (package / name).stat().st_size for name in sorted(_compiled(package))}
    if _FLATC not in files:
        raise ExporterIncomplete(package, _FLATC, "the installed wheel of ExecuTorch")
    return Compiled(package, files)


def _compiled(package: Path) -> Iterator[str]:
    for folder, below, names in os.walk(package):
        below[:] = [name for name in below if name not in ("__pycache__", "include", "test")]
        place = Path(folder).relative_to(package).as_posix()
        for name in names:
            if name.endswith(".so") or place == "data/bin":
                yield f"{place}/{name}"


def lay_environment(root: Path, sources: Sources, compiled: Compiled) -> Path:
    """The folder to put on ``PYTHONPATH``, made now unless it is there; whole, or absent.

    Raises DiskError.
    """
    files = [name for name in sources.files if "/" in name]
    version = (root / "version.txt").read_text("utf-8").strip()
    facts = [
        LAYOUT,
        str(root),
        sorted(files),
        version,
        str(compiled.package),
        sorted(compiled.files),
    ]
    place = cache_dir("executorch-python") / _hash(facts)
    in_use(place)
    if place.is_dir():
        return place
    links = {name: root / name for name in files}
    links |= {name: root / source for name, source in _COPIES.items()}
    links |= {name: compiled.package / name for name in compiled.files}
    with disk_errors("preparing the checkout's exporter"):
        place.parent.mkdir(parents=True, exist_ok=True)
        temporary = place.with_name(f".{place.name}.{uuid.uuid4().hex[:8]}")
        try:
            _link(temporary / PACKAGE, links, version)
            for name in compiled.files:
                if (file := PurePosixPath(name).name).split(".")[0] == _CMSIS_NN:
                    (temporary / file).symlink_to(compiled.package / name)
            _put(temporary, place)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return place


def _link(package: Path, links: Mapping[str, Path], version: str) -> None:
    for folder in {(package / name).parent for name in links}:
        folder.mkdir(parents=True, exist_ok=True)
    for name, source in links.items():
        (package / name).symlink_to(source)
    # A package that is whole by itself: without this file Python would go on looking for the
    # rest of it in the installed wheel, and mix the two.
    (package / "__init__.py").touch()
    (package / "version.py").write_text(f"__version__ = {version!r}\ngit_version = None\n")


def _put(temporary: Path, place: Path) -> None:
    try:
        temporary.rename(place)
    except OSError:
        if not place.is_dir():  # else another process was faster, with the same
            raise


def _hash(facts: object) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:24]
