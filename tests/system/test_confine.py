"""What a confined program cannot do; each attempt is made for real."""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from harness.system import confine, toolchain
from harness.system.confine import filter_program, what_lacks, why_not
from harness.system.process import Bounds, Ended, run

# A simulator that is a script has the system's programs in sight; these tests want a shell.
SCRIPT = Path(__file__).parent.parent / "doubles" / "fvp.sh"
needs_bwrap = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


def confined(work: Path, script: str, readable: tuple[Path, ...] = ()) -> tuple[Ended, str]:
    console = work.parent / "console.log"
    with confine.confined(work, SCRIPT, readable) as walls:
        ended = run(
            [*walls.prefix, "sh", "-c", script],
            cwd=work,
            environment=confine.ENVIRONMENT,
            console=console,
            bounds=Bounds(20, 20),
            descriptors=walls.descriptors,
        )
    return ended, console.read_text()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@needs_bwrap
def test_only_its_directory_is_writable(work: Path) -> None:
    outside = work.parent / "outside"
    outside.write_text("before")
    script = (
        f"echo x > inside; echo x > {outside}; echo x > /usr/lib/hil-t; echo x > /etc/hil-test; "
        f"echo x > {Path.home()}/hil-t"
        "; mount -o remount,rw / ; exit 5"
    )
    ended, said = confined(work, script, readable=(outside,))
    assert ended.status == 5
    assert (work / "inside").read_text() == "x\n"
    assert outside.read_text() == "before"
    assert not Path("/etc/hil-test").exists()
    assert not (Path.home() / "hil-t").exists()
    assert said.count("Read-only file system") == 3
    assert said.count("nonexistent") + said.count("No such file") >= 1


RIGHTS = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
static void tried(const char* what, long result) {
  printf("%s: %s\n", what, result >= 0 ? "done" : errno == EPERM ? "refused" : "unknown call");
}
int main(void) {
  tried("plain chmod", chmod("mine", 0755));
  tried("plain open", open("other", O_CREAT | O_WRONLY, 0644));
  tried("chmod", chmod("mine", 06755));
  tried("fchmod", fchmod(open("mine", O_RDONLY), 04755));
  tried("fchmodat", fchmodat(AT_FDCWD, "mine", 02755, 0));
  tried("fchmodat2", syscall(452, AT_FDCWD, "mine", 06755, 0));
  tried("open", open("made", O_CREAT | O_WRONLY, 04755));
  tried("creat", syscall(SYS_openat, AT_FDCWD, "made", O_CREAT | O_WRONLY, 02755));
  tried("mknod", mknod("made", S_IFREG | 04755, 0));
  tried("mkdir", mkdir("folder", 02755));
  fflush(stdout);
  long child = fork();
  if (child == 0) _exit(0);
  tried("fork", child);
  child = syscall(SYS_clone, 17, 0, 0, 0, 0);
  if (child == 0) _exit(0);
  tried("clone", child);
}
"""


@needs_bwrap
@pytest.mark.skipif(what_lacks() is not None, reason=str(what_lacks()))
@pytest.mark.parametrize("forks", [False, True])
def test_no_file_gets_its_owner_s_rights_and_nothing_forks(work: Path, forks: bool) -> None:
    """A guest of root would leave a program that makes anybody root."""
    (work / "mine").touch()
    program = work.parent / "rights"
    (work.parent / "rights.c").write_text(RIGHTS)
    source = str(work.parent / "rights.c")
    subprocess.run(["gcc", "-o", str(program), source], check=True)
    with confine.confined(work, program, (), forks=forks) as walls:
        run(
            [*walls.prefix, str(program)],
            cwd=work,
            environment=confine.ENVIRONMENT,
            console=work.parent / "console.log",
            bounds=Bounds(20, 20),
            descriptors=walls.descriptors,
        )
    said = dict(line.split(": ") for line in (work.parent / "console.log").read_text().splitlines())
    processes = dict.fromkeys(("fork", "clone"), "done" if forks else "refused")
    allowed = dict.fromkeys(("plain chmod", "plain open"), "done")
    refused = ("chmod", "fchmod", "fchmodat", "open", "creat", "mknod", "mkdir")
    wanted = {**allowed, **dict.fromkeys(refused, "refused"), "fchmodat2": "unknown call"}
    assert said == {**wanted, **processes}
    assert all(path.stat().st_mode & 0o6000 == 0 for path in work.iterdir())


@needs_bwrap
def test_no_network(work: Path) -> None:
    """A server of ours that listens on the loopback cannot be reached."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.01)
        code = (
            "import socket\n"
            f"try: socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 2)\n"
            "except OSError as e: print('refused', e)"
        )
        ended, said = confined(
            work, f'{sys.executable} -c "{code}"', (Path(sys.prefix), Path(sys.base_prefix))
        )
        with pytest.raises(TimeoutError):
            server.accept()
    assert ended.status == 0
    assert "refused" in said


@needs_bwrap
def test_no_other_process_in_sight(work: Path) -> None:
    """Our own process is not there, and cannot be signalled."""
    script = (
        f"ls /proc | grep -c '^[0-9]'; [ -d /proc/{os.getpid()} ] && cat /proc/{os.getpid()}/comm"
    )
    ended, said = confined(work, script + f"; kill -0 {os.getpid()} 2>/dev/null || echo unseen")
    assert ended.status == 0
    assert int(said.split()[0]) < 8
    assert said.split()[-1] == "unseen"


@needs_bwrap
def test_temporary_files_of_others_are_hidden(work: Path) -> None:
    """/tmp is the program's own and empty, but for what it was given."""
    secret = work.parent / "secret"
    secret.write_text("x")
    given = work.parent / "given"
    given.write_text("given")
    ended, said = confined(work, f"cat {given}; cat {secret}", (given,))
    if str(work).startswith("/tmp/"):
        assert ended.status == 1
        assert "No such file" in said
    assert said.startswith("given")


@needs_bwrap
def test_escaped_children_die_with_the_run(work: Path) -> None:
    """A process that leaves the session still ends with the confined program."""
    script = "setsid sleep 1000 & echo started; exit 0"
    ended, said = confined(work, script)
    assert (ended.stop, ended.status, said) == ("exited", 0, "started\n")
    assert ended.complete


@needs_bwrap
def test_signal_is_status_above_128(work: Path) -> None:
    """bubblewrap reports a signal as a shell does; ``simulate`` turns it back."""
    ended, _ = confined(work, "kill -SEGV $$")
    assert (ended.status, ended.signal) == (139, None)


def test_without_bubblewrap_the_record_says_so(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No bwrap on PATH: not confined, with the reason."""
    real = toolchain.locate
    monkeypatch.setattr(
        toolchain, "locate", lambda name: real("no-bwrap" if name == "bwrap" else name)
    )
    spec = toolchain.specs()["bwrap"]
    monkeypatch.setitem(toolchain.specs(), "no-bwrap", replace(spec, name="no-bwrap"))
    monkeypatch.setattr(confine, "_probe", confine._probe.__wrapped__)
    with confine.confined(work, SCRIPT, ()) as walls:
        assert not walls.confined
    assert walls.missing == "bubblewrap (bwrap) is not installed"
    assert "--no-new-privs" in walls.prefix


def test_broken_bubblewrap_is_detected(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bwrap that may not make namespaces (as in many containers) is found out beforehand."""
    fake = tmp_path / "bwrap"
    fake.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo bwrap 0.8.0 && exit\n'
        "echo 'bwrap: No permissions to create a new namespace' >&2; exit 1\n"
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("HIL_HOME", str(tmp_path / "hil"))
    monkeypatch.setattr(confine, "_probe", confine._probe.__wrapped__)
    reason = why_not()
    assert reason is not None
    assert "No permissions to create a new namespace" in reason


@needs_bwrap
@pytest.mark.parametrize("name", ["/etc/passwd", "/etc/shadow", "../../secret", "../secret"])
def test_files_of_the_host_do_not_exist(work: Path, name: str) -> None:
    """What a guest names through semihosting is opened by the simulator, which sees nothing."""
    for folder in (work.parent, work.parent.parent):
        with contextlib.suppress(FileExistsError):
            (folder / "secret").open("x").write("secret")
    ended, said = confined(work, f"cat {name}")
    assert ended.status == 1
    assert "No such file" in said


def test_a_program_that_is_not_a_script_gets_no_shell(work: Path) -> None:
    """A guest's SYS_SYSTEM is system(3) in the simulator: without /bin/sh it can only fail."""
    program = work.parent / "model"
    program.write_bytes(b"\x7fELF")
    if why_not() is None:
        with confine.confined(work, program, ()) as walls:
            words = os.read(walls.descriptors[-1], 65536).decode().split("\0")
        assert not {"/bin", "/usr/bin"} & set(words)
        assert str(program) in words


def test_only_what_is_needed_is_shown(tmp_path: Path) -> None:
    """What is in a directory that is shown needs no place of its own; what does not exist is left
    out, bubblewrap would refuse it."""
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    words = confine.arguments(tmp_path / "w", [inner, tmp_path / "a", tmp_path / "absent"])
    assert words.index(str(tmp_path / "a")) < words.index("--bind")
    assert str(inner) not in words
    assert str(tmp_path / "absent") not in words


@needs_bwrap
@pytest.mark.parametrize(
    ("program", "started"),
    [("echo 'bwrap: no'; exit 1", True), ("exit 0", True), (None, False)],
)
def test_bubblewrap_says_whether_the_program_started(
    tmp_path: Path, program: str | None, started: bool
) -> None:
    """The program cannot: what it prints is its own, and the descriptor is not there for it."""
    command = tmp_path / "program"
    if program is not None:
        command.write_text(f"#!/bin/sh\n{program}\n")
        command.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    with confine.confined(work, command, ()) as walls:
        subprocess.run([*walls.prefix, command], pass_fds=walls.descriptors, check=False)
        assert walls.started() is started


@needs_bwrap
def test_a_file_outside_may_be_written_and_a_user_has_a_name(tmp_path: Path) -> None:
    """Only where a launch wants it."""
    work, card = tmp_path / "work", tmp_path / "card"
    work.mkdir()
    card.touch()
    command = tmp_path / "program"
    command.write_text(f"#!/bin/sh\nid -un >out; echo written >{card}\n")
    command.chmod(0o755)
    for wanted in (False, True):
        also = card if wanted else None
        with confine.confined(work, command, (), also_writable=also, has_account=wanted) as walls:
            subprocess.run([*walls.prefix, command], pass_fds=walls.descriptors, check=False)
        assert card.read_text() == ("written\n" if wanted else "")
        assert ((work / "out").read_text() == "guest\n") is wanted


@needs_bwrap
def test_a_run_directory_may_be_in_memory() -> None:
    """Below /dev, of which nothing else is there or can be written."""
    with TemporaryDirectory(dir="/dev/shm") as folder:
        work = Path(folder) / "work"
        work.mkdir()
        _, said = confined(work, "touch made /dev/shm/other /dev/other; ls /dev/shm")
        assert (work / "made").exists()
    assert said.count("Read-only file system") == 2
    assert said.splitlines()[-1] == Path(folder).name


@needs_bwrap
def test_the_kernels_settings_are_not_its_to_change(work: Path) -> None:
    """Also as root: without capabilities bubblewrap takes /proc/sys for unwritable and leaves it
    open, and the files below belong to root."""
    setting = Path("/proc/sys/kernel/core_pattern")
    before = setting.read_bytes()
    try:
        ended, said = confined(work, f"echo planted > {setting}; echo x > /proc/self/oom_score_adj")
        assert setting.read_bytes() == before
    finally:
        if setting.read_bytes() != before:
            setting.write_bytes(before)
    assert ended.status
    assert said.count("Read-only file system") == 2


@needs_bwrap
def test_nothing_else_can_be_filled(work: Path) -> None:
    """No shared memory, no temporary files, not even the sandbox's own root: all of that would be
    the host's memory."""
    script = "for f in /x /tmp/x /dev/shm/x /dev/x /proc/x /usr/x; do echo x > $f; done; ls /sys"
    _, said = confined(work, script)
    refused = ("Read-only file system", "Directory nonexistent", "nonexistent", "No such file")
    lines = [line for line in said.splitlines() if any(word in line for word in refused)]
    assert len(lines) == 7, said


@needs_bwrap
def test_it_is_nobody(work: Path) -> None:
    """No capability, no way to get one, a user namespace of its own and another uid in it."""
    _, said = confined(work, "id -u; readlink /proc/self/ns/user; cat /proc/self/status; uname -n")
    lines = said.splitlines()
    assert lines[0] == "65532"
    assert lines[1] != os.readlink("/proc/self/ns/user")
    status = dict(line.split(":\t", 1) for line in lines[2:] if ":\t" in line)
    assert {status[f"Cap{kind}"] for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1"
    assert lines[-1] == "guest"


needs_filter = pytest.mark.skipif(what_lacks() is not None, reason=str(what_lacks()))


@needs_filter
@pytest.mark.parametrize("status", [0, 1, 255, 257, -1, 256, 512, 1 << 16, 1 << 31])
def test_an_exit_status_that_reads_as_0_is_a_signal(work: Path, status: int) -> None:
    """wait(2) has the low eight bits of a status: of a multiple of 256 they are 0."""
    code = f"import ctypes; ctypes.CDLL(None)._exit({status})"
    where = (Path(sys.prefix), Path(sys.base_prefix))
    ended, _ = confined(work, f"{sys.executable} -c '{code}'; exit $?", where)
    seen = status & 0xFF
    assert ended.status == (128 + signal.SIGSYS if status and not seen else seen)


@needs_filter
def test_system_calls_that_no_simulator_needs_are_refused(work: Path) -> None:
    """Each is made with arguments at which it would not fail with EPERM by itself; namespaces by
    clone(2) are refused like those by unshare(2)."""
    code = (
        "import ctypes, socket\n"
        "c = ctypes.CDLL(None, use_errno=True)\n"
        "for call in ((272, 0x10000000), (56, 0x10000011, 0, 0, 0, 0), (425, 1, 0), (323, 0),\n"
        "             (101, 0, 0, 0, 0), (435, 0, 0)):\n"
        "    if c.syscall(*call) == 0: print('in a child'); break\n"
        "    print(ctypes.get_errno())\n"
        "try: socket.socket(socket.AF_NETLINK)\n"
        "except OSError as e: print(e.errno)\n"
    )
    if platform.machine() != "x86_64":
        pytest.skip("the numbers are those of x86-64")
    (work / "t.py").write_text(code)
    where = (Path(sys.prefix), Path(sys.base_prefix))
    _, said = confined(work, f"{sys.executable} t.py; grep Seccomp: /proc/self/status", where)
    lines = said.splitlines()
    assert lines[:7] == ["1", "1", "1", "1", "1", str(errno.ENOSYS), "1"], said
    assert lines[-1].split() == ["Seccomp:", "2"]


@needs_bwrap
def test_it_reads_nothing_of_the_hosts_processes(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    where = work.parent / "hidden-path"
    where.mkdir()
    script = "cat /proc/self/environ /proc/1/environ /proc/1/cmdline | tr '\\0' ' '; ls /proc/1/fd"
    _, said = confined(work, script, (where,))
    assert "hunter2" not in said
    assert "hidden-path" not in said
    assert "--args" in said


@pytest.mark.parametrize("bwrap", [True, False])
def test_a_file_has_its_limit(work: Path, monkeypatch: pytest.MonkeyPatch, bwrap: bool) -> None:
    """The kernel ends who writes beyond it, also at an offset, and confined or not."""
    if bwrap and why_not() is not None:
        pytest.skip(str(why_not()))
    if not bwrap:
        monkeypatch.setattr(confine, "_probe", lambda: (False, "planted"))
    past = "exec dd if=/dev/zero of=big bs=1 count=1 seek=3000000 2> /dev/null"
    for script in ("exec head -c 2000000 /dev/zero > big", past):
        with confine.confined(
            work, SCRIPT, (), confine.ResourceLimits(file_bytes=1 << 20)
        ) as walls:
            ended = run(
                [*walls.prefix, "sh", "-c", script],
                cwd=work,
                environment=confine.ENVIRONMENT,
                console=work.parent / "c",
                bounds=Bounds(20, 20),
                descriptors=walls.descriptors,
            )
        status = ended.status if ended.signal is None else -ended.signal
        assert status is not None
        assert confine.ending_signal(status) == signal.SIGXFSZ
        assert (work / "big").stat().st_size <= 1 << 20


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({}, False),
        ({"CI": "true"}, True),
        ({"CI": "false"}, False),
        ({"CI": ""}, False),
        ({"CI": "1", "HIL_REQUIRE_CONFINEMENT": "0"}, False),
        ({"HIL_REQUIRE_CONFINEMENT": "1"}, True),
    ],
)
def test_where_confinement_is_required(environ: dict[str, str], wanted: bool) -> None:
    assert confine.required(environ) is wanted


def test_a_filter_that_cannot_be_made_is_said(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without libseccomp the rest of the walls stands, and what lacks has a name."""
    if why_not() is not None:
        pytest.skip(str(why_not()))
    monkeypatch.setattr(confine, "filter_program", filter_program.__wrapped__)
    monkeypatch.setitem(sys.modules, "pyseccomp", None)
    monkeypatch.setattr(confine, "_probe", confine._probe.__wrapped__)
    with confine.confined(work, SCRIPT, ()) as walls:
        assert walls.confined
    assert walls.missing is not None
    assert walls.missing.startswith("no filter for system calls: libseccomp cannot be used")


# Starts a program behind walls again and again, as processes that are killed soon after.
KILLED = """
import os, signal, sys, time
from pathlib import Path
from harness.system import confine
from harness.system.process import Bounds, Watch, run

def killed(after):
    watch = Watch()
    watch.started = lambda _console: (time.sleep(after), os.kill(os.getpid(), signal.SIGKILL))
    with confine.confined(work, Path(script), ()) as walls:
        run([*walls.prefix, "sh", "-c", f"{name} & exec {name}"], cwd=work,
            environment=confine.ENVIRONMENT, console=work / "log", bounds=Bounds(20, 20),
            watch=watch, descriptors=walls.descriptors)

work, script, name = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
confine.why_not()
for moment in range(40):
    if not (child := os.fork()):
        killed(moment * 0.0005)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
"""


@needs_bwrap
def test_nothing_is_left_of_a_harness_that_is_killed(work: Path) -> None:
    """Not even when it is killed while bubblewrap still makes its processes, of which some would
    wait for others for ever."""
    name = f"sleep 90.{os.getpid()}"
    subprocess.run([sys.executable, "-c", KILLED, work, SCRIPT, name], check=True)

    def living() -> list[Path]:
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it ended while we looked
                if name.encode() in (process / "cmdline").read_bytes().replace(b"\0", b" "):
                    found.append(process)
        return found

    until = time.monotonic() + 10  # on a busy machine dying takes a while
    while living() and time.monotonic() < until:
        time.sleep(0.05)
    assert living() == []
