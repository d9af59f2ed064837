"""A program that can write to one directory only, with no network and no other process in sight.

Done with bubblewrap: the whole file system read-only, its own network, process and IPC
namespaces, an empty /tmp and /run (so that no socket of the host can be reached either).
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness import toolchain

_PROBE_SECONDS = 20
_HIDDEN = ("/tmp", "/run", "/var/tmp")


@dataclass(frozen=True)
class Confinement:
    """What to put in front of an argv, and, when that does not confine, why not."""

    prefix: tuple[str, ...]
    reason: str | None = None

    @property
    def confined(self) -> bool:
        return self.reason is None


def confinement(writable: Path, readable: Sequence[Path]) -> Confinement:
    """The prefix for a program whose current directory is ``writable``.

    ``readable`` are files and directories the program needs; they stay visible even where the
    directory around them is hidden. Without a working bubblewrap the program is only tied to
    our life (it dies when we die).
    """
    reason = why_not()
    setsid = str(toolchain.require("setsid").path)
    if reason is not None:
        setpriv = str(toolchain.require("setpriv").path)
        return Confinement((setsid, setpriv, "--pdeathsig", "KILL", "--"), reason)
    bwrap = str(toolchain.require("bwrap").path)
    return Confinement((setsid, bwrap, *arguments(writable, readable), "--"))


def arguments(writable: Path, readable: Sequence[Path]) -> tuple[str, ...]:
    """bubblewrap's own arguments. Later mounts lie over earlier ones."""
    hidden = tuple(f"{place}/" for place in _hidden())
    shown = [str(path) for path in readable if str(path).startswith(hidden)]
    return (
        *_walls(),
        *(word for path in shown for word in ("--ro-bind", path, path)),
        *("--bind", str(writable), str(writable)),
        *("--chdir", str(writable)),
    )


def _hidden() -> tuple[str, ...]:
    return tuple(p for p in _HIDDEN if Path(p).is_dir() and not Path(p).is_symlink())


def _walls() -> tuple[str, ...]:
    return (
        "--unshare-all",  # user, IPC, PID, network, UTS and cgroup namespaces
        "--die-with-parent",
        *("--cap-drop", "ALL"),
        *("--ro-bind", "/", "/"),
        *("--dev", "/dev"),
        *("--proc", "/proc"),
        *(word for place in _hidden() for word in ("--tmpfs", place)),
    )


@cache
def why_not() -> str | None:
    """Why bubblewrap cannot confine anything here; None when it can. Asked once per process."""
    bwrap = toolchain.find("bwrap")
    if bwrap is None:
        return "bubblewrap (bwrap) is not installed"
    argv = [str(bwrap.path), *_walls(), "--", "true"]
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not work here: {error}"
    if done.returncode:
        said = done.stdout.decode("utf-8", "replace").strip().splitlines()
        return f"bubblewrap does not work here: {said[-1] if said else 'it says nothing'}"
    return None
