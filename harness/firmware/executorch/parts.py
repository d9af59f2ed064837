"""What ExecuTorch's build takes from elsewhere: its submodules, and the SDK it would download.

Each part is looked for where the user says (``--part NAME=DIR``), then where the checkout itself
has it. Nothing is downloaded here: what is missing is named with the command that gets it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.core.errors import BuildError, Unknown, UsageError
from harness.system.git import files, git, is_work_tree, revision

# Where examples/arm/setup.sh of ExecuTorch puts the Ethos-U SDK.
_SDK = "examples/arm/arm-scratch/ethos-u"
_CMSIS_NN_PIN = re.compile(r'set\(\s*CMSIS_NN_VERSION\s+"([0-9a-f]{7,40})"')


@dataclass(frozen=True)
class PartSpec:
    """``places`` lie below the checkout; ``probe`` is a file that shows the folder is whole.
    ``submodule``: the checkout's own index says which commit it must be at."""

    name: str
    what: str
    places: tuple[str, ...]
    probe: str
    submodule: bool = False


SPECS: Mapping[str, PartSpec] = {
    spec.name: spec
    for spec in (
        PartSpec(
            "flatbuffers",
            "FlatBuffers",
            ("third-party/flatbuffers",),
            "include/flatbuffers/base.h",
            True,
        ),
        PartSpec("flatcc", "flatcc", ("third-party/flatcc",), "include/flatcc/flatcc.h", True),
        PartSpec("gflags", "gflags", ("third-party/gflags",), "CMakeLists.txt", True),
        PartSpec("json", "JSON for Modern C++", ("third-party/json",), "CMakeLists.txt", True),
        PartSpec(
            "core_driver",
            "the Ethos-U core driver",
            (f"{_SDK}/core_software/core_driver",),
            "include/ethosu_driver.h",
        ),
        PartSpec(
            "cmsis_6",
            "CMSIS 6",
            (f"{_SDK}/core_software/cmsis_6",),
            "CMSIS/Core/Include/core_cm55.h",
        ),
        PartSpec(
            "cmsis-nn", "CMSIS-NN", (f"{_SDK}/core_software/cmsis-nn",), "Include/arm_nnfunctions.h"
        ),
        PartSpec(
            "core_platform",
            "the Ethos-U core platform",
            (f"{_SDK}/core_platform",),
            "targets/corstone-300/CMakeLists.txt",
        ),
    )
}


@dataclass(frozen=True)
class Part:
    """A part that was found. ``identity`` changes when its content does; ``note``: what of it is
    not as the checkout asks."""

    name: str
    folder: Path
    identity: str
    note: str | None = None


class PartMissing(BuildError):
    """``parts`` are in none of the places they were looked for; ``command`` gets them."""

    kind = "part_missing"

    def __init__(self, checkout: Path, missing: Mapping[PartSpec, Sequence[Path]]) -> None:
        self.parts = tuple(spec.name for spec in missing)
        self.looked = tuple(str(place) for places in missing.values() for place in places)
        self.command = command(missing, checkout)
        wanted = ", ".join(spec.what for spec in missing)
        given = " ".join(f"--part {name}=DIR" for name in self.parts)
        super().__init__(
            f"ExecuTorch's build needs {wanted}, and there is none in {', '.join(self.looked)}",
            hint=f"get it with `{self.command}`, or name a folder that has it: {given}",
            path=checkout,
        )


def read_given(words: Iterable[str], base: Path | None = None) -> dict[str, Path]:
    """``NAME=DIR`` of a command line, or of settings in ``base``. Raises UsageError for what is
    none, Unknown for a name."""
    given = {}
    for word in words:
        name, equals, folder = word.partition("=")
        if not equals or not folder:
            raise UsageError(f"not a part: {word!r}", hint="it is NAME=DIR, as cmsis-nn=/src/nn")
        if name not in SPECS:
            raise Unknown(f"ExecuTorch's build has no part {name!r}", name, SPECS)
        given[name] = (base or Path.cwd()) / Path(folder).expanduser()
    return given


def places(name: str, checkout: Path, fallback: Path | None = None) -> list[Path]:
    """Where a part is looked for that nobody has given."""
    roots = [root for root in (checkout, fallback) if root is not None]
    return [root / place for root in roots for place in SPECS[name].places]


def find_part(
    name: str, checkout: Path, given: Mapping[str, Path], fallback: Path | None
) -> Part | None:
    """A part of ``checkout``; ``fallback`` is another checkout that may have its submodules.

    None when there is none. Raises UsageError for a given folder that does not hold it.
    """
    spec = SPECS[name]
    if name in given:
        if not (given[name] / spec.probe).is_file():
            raise UsageError(
                f"--part {name}={given[name]}: {spec.what} has a file {spec.probe}, and that "
                "folder has none",
                hint="name the folder that has it, a clone or a release unpacked",
                path=given[name],
            )
        return _part(spec, given[name], checkout)
    for place in places(name, checkout, fallback):
        if (place / spec.probe).is_file():
            return _part(spec, place, checkout)
    return None


def command(missing: Iterable[PartSpec], checkout: Path) -> str:
    """The one command that gets all that is missing."""
    modules = [spec.places[0] for spec in missing if spec.submodule]
    steps = []
    if modules:
        steps.append(f"git -C {checkout} submodule update --init {' '.join(modules)}")
    # setup.sh fetches the SDK whole, but of CMSIS-NN the checkout says the commit itself
    steps += sorted({_fetch(spec, checkout) for spec in missing if not spec.submodule})
    return " && ".join(steps)


def _fetch(spec: PartSpec, checkout: Path) -> str:
    if spec.name == "cmsis-nn" and (pin := pinned(spec, checkout)):
        place = checkout / spec.places[0]
        return (
            f"git clone https://github.com/ARM-software/CMSIS-NN.git {place} && "
            f"git -C {place} checkout {pin}"
        )
    return f"{checkout}/examples/arm/setup.sh --i-agree-to-the-contained-eula"


def pinned(spec: PartSpec, checkout: Path) -> str | None:
    """The commit that the checkout asks for, where it says so."""
    if spec.submodule:
        words = git(checkout, "ls-tree", "HEAD", spec.places[0]).split()
        return words[2] if len(words) > 2 and words[1] == "commit" else None
    if spec.name == "cmsis-nn":
        try:
            said = (checkout / "backends" / "cortex_m" / "CMakeLists.txt").read_text()
        except OSError:
            return None
        found = _CMSIS_NN_PIN.search(said)
        return found[1] if found else None
    return None


def _part(spec: PartSpec, folder: Path, checkout: Path) -> Part:
    folder = folder.resolve()
    if not is_work_tree(folder):
        return Part(spec.name, folder, f"files:{_content(folder)}")
    there = revision(folder)
    wanted = pinned(spec, checkout)
    note = None
    if wanted is not None and not there.commit.startswith(wanted):
        note = f"{spec.what} is at {there.commit[:10]}, the checkout asks for {wanted[:10]}"
    return Part(spec.name, folder, f"git:{there.commit}:{there.changes}", note)


def part_files(part: Part) -> list[Path]:
    """All that a build may read of it."""
    if is_work_tree(part.folder):
        return files(part.folder)
    return [
        Path(directory) / name for directory, _, names in os.walk(part.folder) for name in names
    ]


def _content(folder: Path) -> str:
    """Of a folder that no repository describes: every file's name, size and time."""
    digest = hashlib.sha256()
    for directory, below, names in os.walk(folder):
        below.sort()
        for name in sorted(names):
            path = Path(directory) / name
            stat = path.lstat()
            digest.update(
                f"{path.relative_to(folder)}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode()
            )
    return digest.hexdigest()
