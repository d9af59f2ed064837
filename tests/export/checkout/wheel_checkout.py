"""A checkout whose Python is that of the installed wheel, so that a real export needs no other."""

from __future__ import annotations

import shutil
from importlib import metadata
from pathlib import Path

from harness.export.checkout import _counts
from harness.system.paths import executorch_package

from .conftest import FILES, Tree

# Half of the files, which no export for Arm reads.
_NOT_COPIED = {
    *("lib", "data", "test", "tests"),
    *("apple", "cadence", "cuda", "mlx", "nxp", "openvino", "qualcomm", "samsung", "vulkan"),
    "webgpu",
}


def make_wheel_checkout(root: Path) -> Tree:
    """Committed, with the pin of the installed torch."""
    package = executorch_package()
    for source in package.rglob("*"):
        name = source.relative_to(package)
        if _counts(name.as_posix()) and source.is_file() and not _NOT_COPIED & {*name.parts}:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, root / name)
    made = Tree(root)
    for name in ("CMakeLists.txt", "runtime/executor/program.cpp"):
        made.write(name, FILES[name])
    made.write("version.txt", metadata.version("executorch").split("+")[0] + "\n")
    torch = metadata.version("torch").split("+")[0]
    made.write("torch_pin.py", f'TORCH_VERSION = "{torch}"\n')
    made.git("init", "-q", "-b", "main")
    made.commit()
    return made
