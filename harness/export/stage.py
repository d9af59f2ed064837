"""Names what goes wrong: every exception of torch, ExecuTorch or a user's file gets a stage."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import ExportError, HarnessError
from harness.export.request import ExportRequest


@contextmanager
def stage(request: ExportRequest, name: str) -> Iterator[None]:
    """Give whatever torch, ExecuTorch or the user's file raises a name and a place."""
    try:
        yield
    except HarnessError:
        raise
    except (Exception, SystemExit) as error:  # foreign code: any exception is possible
        file, line = _user_frame(request, error)
        where = f" at {file}:{line}" if file else ""
        reason = str(error).strip().splitlines()[0] if str(error).strip() else "no message"
        raise ExportError(
            f"model '{request.model.name}' failed to {name}{where}: "
            f"{type(error).__name__}: {reason}",
            model=request.model.name,
            compile_target=request.compile_target,
            stage=name,
            cause=type(error).__name__,
            detail=str(error),
            file=file,
            line=line,
        ) from error


def _user_frame(request: ExportRequest, error: BaseException) -> tuple[str | None, int | None]:
    """The innermost line of the user's own file in the traceback of an error or its causes."""
    source = request.model.file
    cause: BaseException | None = error
    while source is not None and cause is not None:
        for frame in reversed(traceback.extract_tb(cause.__traceback__)):
            if Path(frame.filename).is_relative_to(source.parent):
                return Path(frame.filename).name, frame.lineno
        cause = cause.__cause__ or cause.__context__
    return None, None
