"""The copy of a checkout that CI jobs run in, and what stands for a CI machine's downloads.

ExecuTorch's scripts write into their checkout (``arm_test``, ``cmake-out``, flatcc's libraries, all
cross-compiled), and find themselves by real paths, so links will not do. A copy lies in
``.hil/cache/executorch-ci/<checkout>/<overlay>/executorch``; it stays, with its builds, and files
that differ from the checkout's are copied again. The checkout is only read.

CI builds everything that Arm's setup.sh downloads. Here that is the parts of ``--part`` or of the
checkout, the harness's own platform code for ethos-u-core-platform, and a ``cmake`` in front of the
installed one that adds definitions when it configures.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from harness.config.loading import load_target
from harness.export.checkout import CheckoutExporter
from harness.firmware.checkout import SDK, Checkout, specs
from harness.firmware.executorch.overlay import lay_parts
from harness.firmware.executorch.plan import QEMU_REGIONS, WITHOUT_LIBRARIES, find_flatc
from harness.firmware.executorch.zephyr import sample_options
from harness.firmware.step import ccache, launchers
from harness.firmware.zephyr.workspace import Workspace, find_workspace
from harness.suites.standin.install import install
from harness.suites.standin.main import RUNNERS_VARIABLE
from harness.system import paths, toolchain
from harness.system.artifact_cache import key_of
from harness.system.files import disk_errors, write_whole
from harness.system.git import files, files_below, is_work_tree
from harness.system.locks import in_use

_MANIFEST = ".copied"
_ZEPHYR = "zephyr_dev_root"  # of test_zephyr.sh
_FVP_FOLDERS = ("FVP-corstone300", "FVP-corstone320")
_CMAKE = Path(__file__).with_name("cmake.sh.in")  # in front of the installed cmake
# Read by every Python of a job: torchvision does not import next to a torch for the CPU alone.
_SITE = Path(__file__).with_name("sitecustomize.txt")


def place_of(checkout: Checkout, overlay: str) -> Path:
    """The folder of a workspace. It has to be locked by who lays it out and works in it."""
    tree = paths.cache_dir("executorch-ci") / key_of([str(checkout.root)])[:12]
    in_use(tree)
    (tree / overlay).mkdir(parents=True, exist_ok=True)
    return tree / overlay


def lay_workspace(
    checkout: Checkout, exporter: CheckoutExporter, place: Path, zephyr: str | None = None
) -> tuple[Path, dict[str, str]]:
    """Makes or renews the copy, a job's current directory; returns it and a job's environment.
    ``zephyr``: a target whose workspace is used, and has to be there. Raises DiskError,
    GitFailed, ToolMissing."""
    root, commands = place / "executorch", place / "bin"
    west = None if zephyr is None else _workspace_of(zephyr)
    with disk_errors("copying the checkout"):
        copy_sources(checkout.root, root)
        lay_parts(checkout, root, root / SDK, paths.data_root() / "targets/executorch/platform")
        # Arm's setup.sh writes it; every script reads it, and here PATH is set already.
        write_whole(root / SDK.parent / "setup_path.sh", "# written by executorch-hil\n")
        for folder in (commands, place / "site"):
            folder.mkdir(exist_ok=True)
        write_whole(place / "site" / "sitecustomize.py", _SITE.read_bytes())
        _write_cmake(commands / "cmake", checkout, root, west)
    install(commands)
    environment = _environment(root, commands, exporter)
    if west is not None:
        _lay_zephyr(root)
        environment |= west.environment
    return root, environment


def _workspace_of(target: str) -> Workspace:
    zephyr = load_target(target).zephyr
    assert zephyr is not None, f"jobs.yaml names {target} for Zephyr"
    return find_workspace(zephyr.board)


def _lay_zephyr(root: Path) -> None:
    """ExecuTorch's place in a workspace of .ci/scripts/test_zephyr.sh, and the FVPs of its
    samples' README; west finds its workspace by ZEPHYR_BASE."""
    module = root / _ZEPHYR / "modules/lib/executorch"
    module.parent.mkdir(parents=True, exist_ok=True)
    if not module.is_symlink():
        module.symlink_to(root)
    for board in _FVP_FOLDERS:
        install(root / SDK.parent / board / "models/Linux64_GCC-9.3")


def copy_sources(source: Path, root: Path) -> None:
    """Makes ``root`` a copy of the files of a checkout, except for its parts; leaves the files that
    builds added."""
    found = files(source) if is_work_tree(source) else files_below(source)
    parts = {source / spec.place for spec in specs().values()}
    names = {
        str(path.relative_to(source))
        for path in found
        if (path.is_symlink() or path.is_file()) and not parts.intersection(path.parents)
    }
    manifest = root / _MANIFEST
    before = set(manifest.read_text("utf-8").splitlines()) if manifest.is_file() else set()
    for name in before - names:
        (root / name).unlink(missing_ok=True)
    for name in sorted(names):
        original, copy = source / name, root / name
        if (not copy.is_symlink() and not copy.exists()) or _stamp(original) != _stamp(copy):
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.unlink(missing_ok=True)
            shutil.copy2(original, copy, follow_symlinks=False)
    write_whole(manifest, "\n".join(sorted(names)))


def _stamp(path: Path) -> tuple[int, int, int]:
    """Copying keeps it."""
    stat = path.lstat()
    return stat.st_mode, stat.st_size, stat.st_mtime_ns


def _write_cmake(path: Path, checkout: Checkout, root: Path, west: Workspace | None) -> None:
    software = root / SDK / "core_software"
    flatc = find_flatc(checkout)
    definitions = {
        **WITHOUT_LIBRARIES,
        "FETCH_ETHOS_U_CONTENT": "OFF",  # a fetch that fails empties the SDK's folder
        "CMSIS_NN_LOCAL_PATH": str(software / "cmsis-nn"),
        "HIL_CORE_DRIVER": str(software / "core_driver"),
        "HIL_CMSIS_6": str(software / "cmsis_6"),
        "HIL_NPU": "ON",
        "CMAKE_PROJECT_arm_executor_runner_INCLUDE": str(
            paths.data_root() / "targets/executorch/runner.cmake"
        ),
        "PYTHON_EXECUTABLE": sys.executable,
        **({"FLATC_EXECUTABLE": str(flatc)} if flatc else {}),
    }
    path.write_text(
        _CMAKE.read_text().format(
            cmake=shlex.quote(str(toolchain.require("cmake").path)),
            regions=shlex.quote(f"-DHIL_REGIONS={QEMU_REGIONS}"),
            zephyr=_joined(sample_options(west, root, root / SDK) if west else {}),
            definitions=_joined(definitions),
        )
    )
    path.chmod(0o755)


def _joined(definitions: Mapping[str, str]) -> str:
    return shlex.join(f"-D{name}={value}" for name, value in definitions.items())


def _environment(root: Path, commands: Path, exporter: CheckoutExporter) -> dict[str, str]:
    own = [str(commands), str(Path(sys.executable).parent)]
    site = root.parent / "site"
    packages = [str(site), str(exporter.environment), str(paths.import_root())]
    return {
        **os.environ,
        **ccache(root),
        # Trees of one copy lie at several depths, and paths relative to a tree differ with it:
        # absolute ones are equal, and so are the objects of all trees.
        "CCACHE_BASEDIR": "",
        **launchers("C", "CXX"),
        "CMAKE_GENERATOR": "Ninja",
        "PATH": os.pathsep.join([*own, os.environ.get("PATH", "")]),
        "PYTHONPATH": os.pathsep.join(packages),
        "PYTHONDONTWRITEBYTECODE": "1",  # the exporter's environment is sealed
        "EXECUTORCH_ROOT": str(root),
        RUNNERS_VARIABLE: str(root),
        "HIL_HOME": str(paths.state_dir()),
    }
