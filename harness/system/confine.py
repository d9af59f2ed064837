"""A program that can write to one directory only, with no network and no other process in sight.

Done with bubblewrap: a file system that holds the system's libraries, the simulator and the run's
directory, and nothing else (no /etc, /sys, /tmp, home; no shell unless the simulator is a script),
in user, process, network, IPC, UTS and cgroup namespaces of its own, without a capability, under a
filter for system calls. A file that a guest opens through semihosting outside of its directory does
not exist, or cannot be written, and SYS_SYSTEM finds no shell. Only the run's directory can be
written: /dev has no shared memory, and /proc is read-only (to root without capabilities bubblewrap
itself leaves /proc/sys writable).

The arguments go through a descriptor, so that /proc/1/cmdline has no path of the host.

The filter is libseccomp's. A system call that is refused changes the kernel, makes namespaces,
looks into other processes, gives a file the rights of its owner to whoever starts it, or is a large
surface that no simulator needs; it fails with EPERM, and so does a fork of what needs none. A
call of another architecture than the machine's own ends the program (libseccomp's default).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness.core.errors import InfraError, ToolMissing
from harness.core.tables import read_table
from harness.system import toolchain
from harness.system.call import CallFailed, call
from harness.system.settings import is_on

REQUIRE = "HIL_REQUIRE_CONFINEMENT"
# All of the environment that a confined program gets from here.
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}
_PROBE_SECONDS = 20
_MOST_STATUS = 4096  # bytes
_SIGNALS = 64  # Linux, signal(7)
_NOBODY = "65532"  # inside; outside it is who we are
_LIBRARIES = tuple(f"{root}/lib{bits}" for root in ("", "/usr") for bits in ("", "32", "64", "x32"))
_ACCOUNT = f"guest:x:{_NOBODY}:{_NOBODY}::/nonexistent:/bin/sh\n"  # passwd(5)
# Where the mounts have their places, last of all; a run directory may be in /dev/shm.
_SEALED = ("--remount-ro", "/dev", "--remount-ro", "/")
_LOADER = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
_PROGRAMS = ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin")
# clone(2): the flags that make a namespace. The flags of clone3(2) lie in memory, where a filter
# cannot look; glibc falls back to clone(2) when clone3(2) fails with ENOSYS.
_NAMESPACES = 0x7E02_0000
_CLONE_THREAD = 0x0001_0000  # without it a process is made
# Calls that set the bits of a file's mode, and their argument; open(2) where it creates one.
_MODES = (
    *(("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("creat", 1)),
    *(("mkdir", 1), ("mkdirat", 2), ("mknod", 1), ("mknodat", 2)),
)
_OPENS = (("open", 1), ("openat", 2))  # the argument with its flags; the mode follows
_SPECIAL_BITS = (0o4000, 0o2000)  # set-user-ID, set-group-ID (inode(7))
# Newer calls that do the same and that libseccomp 2.5 has no name or a filter no eye for: their
# numbers are those of every architecture (Linux include/uapi/asm-generic/unistd.h).
_UNKNOWN_HERE = {"clone3": 435, "openat2": 437, "fchmodat2": 452}
_TERMINAL = {"TIOCSTI": 0x5412, "TIOCLINUX": 0x541C}  # put words into a terminal's mouth
_FAMILIES = (1, 2, 10)  # of sockets: AF_UNIX, AF_INET (of an empty network), AF_INET6
_MOST_FAMILIES = 64  # Linux has less than 50


@dataclass(frozen=True)
class ResourceLimits:
    """The most that a program may write to one file (then there is SIGXFSZ, or EFBIG where that is
    blocked), get as memory of its own, and use of a processor (then there is SIGXCPU)."""

    file_bytes: int | None = None
    memory_bytes: int | None = None
    cpu_seconds: int | None = None


@dataclass(frozen=True)
class Confinement:
    """Words to put in front of an argv, and the descriptors that it has to inherit.

    ``confined``: by bubblewrap. ``missing``: why the confinement is not full; None when it is.
    ``status``: the descriptor that bubblewrap reports to, out of the program's reach.
    """

    prefix: tuple[str, ...]
    descriptors: tuple[int, ...] = ()
    confined: bool = True
    missing: str | None = None
    status: int | None = None

    def started(self) -> bool:
        """Whether the program was started, once bubblewrap has ended: only then it reports an exit
        status (bwrap(1), --json-status-fd)."""
        if self.status is None:
            return True
        return b'"exit-code"' in os.pread(self.status, _MOST_STATUS, 0)


class NotConfined(InfraError):
    """A full confinement is required and not available. ``missing``: the part that is not."""

    kind = "not_confined"

    def __init__(self, missing: str) -> None:
        super().__init__(
            f"the guest cannot be confined as required: {missing}",
            hint="install bubblewrap and libseccomp2 and allow user namespaces (a container: "
            "--security-opt seccomp=unconfined), or run what you trust with "
            f"{REQUIRE}=0 (hil replay: --no-require-confinement)",
        )
        self.missing = missing


def required(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a run is refused that cannot be confined: as ``$HIL_REQUIRE_CONFINEMENT`` says, and
    where nobody says it, in CI."""
    return is_on(environ.get(REQUIRE, environ.get("CI", "")))


@contextmanager
def confined(
    writable: Path,
    executable: Path,
    readable: Sequence[Path],
    limits: ResourceLimits = ResourceLimits(),
    *,
    forks: bool = False,
    also_writable: Path | None = None,
    has_account: bool = False,
) -> Iterator[Confinement]:
    """The prefix for ``executable``, whose current directory is ``writable``, while the block runs.

    ``readable`` are the other files and directories it needs. It may start processes only with
    ``forks``, or as a script. ``also_writable`` is a file. ``has_account``: its user has a name.
    If bubblewrap does not work, only ``limits`` hold.
    """
    # At its hard limit, which follows later, it is killed.
    seconds = limits.cpu_seconds
    cpu = None if seconds is None else f"{seconds}:{seconds + 5}"
    each = {"core": 0, "fsize": limits.file_bytes, "data": limits.memory_bytes, "cpu": cpu}
    words = (f"--{name}={limit}" for name, limit in each.items() if limit is not None)
    bounded = (_tool("prlimit"), *words)
    walled, missing = _probe()
    if not walled:
        alone = (_tool("setpriv"), "--no-new-privs", "--")
        yield Confinement((*bounded, *alone), confined=False, missing=missing)
        return
    walls = arguments(writable, [executable, *readable], programs=_is_script(executable))
    with ExitStack() as stack:
        descriptors = [_readable(stack, b"")]
        walls = ("--json-status-fd", str(descriptors[0]), *walls)
        if also_writable is not None:
            walls = (*walls, "--bind", str(also_writable), str(also_writable))
        if has_account:
            descriptors.append(_readable(stack, _ACCOUNT.encode()))
            walls = (*walls, "--ro-bind-data", str(descriptors[-1]), "/etc/passwd")
        walls = (*walls, *_SEALED)
        if missing is None:
            program = filter_program(forks or _is_script(executable))
            descriptors.append(_readable(stack, program))
            walls = ("--seccomp", str(descriptors[-1]), *walls)
        descriptors.append(_readable(stack, "".join(f"{word}\0" for word in walls).encode()))
        prefix = (*bounded, _tool("bwrap"), "--args", str(descriptors[-1]), "--")
        yield Confinement(prefix, tuple(descriptors), missing=missing, status=descriptors[0])


def ending_signal(status: int) -> int | None:
    """The signal that ended a program, from the status that Popen has of its prefix.

    Negative, or through bubblewrap 128 and the number: the filter lets no guest leave with such a
    status. More than the number of a signal (255 is what abort() gives) is always its own.
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


def _tool(name: str) -> str:
    return str(toolchain.locate(name))


def _readable(stack: ExitStack, content: bytes) -> int:
    descriptor = os.memfd_create("confinement")
    stack.callback(os.close, descriptor)
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _shown(readable: Sequence[Path]) -> tuple[str, ...]:
    """Each existing path and what it is a link to, unless it is in a directory that is shown."""
    paths = {p for path in readable for p in (path, path.resolve()) if p.exists()}
    return tuple(sorted(str(p) for p in paths if paths.isdisjoint(p.parents)))


def _walls(programs: bool) -> tuple[str, ...]:
    places = (*_LIBRARIES, *_LOADER, *(_PROGRAMS if programs else ()))
    return (
        "--unshare-all",  # IPC, PID, network, UTS and, where there are any, cgroup namespaces
        "--unshare-user",  # also for root; bubblewrap fails where it cannot make one
        *("--uid", _NOBODY, "--gid", _NOBODY),
        *("--hostname", "guest"),
        "--die-with-parent",
        *("--cap-drop", "ALL"),
        *(word for place in places for word in _as_it_is(place)),
        *("--dev", "/dev"),
        *("--proc", "/proc", "--remount-ro", "/proc"),
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


def why_not() -> str | None:
    """Why bubblewrap cannot confine anything here; None when it can."""
    walled, missing = _probe()
    return None if walled else missing


def what_lacks() -> str | None:
    """The part that a full confinement lacks on this machine; None when it lacks nothing."""
    return _probe()[1]


@cache
def _probe() -> tuple[bool, str | None]:
    """Tries bubblewrap out, once in a process: whether it confines, and what is missing from a full
    confinement."""
    try:
        bwrap = toolchain.locate("bwrap")
    except ToolMissing:
        return False, "bubblewrap (bwrap) is not installed"
    try:
        _try_out(bwrap, filter_program(False))
    except (NoFilter, OSError, CallFailed) as no_filter:
        try:
            _try_out(bwrap, None)
        except (OSError, CallFailed) as error:
            return False, f"bubblewrap does not work here: {error}"
        return True, f"no filter for system calls: {no_filter}"
    return True, None


def _try_out(bwrap: Path, program: bytes | None) -> None:
    with ExitStack() as stack:
        given = () if program is None else (_readable(stack, program),)
        seccomp = [word for fd in given for word in ("--seccomp", str(fd))]
        argv = [str(bwrap), *seccomp, *_walls(programs=True), "--remount-ro", "/", "--", "true"]
        call(argv, _PROBE_SECONDS, descriptors=given)


class NoFilter(Exception):
    """Why there is none, in words."""


@cache
def filter_program(forks: bool) -> bytes:
    """The filter, as ``bwrap --seccomp`` takes it. Raises NoFilter."""
    try:
        import pyseccomp as seccomp
    except (ImportError, RuntimeError) as error:  # the latter without the library itself
        raise NoFilter(f"libseccomp cannot be used: {error}") from error
    refuse = seccomp.ERRNO(errno.EPERM)
    made = seccomp.SyscallFilter(seccomp.ALLOW)
    try:
        for name in read_table(__file__):
            made.add_rule(refuse, name)
        for number in _UNKNOWN_HERE.values():
            made.add_rule(seccomp.ERRNO(errno.ENOSYS), number)
        for bit in _SPECIAL_BITS:
            for name, place in _MODES:
                made.add_rule(refuse, name, seccomp.Arg(place, seccomp.MASKED_EQ, bit, bit))
            for name, place in _OPENS:
                creates = seccomp.Arg(place, seccomp.MASKED_EQ, os.O_CREAT, os.O_CREAT)
                special = seccomp.Arg(place + 1, seccomp.MASKED_EQ, bit, bit)
                made.add_rule(refuse, name, creates, special)
        if not forks:
            for name in ("fork", "vfork"):
                made.add_rule(refuse, name)
            made.add_rule(refuse, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, _CLONE_THREAD, 0))
        for bit in range(32):
            if _NAMESPACES >> bit & 1:
                flag = 1 << bit
                made.add_rule(refuse, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, flag, flag))
        for bit in range(8, 32):  # a status of 256 would be taken for 0 (wait(2) has 8 bits)
            low, high = 0xFF, 1 << bit
            multiple = seccomp.Arg(0, seccomp.MASKED_EQ, low | high, high)
            made.add_rule(seccomp.KILL_PROCESS, "exit_group", multiple)
        if not forks:  # a shell passes such a status on
            for status in range(129, 129 + _SIGNALS):  # would be taken for a signal's
                own = seccomp.Arg(0, seccomp.MASKED_EQ, 0xFF, status)
                made.add_rule(seccomp.KILL_PROCESS, "exit_group", own)
        for request in _TERMINAL.values():
            made.add_rule(refuse, "ioctl", seccomp.Arg(1, seccomp.MASKED_EQ, 0xFFFF_FFFF, request))
        for family in set(range(_MOST_FAMILIES)) - set(_FAMILIES):
            made.add_rule(refuse, "socket", seccomp.Arg(0, seccomp.EQ, family))
        made.add_rule(refuse, "socket", seccomp.Arg(0, seccomp.GE, _MOST_FAMILIES))
        descriptor = os.memfd_create("filter")
        with open(descriptor, "w+b") as file:
            made.export_bpf(file)
            os.lseek(descriptor, 0, os.SEEK_SET)
            return file.read()
    except (OSError, ValueError) as error:
        raise NoFilter(f"libseccomp refuses a rule: {error}") from error
