"""The export process, started by ``harness.export.process`` alone.

It imports torch and ExecuTorch, and answers each request by a fork of itself."""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import pickle
import signal
import socket
import sys
import traceback
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from harness.core.errors import HarnessError, InfraError
from harness.export.failures import ImportFailed
from harness.export.process import TEMPORARY
from harness.export.wire import answer, error_fields
from harness.system.call import die_with_parent
from harness.system.unexpected import as_harness_error

PACKAGE = "executorch"
_CHILD_STATUS = 70


def main(control: int, confined: bool, environment: str) -> None:
    """Serve requests.

    ``control``: the descriptor of a socket. ``environment``: the folder that ``executorch`` must
    come from, "" for the installed wheel."""
    harness = socket.socket(fileno=control)
    harness.set_inheritable(False)
    # ExecuTorch splits Vela's command line, with names of temporary files, at each blank
    if confined:
        Path(TEMPORARY).mkdir()
        here = "/proc/self/cwd" if " " in os.getcwd() else os.getcwd()
        os.environ["TMPDIR"] = f"{here}/{TEMPORARY}"
    elif " " in os.environ.get("TMPDIR", ""):
        os.environ["TMPDIR"] = "/tmp"
    try:
        _import_exporter(environment)
    except HarnessError as error:
        harness.sendall(answer({"error": error_fields(error)}))
        return
    # A .pyc is checked by its source's size and second: a model's neighbour may be edited faster.
    sys.dont_write_bytecode = True
    gc.freeze()  # torch's objects live to the end: no collection needs to look at them
    harness.sendall(answer({"value": None}))
    while descriptors := socket.recv_fds(harness, 1, 1)[1]:
        harness.sendall(answer({"status": _fork(harness, descriptors[0])}))


def _fork(harness: socket.socket, descriptor: int) -> int:
    """Answers one request in a child of this process.

    Returns the child's status as Popen does; kills the child when the harness no longer waits for
    it."""
    server = os.getpid()
    child = os.fork()
    if not child:
        try:
            harness.close()
            os.setsid()
            die_with_parent(server)
            _serve(socket.socket(fileno=descriptor))
            os._exit(0)
        finally:
            os._exit(1)  # the child never returns into the server's loop
    os.close(descriptor)
    ended = os.pidfd_open(child)
    wait([ended, harness])  # the harness sends nothing more; only its end is readable
    os.close(ended)
    for kill in (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _serve(connection: socket.socket) -> None:
    process = os.getpid()

    def reply(message: dict[str, Any]) -> None:
        if os.getpid() != process:  # a child that a model's file has forked
            os._exit(_CHILD_STATUS)
        connection.sendall(answer(message))

    with connection.makefile("rb") as stream:
        function, *arguments = pickle.load(stream)
    message = _answer(function, lambda stage: reply({"stage": stage}), *arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    ctypes.CDLL(None).fflush(None)  # what C code printed
    reply(message)


def _answer(function: str, *arguments: Any) -> dict[str, Any]:
    module, _, name = function.partition(":")
    try:
        call = getattr(importlib.import_module(f"harness.export.child.{module}"), name)
        return {"value": call(*arguments)}
    except HarnessError as error:
        return {"error": error_fields(error)}
    except (Exception, SystemExit) as error:  # foreign code: any exception is possible
        traceback.print_exc()
        return {"error": error_fields(as_harness_error(error))}


def _import_exporter(environment: str) -> None:
    """Import ExecuTorch. Raises ImportFailed, and InfraError for one of another folder."""
    try:
        if environment:
            expected = Path(environment) / PACKAGE
            paths = [Path(path) for path in importlib.import_module(PACKAGE).__path__]
            if paths != [expected]:
                packages = tuple(map(str, paths))
                raise InfraError(
                    f"Python took the package {PACKAGE} from {', '.join(packages) or 'nowhere'} "
                    f"and not from the checkout's environment {expected}",
                    hint="something puts that folder first: a sitecustomize.py, or a .pth file of "
                    "an editable install; take it out, or export with --exporter wheel",
                    path=expected,
                    packages=packages,
                )
        importlib.import_module("harness.export.child.worker")
    except HarnessError:
        raise
    except (Exception, SystemExit) as error:  # foreign code: any exception is possible
        traceback.print_exc()
        raise ImportFailed(error) from error
