"""Writes the stand-in's commands into a directory, which then goes in front of PATH."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from harness.core.errors import UsageError
from harness.sim.fvp import STANDIN_MARK
from harness.suites.standin.command_line import model_names
from harness.system import paths
from harness.system.files import disk_errors

_SCRIPT = Path(__file__).with_name("command.sh.in")
_CODE = (
    "import sys; sys.path[:0] = {root!r},; from harness.suites.standin.main import main; "
    "sys.exit(main({name!r}, sys.argv[1:]))"
)


def install(directory: Path) -> tuple[Path, ...]:
    """Returns the written commands. Raises UsageError instead of replacing a foreign file."""
    written = []
    with disk_errors("installing the stand-ins"):
        directory.mkdir(parents=True, exist_ok=True)
        for name in model_names():
            path = directory / name
            if path.exists() and STANDIN_MARK not in path.read_text("utf-8", "replace")[:400]:
                raise UsageError(
                    f"{path} exists and is not a stand-in",
                    hint="it may be a real FVP; choose another directory",
                    path=path,
                )
            path.write_text(
                _SCRIPT.read_text().format(
                    name=name,
                    mark=STANDIN_MARK,
                    home=shlex.quote(str(paths.state_dir())),
                    python=shlex.quote(sys.executable),
                    code=shlex.quote(start_code(name)),
                )
            )
            path.chmod(0o755)
            written.append(path)
    return tuple(written)


def start_code(model: str) -> str:
    """The Python code of one command."""
    return _CODE.format(root=str(paths.import_root()), name=model)
