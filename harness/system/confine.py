"""A program that can write to one directory only, with no network and no other process in sight.

Done with bubblewrap: a file system that holds the system's libraries, the simulator and the run's
directory, and nothing else (no /etc, no home, no shell unless the simulator is a script), its own
network, process and IPC namespaces. What a guest opens through semihosting outside of its
directory does not exist, and SYS_SYSTEM finds no shell.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness.system import toolchain

_PROBE_SECONDS = 20
_SIGNALS = 64  # Linux, signal(7)
# Libraries, and the data that simulators look for beside them.
_LIBRARIES = ("/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib32", "/usr/lib64",
              "/usr/libexec", "/usr/share", "/usr/local/lib", "/usr/local/share")  # fmt: skip
_LOADER = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
_PROGRAMS = ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin")


@dataclass(frozen=True)
class Confinement:
    """What to put in front of an argv, and, when that does not confine, why not."""

    prefix: tuple[str, ...]
    reason: str | None = None

    @property
    def confined(self) -> bool:
        return self.reason is None


def confinement(writable: Path, executable: Path, readable: Sequence[Path]) -> Confinement:
    """The prefix for ``executable``, whose current directory is ``writable``.

    ``readable`` are the other files and directories it needs. Without a working bubblewrap the
    program is only tied to our life (it dies when we die).
    """
    reason = why_not()
    setsid = str(toolchain.require("setsid").path)
    if reason is not None:
        setpriv = str(toolchain.require("setpriv").path)
        return Confinement((setsid, setpriv, "--pdeathsig", "KILL", "--"), reason)
    bwrap = str(toolchain.require("bwrap").path)
    words = arguments(writable, [executable, *readable], programs=_is_script(executable))
    return Confinement((setsid, bwrap, *words, "--"))


def ending_signal(status: int) -> int | None:
    """The signal that ended a program, from the status that Popen has of its prefix.

    Negative, or through bubblewrap 128 and the number. A guest may end itself with such a status,
    too; more than the number of a signal (255 is what abort() gives) is always its own.
    """
    if status < 0:
        return -status
    return status - 128 if 128 < status <= 128 + _SIGNALS else None


def arguments(
    writable: Path, readable: Sequence[Path], *, programs: bool = False
) -> tuple[str, ...]:
    """bubblewrap's own arguments; ``programs``: the system's programs are visible too."""
    return (
        *_walls(programs),
        *(word for path in _shown(readable) for word in ("--ro-bind", path, path)),
        *("--bind", str(writable), str(writable)),
        *("--chdir", str(writable)),
    )


def _shown(readable: Sequence[Path]) -> tuple[str, ...]:
    """Each existing path and what it is a link to, an outer directory before an inner one."""
    paths = {str(p) for path in readable for p in (path, path.resolve()) if p.exists()}
    return tuple(sorted(paths))


def _walls(programs: bool) -> tuple[str, ...]:
    places = (*_LIBRARIES, *_LOADER, *(_PROGRAMS if programs else ()))
    return (
        "--unshare-all",  # user, IPC, PID, network, UTS and cgroup namespaces
        "--die-with-parent",
        *("--cap-drop", "ALL"),
        *(word for place in places for word in _as_it_is(place)),
        *("--dev", "/dev"),
        *("--proc", "/proc"),
        *("--tmpfs", "/tmp"),
    )


def _as_it_is(place: str) -> tuple[str, ...]:
    """A directory read-only, a link (/lib on a merged system) as the same link."""
    path = Path(place)
    if path.is_symlink():
        return ("--symlink", os.readlink(path), place)
    return ("--ro-bind", place, place) if path.exists() else ()


def _is_script(executable: Path) -> bool:
    try:
        with executable.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


@cache
def why_not() -> str | None:
    """Why bubblewrap cannot confine anything here; None when it can. Asked once per process."""
    bwrap = toolchain.find("bwrap")
    if bwrap is None:
        return "bubblewrap (bwrap) is not installed"
    argv = [str(bwrap.path), *_walls(programs=True), "--", "true"]
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
