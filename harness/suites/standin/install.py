"""Writes the stand-in's commands into a directory, which then goes in front of PATH."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from pathlib import Path

from harness.core.errors import InfraError, UsageError
from harness.suites.standin.parameters import model_names
from harness.system import paths
from harness.system.files import disk_errors

_MARK = "stand-in of executorch-hil"
_SCRIPT = """\
#!/bin/sh
# {name}: {mark}, on top of QEMU. This is not an Arm model.
: "${{HIL_HOME:={home}}}"
export HIL_HOME
exec {python} -I -S {program} {packages} {name} "$@"
"""


def install(directory: Path) -> tuple[Path, ...]:
    """Returns the written commands. Raises UsageError rather than replace a foreign file."""
    program = Path(__file__).with_name("__main__.py")
    written = []
    with disk_errors("installing the stand-ins"):
        directory.mkdir(parents=True, exist_ok=True)
        for name in model_names():
            path = directory / name
            if path.exists() and _MARK not in path.read_text("utf-8", "replace")[:400]:
                raise UsageError(
                    f"{path} exists and is not a stand-in",
                    hint="it may be a real FVP; choose another directory",
                    path=path,
                )
            path.write_text(
                _SCRIPT.format(
                    name=name,
                    mark=_MARK,
                    home=shlex.quote(str(paths.state_dir())),
                    python=shlex.quote(sys.executable),
                    program=shlex.quote(str(program)),
                    packages=shlex.quote(str(packages_of_npu())),
                )
            )
            path.chmod(0o755)
            written.append(path)
    return tuple(written)


def packages_of_npu() -> Path:
    """Where the NPU model finds numpy: the stand-in starts fast, without site-packages."""
    found = importlib.util.find_spec("numpy")
    if found is None or found.origin is None:
        raise InfraError("numpy is not installed", hint="./hil installs it")
    return Path(found.origin).parent.parent
