"""What a confined program cannot do; each attempt is made for real."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from pathlib import Path

import pytest

from harness.system import confine, toolchain
from harness.system.confine import confinement, why_not
from harness.system.process import Bounds, Ended, run

# A simulator that is a script has the system's programs in sight; these tests want a shell.
SCRIPT = Path(__file__).parent.parent / "doubles" / "fvp.sh"
needs_bwrap = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


def confined(work: Path, script: str, readable: tuple[Path, ...] = ()) -> tuple[Ended, str]:
    console = work.parent / "console.log"
    ended = run(
        [*confinement(work, SCRIPT, readable).prefix, "sh", "-c", script],
        cwd=work,
        environment={"PATH": os.environ["PATH"]},
        console=console,
        bounds=Bounds(20, 20),
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
    assert said.count("Read-only file system") == 2
    assert said.count("nonexistent") + said.count("No such file") >= 1


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
    """No bwrap on PATH: not confined, with the reason, and still tied to our life."""
    real = toolchain.find
    monkeypatch.setattr(toolchain, "find", lambda name: None if name == "bwrap" else real(name))
    why_not.cache_clear()
    try:
        walls = confinement(work, SCRIPT, ())
    finally:
        why_not.cache_clear()
    assert not walls.confined
    assert walls.reason == "bubblewrap (bwrap) is not installed"
    assert "--pdeathsig" in walls.prefix


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
    why_not.cache_clear()
    try:
        reason = why_not()
    finally:
        why_not.cache_clear()
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


def test_a_program_that_is_no_script_gets_no_shell(work: Path) -> None:
    """A guest's SYS_SYSTEM is system(3) in the simulator: without /bin/sh it can only fail."""
    program = work.parent / "model"
    program.write_bytes(b"\x7fELF")
    words = confinement(work, program, ()).prefix
    if why_not() is None:
        assert not {"/bin", "/usr/bin"} & set(words)
        assert str(program) in words


def test_only_what_is_needed_is_shown(tmp_path: Path) -> None:
    """In the order of the paths, so that an outer directory does not cover an inner one; what
    does not exist is left out, bubblewrap would refuse it."""
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    words = confine.arguments(tmp_path / "w", [inner, tmp_path / "a", tmp_path / "absent"])
    assert words.index(str(tmp_path / "a")) < words.index(str(inner)) < words.index("--bind")
    assert str(tmp_path / "absent") not in words
