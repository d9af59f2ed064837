"""The system calls that a confined program is refused: a filter for the kernel's seccomp.

libseccomp builds it. A refused call changes the kernel, makes namespaces, looks into other
processes, or is a large surface that no simulator needs; it fails with EPERM. A call of another
architecture than the machine's own ends the program (libseccomp's default).
"""

from __future__ import annotations

import errno
import os
from functools import cache

_REFUSED = (
    # the machine
    "acct",
    "adjtimex",
    "clock_adjtime",
    "clock_settime",
    "delete_module",
    "finit_module",
    "init_module",
    "ioperm",
    "iopl",
    "kexec_file_load",
    "kexec_load",
    "quotactl",
    "quotactl_fd",
    "reboot",
    "sethostname",
    "setdomainname",
    "settimeofday",
    "swapoff",
    "swapon",
    "syslog",
    "vhangup",
    # file systems and namespaces
    "chroot",
    "fanotify_init",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fspick",
    "mount",
    "mount_setattr",
    "move_mount",
    "name_to_handle_at",
    "open_by_handle_at",
    "open_tree",
    "pivot_root",
    "setns",
    "umount2",
    "unshare",
    # keys and other processes
    "add_key",
    "kcmp",
    "keyctl",
    "pidfd_getfd",
    "process_madvise",
    "process_vm_readv",
    "process_vm_writev",
    "ptrace",
    "request_key",
    # surface
    "bpf",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "lookup_dcookie",
    "perf_event_open",
    "userfaultfd",
)
# clone(2): the flags that make a namespace. What clone3(2) is asked for lies in memory, where a
# filter cannot look; glibc takes clone(2) when it is told that there is none.
_NAMESPACES = 0x7E02_0000
_TERMINAL = {"TIOCSTI": 0x5412, "TIOCLINUX": 0x541C}  # put words into a terminal's mouth
_FAMILIES = (1, 2, 10)  # of sockets: AF_UNIX, AF_INET (of an empty network), AF_INET6
_MOST_FAMILIES = 64  # Linux has less than 50


class NoFilter(Exception):
    """Why there is none, in words."""


@cache
def filter_program() -> bytes:
    """The filter, as ``bwrap --seccomp`` takes it. Raises NoFilter."""
    try:
        import pyseccomp as seccomp
    except (ImportError, RuntimeError) as error:  # the latter without the library itself
        raise NoFilter(f"libseccomp cannot be used: {error}") from error
    refuse = seccomp.ERRNO(errno.EPERM)
    made = seccomp.SyscallFilter(seccomp.ALLOW)
    try:
        for name in _REFUSED:
            made.add_rule(refuse, name)
        made.add_rule(seccomp.ERRNO(errno.ENOSYS), "clone3")
        for bit in range(32):
            if _NAMESPACES >> bit & 1:
                flag = 1 << bit
                made.add_rule(refuse, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, flag, flag))
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
