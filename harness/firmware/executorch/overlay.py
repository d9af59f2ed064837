"""Lays out a checkout and its parts as ExecuTorch's CMake expects them, with links.

The build writes into flatcc's folder (``lib``), and expects a checkout called ``executorch`` with
its submodules inside. So it gets a folder of that name whose entries are links to the checkout's
and to the parts: the user's checkout is only read. flatcc is a copy. The SDK has ``core_software``
with the parts, and a ``core_platform``, the harness's or a copy of the SDK's.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.firmware.checkout import SDK, Checkout, CheckoutPart, specs
from harness.system import artifact_cache
from harness.system.files import write_whole

_LINKED = ("flatbuffers", "gflags", "json")
_COPIED = {"flatcc": (".git", "build", "lib")}  # without what an earlier build left there
_SOFTWARE = ("core_driver", "cmsis_6", "cmsis-nn")
_BOARDS = ("corstone-300", "corstone-320")


@dataclass(frozen=True)
class Overlay:
    """A layout in ``folder``; ``checkout`` and ``sdk`` are the folders to build from."""

    folder: Path

    @property
    def checkout(self) -> Path:
        return self.folder / "executorch"

    @property
    def sdk(self) -> Path:
        return self.folder / "sdk"

    def place(self, part: str) -> Path:
        """Where the build finds a part."""
        place = Path(specs()[part].place)
        return self.sdk / place.relative_to(SDK) if SDK in place.parents else self.checkout / place


def lay(checkout: Checkout, folder: Path, platform: Path | None) -> Overlay:
    """Makes or repairs the overlay in ``folder``. ``platform``: the folder used as each board of
    ``core_platform``; None: the SDK's own."""
    overlay = Overlay(folder)
    root = overlay.checkout
    _links(root, {e.name: e for e in checkout.root.iterdir()} | {"third-party": None, ".git": None})
    inside = {e.name: e for e in (checkout.root / "third-party").iterdir()}
    _links(root / "third-party", inside | dict.fromkeys((*_LINKED, *_COPIED)))
    lay_parts(checkout, root, overlay.sdk, platform)
    return overlay


def lay_parts(checkout: Checkout, root: Path, sdk: Path, platform: Path | None) -> None:
    """Puts the parts of ``checkout`` into a copy or overlay of it, and their SDK into ``sdk``."""
    parts, third_party = checkout.parts, root / "third-party"
    third_party.mkdir(parents=True, exist_ok=True)
    for name in _LINKED:
        _link(third_party / name, parts[name].folder)
    for name, unwanted in _COPIED.items():
        _copy(parts[name], third_party / name, unwanted)
    _sdk(checkout, sdk, platform)


def _sdk(checkout: Checkout, sdk: Path, platform: Path | None) -> None:
    """The SDK's own platform needs the whole ``core_software``, which it finds by ``..``. Through a
    link that would be the user's folder, without the given parts: so the platform is copied."""
    parts = checkout.parts
    own = {name: parts[name].folder for name in _SOFTWARE if name in parts}
    sdk_platform = parts.get("core_platform")
    if platform is not None or sdk_platform is None:
        _links(sdk / "core_platform" / "targets", dict.fromkeys(_BOARDS, platform))
        _links(sdk / "core_software", own)
        return
    beside = sdk_platform.folder.parent / "core_software"
    software = {e.name: e for e in beside.iterdir()} if beside.is_dir() else {}
    _copy(sdk_platform, sdk / "core_platform", (".git",))
    _links(sdk / "core_software", software | own)


def _links(folder: Path, wanted: Mapping[str, Path | None]) -> None:
    """Makes exactly the wanted links. Leaves entries without a target (None) as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    for entry in folder.iterdir():
        if entry.is_symlink() and wanted.get(entry.name) is None:
            entry.unlink()
    for name, target in wanted.items():
        if target is not None:
            _link(folder / name, target)


def _link(link: Path, target: Path) -> None:
    if not (link.is_symlink() and link.readlink() == target):
        link.unlink(missing_ok=True)
        link.symlink_to(target)


def _copy(part: CheckoutPart, to: Path, unwanted: Sequence[str]) -> None:
    """Copies a part without some of its folders, and again when the part changes. The stamp
    matches the copy even if the process is killed."""
    stamp = to.with_name(f".{to.name}.identity")
    if to.is_dir() and stamp.is_file() and stamp.read_text() == part.identity:
        return
    stamp.unlink(missing_ok=True)
    artifact_cache.clear(to)

    def left_out(directory: str, names: list[str]) -> set[str]:
        return set(names).intersection(unwanted) if Path(directory) == part.folder else set()

    shutil.copytree(part.folder, to, symlinks=True, ignore=left_out)
    write_whole(stamp, part.identity)
