"""Finds a user's checkout of ExecuTorch and its parts, and checks that it can be built.

The checkout is only read. Its entry for the runner is ``examples/arm/executor_runner/standalone``,
new in ExecuTorch's pull request 19018 (May 2026).

Parts are the dependencies of the build: submodules, and the SDK that it would download. A part is
in the folder that the user names (``--part NAME=DIR``), or else where the checkout has it. Nothing
is downloaded: an error about a missing part has the command that gets it.
"""

from __future__ import annotations

import importlib.util
import re
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness.core.errors import BuildError, Unknown, UsageError
from harness.core.tables import read_table
from harness.core.verdict import ExitCode
from harness.system.artifact_cache import key_of
from harness.system.files import text_of
from harness.system.git import (
    Revision,
    files,
    files_below,
    git,
    identity,
    is_work_tree,
    revision,
    shown,
)

# Where examples/arm/setup.sh of ExecuTorch puts the Ethos-U SDK.
SDK = Path("examples/arm/arm-scratch/ethos-u")
_CMSIS_NN_PIN = re.compile(r'set\(\s*CMSIS_NN_VERSION\s+"([0-9a-f]{7,40})"')


@dataclass(frozen=True)
class PartSpec:
    """``place`` lies below the checkout; ``probe`` is a file that shows the folder is whole."""

    name: str
    what: str
    place: str
    probe: str

    @property
    def submodule(self) -> bool:
        """Whether the checkout's index has the wanted commit."""
        return self.place.startswith("third-party/")


@cache
def specs() -> Mapping[str, PartSpec]:
    """The parts of ExecuTorch's build, by name."""
    return {row["name"]: PartSpec(**row) for row in read_table(__file__)["parts"]}


@dataclass(frozen=True)
class CheckoutPart:
    """A part that was found. ``identity`` changes with its content. ``difference``: its revision if
    it is not the one that the checkout wants ("cmsis-nn 1234abcd+edits"); ``note``: why."""

    name: str
    folder: Path
    identity: str
    difference: str = ""
    note: str = ""
    edited: tuple[str, ...] = ()  # names below ``folder``


class PartMissing(BuildError):
    """``parts`` were not found; ``command`` gets them."""

    kind = "part_missing"
    exit_code = ExitCode.USAGE

    def __init__(self, checkout: Path, parts: Sequence[str]) -> None:
        self.parts = tuple(parts)
        self.looked = tuple(str(checkout / specs()[name].place) for name in parts)
        self.command = command(parts, checkout)
        wanted = ", ".join(specs()[name].what for name in parts)
        given = " ".join(f"--part {name}=DIR" for name in parts)
        get = f"get it with `{self.command}`, or name" if is_work_tree(checkout) else "name"
        super().__init__(
            f"ExecuTorch's build needs {wanted}, and there is none in {', '.join(self.looked)}",
            hint=f"{get} a folder that has it: {given}",
            path=checkout,
        )


def read_given(words: Iterable[str], base: Path | None = None) -> dict[str, Path]:
    """Parses ``NAME=DIR`` from a command line, or from settings in ``base``. Raises UsageError for
    a malformed word, Unknown for a name."""
    given = {}
    for word in words:
        name, equals, folder = word.partition("=")
        if not equals or not folder:
            raise UsageError(f"not a part: {word!r}", hint="it is NAME=DIR, as cmsis-nn=/src/nn")
        if name not in specs():
            raise Unknown(f"ExecuTorch's build has no part {name!r}", name, specs())
        given[name] = (base or Path.cwd()) / Path(folder).expanduser()
    return given


def find_part(name: str, checkout: Path, given: Mapping[str, Path]) -> CheckoutPart | None:
    """A part of ``checkout``; None if it is missing. Raises UsageError for a given folder without
    it."""
    spec = specs()[name]
    folder = given.get(name, checkout / spec.place)
    if (folder / spec.probe).is_file():
        return _part(spec, folder, checkout)
    if name in given:
        raise UsageError(
            f"--part {name}={folder}: {spec.what} has a file {spec.probe}, and that "
            "folder has none",
            hint="name the folder that has it, a clone or a release unpacked",
            path=folder,
        )
    return None


def command(missing: Iterable[str], checkout: Path) -> str:
    """One shell command that gets all missing parts."""
    wanted = [specs()[name] for name in missing]
    modules = [spec.place for spec in wanted if spec.submodule]
    steps = []
    if modules:
        steps.append(f"git -C {checkout} submodule update --init {' '.join(modules)}")
    others = set()
    for spec in wanted:
        place, pin = checkout / spec.place, None if spec.submodule else pinned(spec, checkout)
        if pin:  # for CMSIS-NN the checkout has a commit of its own
            clone = f"git clone https://github.com/ARM-software/CMSIS-NN.git {place}"
            others.add(f"{clone} && git -C {place} checkout {pin}")
        elif not spec.submodule:  # fetches the whole SDK
            others.add(f"{checkout}/examples/arm/setup.sh --i-agree-to-the-contained-eula")
    return " && ".join([*steps, *sorted(others)])


def pinned(spec: PartSpec, checkout: Path) -> str | None:
    """The commit that the checkout wants, if it names one."""
    if spec.submodule:
        if not is_work_tree(checkout):
            return None
        words = git(checkout, "ls-tree", "HEAD", spec.place).split()
        return words[2] if len(words) > 2 and words[1] == "commit" else None
    if spec.name == "cmsis-nn":
        found = _CMSIS_NN_PIN.search(text_of(checkout / "backends/cortex_m/CMakeLists.txt"))
        return found[1] if found else None
    return None


def _part(spec: PartSpec, folder: Path, checkout: Path) -> CheckoutPart:
    folder = folder.resolve()
    if not is_work_tree(folder):
        return CheckoutPart(spec.name, folder, identity(folder))
    there, wanted = revision(folder), pinned(spec, checkout)
    reasons = ["has edits"] if there.dirty else []
    if wanted is not None and not there.commit.startswith(wanted):
        reasons.append(f"is at {there.commit[:10]}, the checkout asks for {wanted[:10]}")
    if not reasons:
        return CheckoutPart(spec.name, folder, there.identity)
    difference = f"{spec.name} {shown(there.commit, edited=there.dirty)}"
    note = f"{spec.what} {' and '.join(reasons)}"
    return CheckoutPart(spec.name, folder, there.identity, difference, note, there.edited)


def part_files(part: CheckoutPart) -> list[Path]:
    """The files that a build may read."""
    return files(part.folder) if is_work_tree(part.folder) else files_below(part.folder)


ENTRY = Path("examples/arm/executor_runner/standalone/CMakeLists.txt")
LINUX_PRESET = Path("tools/cmake/preset/arm_ethosu_linux.cmake")
_SINCE = {ENTRY: "19018 (May 2026)", LINUX_PRESET: "17367 (February 2026)"}
_IS_EXECUTORCH = ("CMakeLists.txt", "version.txt", "runtime/executor/program.cpp")
_PLATFORM = "core_platform"  # for an FVP alone
_BARE_METAL = {"core_driver", "cmsis_6"}  # which a runner for Linux is built without (``plan``)


class RevisionUnsupported(BuildError):
    """The revision has no entry for the runner that the harness knows."""

    kind = "revision_unsupported"
    exit_code = ExitCode.USAGE

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


@dataclass(frozen=True)
class Checkout:
    """``parts``: those found, by name; those of bare-metal boards only if the SDK has them."""

    root: Path
    revision: Revision
    parts: Mapping[str, CheckoutPart]

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(part.note for part in self.parts.values() if part.note)

    @property
    def edited(self) -> tuple[str, ...]:
        """The files that are not as in their commit; those of a part begin with its name."""
        inside = (f"{part.name}/{name}" for part in self.parts.values() for name in part.edited)
        return (*self.revision.edited, *inside)

    @property
    def differences(self) -> tuple[str, ...]:
        return tuple(part.difference for part in self.parts.values() if part.difference)

    def identity(self) -> str:
        """Equal for checkouts that build the same runner, wherever they are."""
        facts = [
            self.revision.commit,
            self.revision.changes,
            {name: part.identity for name, part in sorted(self.parts.items())},
        ]
        return key_of(facts)


def find_checkout(folder: Path, given: Mapping[str, Path]) -> Checkout:
    """The checkout in ``folder``. ``given``: the user's own folders of parts, by name.

    Raises UsageError as ``find_root`` does, RevisionUnsupported, PartMissing, GitFailed.
    """
    root = find_root(folder)
    there = revision_of(root)
    if not (root / ENTRY).is_file():
        raise RevisionUnsupported(root, there, ENTRY)
    found = {name: part for name in specs() if (part := find_part(name, root, given))}
    missing = [name for name in specs() if name not in found and name != _PLATFORM]
    if not _BARE_METAL.issuperset(missing):
        raise PartMissing(root, missing)
    return Checkout(root, there, found)


def revision_of(root: Path, within: Sequence[str] = ()) -> Revision:
    """The revision of a checkout; only edits of the paths ``within`` count: else of those that a
    build of the runner can read."""
    within = within or read_table(__file__)["built"]
    if is_work_tree(root):
        return revision(root, within)
    return Revision.of_content(source_files(root, within), root)


def source_files(root: Path, within: Sequence[str] = ()) -> list[Path]:
    """The files below the paths ``within``, as in ``revision_of``, without the parts."""
    within = within or read_table(__file__)["built"]
    if is_work_tree(root):
        return files(root, within)
    chosen = {root / name for name in within}
    parts = {root / SDK.parent, *(root / spec.place for spec in specs().values())}
    # is_file: a repository has links that lead nowhere
    found = ((path, {path, *path.parents}) for path in files_below(root) if path.is_file())
    return [path for path, above in found if above & chosen and not above & parts]


def find_root(folder: Path) -> Path:
    """The checkout's folder as an absolute path; does not check that it can be built. Raises
    UsageError if it is not a checkout, or if Python would import it and not the installed wheel."""
    root = folder.absolute()
    missing = [name for name in _IS_EXECUTORCH if not (root / name).is_file()]
    if missing:
        raise UsageError(
            f"{root} is not a checkout of ExecuTorch: "
            + (f"it has no {missing[0]}" if root.is_dir() else "there is no such folder"),
            hint="git clone https://github.com/pytorch/executorch, and name that folder",
            path=root,
            missing=missing[0],
        )
    _refuse_shadow(root)
    return root


def _refuse_shadow(root: Path) -> None:
    """An environment inside the checkout is allowed."""
    spec = importlib.util.find_spec("executorch")
    installed = {Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib")}
    for place in list(spec.submodule_search_locations or ()) if spec else []:
        found = Path(place).resolve()
        inside = found == root.resolve() or root.resolve() in found.parents
        if inside and found.parent not in installed:
            raise UsageError(
                f"Python finds the package executorch in the checkout ({found}), not in the "
                "installed wheel, which the exporter needs",
                hint="work in another directory than the one that holds the checkout, and keep it "
                "out of PYTHONPATH; --exporter checkout, which also needs the wheel, is how to "
                "export with the checkout",
                path=root,
                found=str(found),
            )
