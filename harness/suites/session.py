"""pytest and its workers as a child process that runs a suite; its events are read as they come."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import IO, Any

from harness.core.errors import InfraError, UsageError
from harness.suites.results import Selection
from harness.suites.workspace import Workspace
from harness.system import toolchain
from harness.system.files import disk_errors
from harness.system.progress import Progress

_LIMIT_SECONDS = 7200.0
_PYTEST_USAGE_ERROR = 4  # pytest's exit status; 5: no test was collected
_PYTEST_ENDED = (0, 1, 2, 5)


def run_session(
    workspace: Workspace,
    selection: Selection,
    workers: int,
    progress: Progress,
    done: Iterable[str] = (),
) -> list[dict[str, Any]]:
    """The phases of every selected test but those of ``done``, in the order in which they ended;
    fields as of ``results.Phase``, with the consoles in base64.

    Raises UsageError when nothing is selected or pytest refuses the selection, and InfraError
    when pytest itself fails.
    """
    done = sorted(set(done))
    read, write = os.pipe()
    setpriv = str(toolchain.locate("setpriv"))
    with disk_errors("running the suite"), workspace.log.open("wb") as log:
        workspace.done.write_text("".join(f"{test}\n" for test in done))
        child = subprocess.Popen(
            [setpriv, "--pdeathsig", "KILL", "--", *_argv(workspace, selection, workers, write)],
            cwd=workspace.directory,
            env=workspace.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=[write],
            start_new_session=True,
        )
    os.close(write)
    overdue = threading.Timer(_LIMIT_SECONDS, _kill, [child])
    overdue.start()
    try:
        with os.fdopen(read, "rb") as events, workspace.events.open("ab") as record:
            phases = list(_phases(events, record, len(done), progress))
        status = child.wait()
    finally:
        overdue.cancel()
        _kill(child)
        child.wait()
    _check(status, bool(done) or any(phase["when"] != "collect" for phase in phases), workspace)
    return phases


def _argv(workspace: Workspace, selection: Selection, workers: int, events: int) -> list[str]:
    words = [sys.executable, "-m", "pytest", "-q", "-W", "ignore", "--tb", "short"]
    root = str(workspace.root)
    words += ["-c", str(workspace.ini), "--rootdir", root, "--confcutdir", root]
    words += ["-p", "no:cacheprovider", "-p", "xdist", "-p", "harness.suites.recorder"]
    words += ["--log-level=ERROR"]  # torch logs every step, and pytest would keep all of it
    words += ["-n", str(workers), "--dist", "worksteal", "--max-worker-restart", "4"]
    words += ["--continue-on-collection-errors"]
    words += ["--hil-events", str(events), "--hil-workspace", str(workspace.directory)]
    words += ["--hil-only", workspace.suite.only, "--hil-seed", str(selection.seed)]
    if selection.shard is not None:
        words += ["--hil-shard", *map(str, selection.shard)]
    if selection.sample is not None:
        words += ["--hil-sample", str(selection.sample)]
    if selection.keyword is not None:
        words += ["-k", selection.keyword]
    return [*words, str(workspace.root / workspace.suite.tests)]


def _phases(
    events: Iterable[bytes], record: IO[bytes], done: int, progress: Progress
) -> Iterator[dict[str, Any]]:
    total = done
    progress("starting the suite: importing torch and collecting tests")
    for line in events:
        event = json.loads(line)
        if "selected" in event:  # by each worker, the same
            total = done + event["selected"] if total == done else total
            continue
        record.write(line)
        record.flush()
        yield event
        if event["when"] == "teardown":
            done += 1
            progress(f"suite {done}/{total}")


def _check(status: int, tests_ran: bool, workspace: Workspace) -> None:
    if status in _PYTEST_ENDED:
        if not tests_ran:
            raise UsageError(
                "no test of the suite was selected", hint="look at -k, --shard, --sample"
            )
        return
    lines = [s for s in workspace.log.read_text("utf-8", "replace").splitlines() if s.strip()]
    last = lines[-1] if lines else ""
    reason = next((line for line in reversed(lines) if "rror" in line), last)
    error = UsageError if status == _PYTEST_USAGE_ERROR else InfraError
    raise error(f"pytest could not run the suite: {reason}", hint=f"see {workspace.log}")


def _kill(child: subprocess.Popen[bytes]) -> None:
    """The child's whole session. Its id is not reused: the child's status was not read yet."""
    if child.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
