"""A bounded child: how it ends, what it wrote, and that nothing of it survives."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.system import process
from harness.system.process import Bounds, Ended, Watch, run, tree_cpu_seconds, tree_is_ready
from harness.system.quota import Excess
from tests.processes import ends


def watching(output: Callable[[bytes], None] = lambda _data: None, **methods: object) -> Watch:
    """A Watch of which ``methods`` are others."""
    made = Watch(output)
    vars(made).update(methods)
    return made


def child(
    tmp_path: Path, *argv: str, host: float = 30, stall: float = 30, output: int = 64 << 20
) -> tuple[Ended, bytes]:
    """Run ``argv`` unconfined; what came of it and every byte of its console."""
    console = tmp_path / "console.log"
    ended = run(
        [*argv],
        cwd=tmp_path,
        environment={"PATH": os.environ["PATH"]},
        console=console,
        bounds=Bounds(host, stall, output),
    )
    return ended, console.read_bytes()


def shell(tmp_path: Path, script: str, **bounds: float) -> tuple[Ended, bytes]:
    return child(tmp_path, "sh", "-c", script, **bounds)  # type: ignore[arg-type]


def recorded(tmp_path: Path) -> int:
    return int((tmp_path / "pid").read_text())


def test_exit_status_and_order(tmp_path: Path) -> None:
    """stdout and stderr arrive in the order they were written, and the status is the child's."""
    ended, said = shell(tmp_path, "echo a; echo b >&2; echo c; exit 7")
    assert (ended.stop, ended.status, ended.signal) == ("exited", 7, None)
    assert said == b"a\nb\nc\n"
    assert ended.output_bytes == 6
    assert ended.complete


def test_signal(tmp_path: Path) -> None:
    ended, _ = shell(tmp_path, "kill -SEGV $$")
    assert (ended.stop, ended.status, ended.signal) == ("exited", None, signal.SIGSEGV)


def test_stdin_is_at_its_end(tmp_path: Path) -> None:
    """A child that reads its input gets none, and does not wait for one."""
    ended, said = shell(tmp_path, "cat; echo done")
    assert (ended.stop, said) == ("exited", b"done\n")


def test_the_environment_is_the_one_that_was_given(tmp_path: Path) -> None:
    _, said = child(tmp_path, "env")
    assert said.decode().splitlines() == [f"PATH={os.environ['PATH']}"]


def test_deadline(tmp_path: Path) -> None:
    """A busy child is stopped, what it wrote before is kept, and it has no exit status."""
    ended, said = shell(tmp_path, "echo started; while :; do :; done", host=0.7)
    assert (ended.stop, ended.status, ended.signal) == ("deadline", None, None)
    assert said == b"started\n"


def test_stall(tmp_path: Path) -> None:
    """Neither output nor CPU time: stopped long before the deadline."""
    ended, said = shell(tmp_path, "echo started; sleep 100", stall=0.8)
    assert (ended.stop, said) == ("stall", b"started\n")


def test_silent_but_busy_is_not_a_stall(tmp_path: Path) -> None:
    """A long inference prints nothing; its CPU time, in a grandchild too, keeps it alive."""
    busy = "sh -c 'while :; do :; done' & wait"
    ended, _ = shell(tmp_path, busy, host=2.0, stall=0.8)
    assert ended.stop == "deadline"


def test_idle_while_somebody_computes_for_it_is_not_a_stall(tmp_path: Path) -> None:
    """A guest that waits for the host's model of an NPU uses no CPU time of its own."""
    console = tmp_path / "console.log"
    started = time.monotonic()
    ended = run(
        ["sleep", "100"],
        cwd=tmp_path,
        environment={"PATH": os.environ["PATH"]},
        console=console,
        bounds=Bounds(30, 0.5),
        watch=watching(busy=lambda: time.monotonic() < started + 2),
    )
    assert ended.stop == "stall"
    assert ended.wall_seconds > 2


def test_idle_but_talking_is_not_a_stall(tmp_path: Path) -> None:
    ended, _ = shell(tmp_path, "for i in 1 2 3 4 5 6; do echo $i; sleep 0.3; done", stall=1.0)
    assert ended.stop == "exited"


def test_sigterm_is_not_asked(tmp_path: Path) -> None:
    """A child that ignores every signal it can is stopped all the same."""
    ended, _ = shell(tmp_path, "trap '' TERM INT HUP QUIT; while :; do :; done", host=0.5)
    assert ended.stop == "deadline"


def test_grandchild_that_keeps_the_console_open(tmp_path: Path) -> None:
    """The child ends, its background process holds the pipe: it is killed, nothing waits."""
    ended, said = shell(tmp_path, "sleep 100 & echo $! > pid; echo hi; exit 3")
    assert (ended.stop, ended.status, said) == ("exited", 3, b"hi\n")
    assert ended.complete
    assert ends(recorded(tmp_path))


def test_escaped_grandchild_is_noticed(tmp_path: Path) -> None:
    """One that left the session cannot be killed here (confinement does that); the run ends
    and says that its console may not be complete."""
    script = "setsid sh -c 'echo $$ > pid; exec sleep 100' & while ! [ -s pid ]; do :; done; exit 0"
    ended, _ = shell(tmp_path, script)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert ended.stop == "exited"
    assert not ended.complete


def test_deadline_kills_the_whole_group(tmp_path: Path) -> None:
    ended, _ = shell(tmp_path, "sleep 100 & echo $! > pid; wait", host=2.0)
    assert ended.stop == "deadline"
    assert ends(recorded(tmp_path))


def test_flood(tmp_path: Path) -> None:
    """20 MB arrive whole, and the times say how far the console was when."""
    line = b"0123456789abcde\n"
    count = 20_000_000 // len(line)
    code = f"import sys; sys.stdout.buffer.write({line!r} * {count})"
    ended, said = child(tmp_path, sys.executable, "-c", code)
    assert ended.stop == "exited"
    assert said == line * count
    assert ended.times[-1][0] == len(said)


def test_endless_flood_is_bounded(tmp_path: Path) -> None:
    ended, said = child(tmp_path, "yes", output=1 << 20)
    assert ended.stop == "output_limit"
    assert len(said) > 1 << 20


def test_a_line_without_an_end_is_bounded(tmp_path: Path) -> None:
    """Well before the bound of the console: nothing reads the rest of such a line."""
    ended, said = shell(tmp_path, "echo first; exec tr '\\0' x < /dev/zero", output=1 << 40)
    assert (ended.stop, ended.excess) == ("output_limit", Excess.LINE)
    assert 32 << 20 < len(said) < 34 << 20


def test_many_lines_are_not_one(tmp_path: Path) -> None:
    script = "for i in 1 2 3; do head -c 15000000 /dev/zero | tr '\\0' x; echo; done"
    ended, said = shell(tmp_path, script)
    assert (ended.stop, ended.excess, len(said)) == ("exited", None, 45_000_003)


def test_a_flood_that_is_read_slowly_meets_its_deadline(tmp_path: Path) -> None:
    """Limits are looked at between a few pieces, not when all that came is read."""
    pieces: list[int] = []

    def slowly(data: bytes) -> None:
        time.sleep(0.1)
        pieces.append(len(data))

    ended = run(
        ["yes"],
        cwd=tmp_path,
        environment={"PATH": os.environ["PATH"]},
        console=tmp_path / "log",
        bounds=Bounds(0.2, 30),
        watch=Watch(slowly),
    )
    assert ended.stop == "deadline"
    assert len(pieces) < 20


def test_a_flood_waits_for_a_slow_reader(tmp_path: Path) -> None:
    """Nothing is read ahead: the child is at most a pipe (and one piece) before what we took,
    so that our memory stays flat however much it writes."""
    code = (
        "import sys\n"
        "for i in range(400):\n"
        "    open('written', 'w').write(str(i * 65536))\n"
        "    sys.stdout.buffer.write(b'x' * 65536); sys.stdout.buffer.flush()\n"
    )
    taken = 0
    ahead = []

    def slowly(data: bytes) -> None:
        nonlocal taken
        time.sleep(0.002)
        ahead.append(int((tmp_path / "written").read_text() or 0) - taken)
        taken += len(data)

    run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        environment={"PATH": os.environ["PATH"]},
        console=tmp_path / "log",
        bounds=Bounds(60, 60),
        watch=Watch(slowly),
    )
    assert taken == 400 * 65536
    assert max(ahead) <= 3 * 65536


def test_a_child_that_closes_its_console_and_goes_on(tmp_path: Path) -> None:
    """Its end is still waited for, without spinning on the console's end."""
    looks = []
    ended = run(
        ["sh", "-c", "echo hi; exec >&- 2>&-; sleep 1; exit 4"],
        cwd=tmp_path,
        environment={"PATH": os.environ["PATH"]},
        console=tmp_path / "log",
        bounds=Bounds(30, 30),
        watch=watching(busy=lambda: bool(looks.append(1))),  # type: ignore[func-returns-value]
    )
    assert (ended.stop, ended.status, ended.complete) == ("exited", 4, True)
    assert (tmp_path / "log").read_bytes() == b"hi\n"
    assert len(looks) < 200


def test_no_file_stays_open(tmp_path: Path) -> None:
    """Neither after an end nor after a failure of the watcher."""

    def fail(_data: bytes) -> None:
        raise RuntimeError("planted")

    before = len(os.listdir("/proc/self/fd"))
    shell(tmp_path, "echo hi")
    with pytest.raises(RuntimeError, match="planted"):
        run(
            ["echo", "hi"],
            cwd=tmp_path,
            environment={"PATH": os.environ["PATH"]},
            console=tmp_path / "log",
            bounds=Bounds(10, 10),
            watch=Watch(fail),
        )
    assert len(os.listdir("/proc/self/fd")) == before


def test_binary_garbage(tmp_path: Path) -> None:
    """All byte values pass unchanged: no decoding, no line ends rewritten."""
    code = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 3 + b'\\r\\n\\xff\\xfe\\x00')"
    _, said = child(tmp_path, sys.executable, "-c", code)
    assert said == bytes(range(256)) * 3 + b"\r\n\xff\xfe\x00"


def test_output_is_passed_on(tmp_path: Path) -> None:
    """A caller sees the same bytes as the log."""
    seen: list[bytes] = []
    run(
        ["sh", "-c", "echo one; sleep 0.1; echo two"],
        cwd=tmp_path,
        environment={"PATH": os.environ["PATH"]},
        console=tmp_path / "log",
        bounds=Bounds(10, 10),
        watch=Watch(seen.append),
    )
    assert b"".join(seen) == b"one\ntwo\n" == (tmp_path / "log").read_bytes()


def test_failure_in_the_watcher_kills_the_child(tmp_path: Path) -> None:
    """Whatever goes wrong on our side, here an interrupt, the child does not survive it."""

    def interrupt(_data: bytes) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(
            ["sh", "-c", "echo $$ > pid; echo hi; sleep 100"],
            cwd=tmp_path,
            environment={"PATH": os.environ["PATH"]},
            console=tmp_path / "log",
            bounds=Bounds(10, 10),
            watch=Watch(interrupt),
        )
    assert ends(recorded(tmp_path))


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    ended, said = child(tmp_path, "/nonexistent/program")
    assert ended.status == 127
    assert b"/nonexistent/program" in said


def test_cpu_time_counts_the_tree(tmp_path: Path) -> None:
    """From files laid out as proc(5) says: a name with spaces and parentheses, a vanished
    process, and a stranger that must not be counted."""
    ticks = os.sysconf("SC_CLK_TCK")

    def stat(pid: int, parent: int, used: int, name: str = "x") -> None:
        folder = tmp_path / str(pid)
        folder.mkdir()
        zeros = "0 " * 9
        (folder / "stat").write_text(f"{pid} ({name}) S {parent} {zeros}{used} {used} 0 {used} 0\n")

    stat(10, 1, ticks)
    stat(11, 10, ticks, "a) R 99 (b")
    stat(12, 11, ticks)
    stat(20, 1, 1000 * ticks)
    (tmp_path / "13").mkdir()
    (tmp_path / "self").mkdir()
    assert tree_cpu_seconds(10, tmp_path) == 9
    assert tree_cpu_seconds(11, tmp_path) == 6
    assert tree_cpu_seconds(99, tmp_path) == 0


def test_a_process_that_waits_for_a_cpu_is_ready(tmp_path: Path) -> None:
    """On a busy machine a child may use no CPU time for long; it is no stall."""

    def stat(pid: int, state: str, parent: int) -> None:
        (tmp_path / str(pid)).mkdir()
        text = f"{pid} (a name) {state} {parent} " + "0 " * 20
        (tmp_path / str(pid) / "stat").write_text(text)

    stat(10, "S", 1)
    stat(11, "R", 10)
    stat(20, "S", 1)
    stat(30, "D", 1)
    assert tree_is_ready(10, tmp_path)
    assert not tree_is_ready(20, tmp_path)
    assert tree_is_ready(30, tmp_path)
    assert not tree_is_ready(99, tmp_path)


def test_a_child_that_only_waits_for_a_cpu_is_not_called_stalled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It meets the deadline instead. That the child looks ready is planted."""
    monkeypatch.setattr(process, "tree_is_ready", lambda _pid: True)
    ended, _ = child(tmp_path, "sleep", "100", host=1.5, stall=0.3)
    assert ended.stop == "deadline"


def watched(tmp_path: Path, script: str, **bounds: float) -> tuple[Ended, list[str]]:
    """Run a script that is over as soon as it says "fault"."""
    said: list[bytes] = []
    stops: list[str] = []
    ended = run(
        ["sh", "-c", script],
        cwd=tmp_path,
        environment={"PATH": os.environ["PATH"]},
        console=tmp_path / "console.log",
        bounds=Bounds(30, 30, **bounds),  # type: ignore[arg-type]
        watch=watching(
            said.append, fatal=lambda: b"fault" in b"".join(said), before_kill=stops.append
        ),
    )
    return ended, stops


def test_a_fatal_line_ends_the_run(tmp_path: Path) -> None:
    """What follows at once is kept; the child is not waited for."""
    ended, stops = watched(tmp_path, "echo fault; sleep 0.05; echo registers; exec sleep 100")
    assert (ended.stop, stops) == ("fault", ["fault"])
    assert (tmp_path / "console.log").read_bytes() == b"fault\nregisters\n"


def test_a_child_that_ends_within_the_grace_ends_by_itself(tmp_path: Path) -> None:
    ended, stops = watched(tmp_path, "echo fault; exit 3")
    assert (ended.stop, ended.status, stops) == ("exited", 3, [])


def test_a_child_that_goes_on_talking_after_its_fault(tmp_path: Path) -> None:
    ended, _ = watched(tmp_path, "echo fault; while :; do echo more; sleep 0.05; done")
    assert ended.stop == "fault"


def test_the_caller_sees_the_child_alive_before_it_is_killed(tmp_path: Path) -> None:
    seen: list[bool] = []
    run(
        ["sh", "-c", "echo $$ > pid; exec sleep 100"],
        cwd=tmp_path,
        environment={"PATH": os.environ["PATH"]},
        console=tmp_path / "log",
        bounds=Bounds(2.0, 30),
        watch=watching(
            before_kill=lambda _stop: seen.append(not ends(recorded(tmp_path), seconds=0))
        ),
    )
    assert seen == [True]
    assert ends(recorded(tmp_path))
