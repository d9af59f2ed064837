"""The main loop of the export process: started by ``harness.export.process`` alone."""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import pickle
import struct
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from harness.core.errors import HarnessError
from harness.export.failures import ImportFailed, NotTheCheckout
from harness.export.running import TEMPORARY, kill_group
from harness.export.wire import answer, error_fields
from harness.system.boundary import as_harness_error
from harness.system.locks import die_with_parent, load_libc

PACKAGE = "executorch"
_COPY_STATUS = 70


class Answers:
    """Where the answers go. A forked copy of the process, which a model's file may make, reports
    itself in place of its first answer and ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._process = os.getpid()

    def send(self, message: dict[str, Any]) -> None:
        copy = os.getpid() != self._process
        content = answer({"forked": True} if copy else message)
        while content:
            content = content[os.write(self._descriptor, content) :]
        if copy:
            os._exit(_COPY_STATUS)

    def stage(self, name: str) -> None:
        """Says what a request is at."""
        self.send({"stage": name})


def main(requests: int, replies: int, parent: int, environment: str) -> None:
    """``requests`` and ``replies``: descriptors. ``parent``: its process number, 0 in a sandbox,
    where bubblewrap ends the process with its parent. ``environment``: the folder that
    ``executorch`` must come from, "" for the installed wheel."""
    for descriptor in (requests, replies):
        os.set_inheritable(descriptor, False)
    if parent:
        die_with_parent(parent)
    else:
        temporary = Path.cwd() / TEMPORARY
        temporary.mkdir()
        os.environ["TMPDIR"] = str(temporary)
    answers = Answers(replies)
    try:
        _import_exporter(environment)
    except HarnessError as error:
        answers.send({"error": error_fields(error)})
        return
    # Byte code knows its source by size and second: a model's neighbour may be edited faster.
    sys.dont_write_bytecode = True
    gc.freeze()  # torch's objects live to the end: no collection needs to look at them
    answers.send({"value": None})
    _serve(requests, answers)


def _serve(requests: int, answers: Answers) -> None:
    with os.fdopen(requests, "rb") as stream:
        while (request := _read(stream)) is not None:
            message = _answer(request, answers)
            sys.stdout.flush()
            sys.stderr.flush()
            ctypes.CDLL(None).fflush(None)  # what C code printed belongs to this request
            answers.send(message)


def fork(_: Callable[[str], None], harness: int, *descriptors: int) -> int:
    """Makes a copy of this process that answers requests, and has its number. ``descriptors``: of
    the process ``harness``, where the copy's requests come from, its answers and its output go."""
    modes = (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)
    opened = [
        os.open(f"/proc/{harness}/fd/{descriptor}", mode)
        for descriptor, mode in zip(descriptors, modes, strict=True)
    ]
    template = os.getpid()
    load_libc()
    copy = os.fork()
    if not copy:
        try:
            _be_a_copy(template, *opened)
        finally:
            os._exit(1)  # the template's own work is not the copy's
    for descriptor in opened:
        os.close(descriptor)
    return copy


def _be_a_copy(template: int, requests: int, replies: int, printed: int) -> None:
    os.setsid()
    die_with_parent(template)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(printed, stream.fileno())
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in (0, 1, 2, requests, replies):
            with suppress(OSError):  # that of the listing
                os.close(int(name))
    _serve(requests, Answers(replies))


def end(_: Callable[[str], None], copy: int) -> int:
    """Kills a copy and its group. Its status as of Popen."""
    kill_group(copy)
    return os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])


def _import_exporter(environment: str) -> None:
    """Raises NotTheCheckout, ImportFailed."""
    try:
        if environment:
            expected = Path(environment) / PACKAGE
            paths = [Path(path) for path in importlib.import_module(PACKAGE).__path__]
            if paths != [expected]:
                raise NotTheCheckout(expected, [str(path) for path in paths])
        importlib.import_module("harness.export.child.worker")
    except HarnessError:
        raise
    except (Exception, SystemExit) as error:  # foreign code: any exception is possible
        traceback.print_exc()
        raise ImportFailed(error) from error


def _read(stream: BinaryIO) -> tuple[str, tuple[Any, ...]] | None:
    header = stream.read(4)
    if len(header) < 4:
        return None
    (length,) = struct.unpack(">I", header)
    function, arguments = pickle.loads(stream.read(length))
    return function, arguments


def _answer(request: tuple[str, tuple[Any, ...]], answers: Answers) -> dict[str, Any]:
    function, arguments = request
    module, _, name = function.partition(":")
    try:
        call = getattr(importlib.import_module(f"harness.export.child.{module}"), name)
        return {"value": call(answers.stage, *arguments)}
    except HarnessError as error:
        return {"error": error_fields(error)}
    except OSError as error:
        return {"os_error": [error.errno or 0, error.strerror or str(error), str(error.filename)]}
    except (Exception, SystemExit) as error:  # foreign code: any exception is possible
        traceback.print_exc()
        return {"error": error_fields(as_harness_error(error))}
