"""Errors of blobs and streams. Each has the byte ``offset`` of the problem."""

from __future__ import annotations

from harness.core.errors import HarnessError
from harness.core.verdict import ExitCode, Verdict


class EthosUError(HarnessError):
    """Base: the compiler's output cannot be run. ``place``: how messages give the offset."""

    kind = "ethosu"
    verdict = Verdict.FAULT
    exit_code = ExitCode.FAILED
    place = "command at byte {:#x} of the stream"

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(f"{message} ({self.place.format(offset)})")
        self.offset = offset


class BlobError(EthosUError):
    """The container around the command stream is malformed."""

    kind = "ethosu_blob"
    place = "byte {:#x} of the blob"


class StreamError(EthosUError):
    """The command stream itself is malformed."""

    kind = "ethosu_stream"
    place = "byte {:#x} of the command stream"


class AccessError(EthosUError):
    """A command reads or writes outside its region, or leaves an output unwritten."""

    kind = "ethosu_access"


class Unwritten(AccessError):
    """The stream ended, and a byte of an output was never written."""

    kind = "ethosu_unwritten"

    def __init__(self, output: int, byte: int) -> None:
        super().__init__(f"output {output}: byte {byte} was never written", 0)
        self.output = output
        self.byte = byte


class WorkLimit(EthosUError):
    """More is asked for than the model's limit: the program may be right.

    ``asked``, ``limit``: in ``unit``."""

    kind = "ethosu_work_limit"
    verdict = Verdict.NO_VERDICT

    def __init__(self, what: str, asked: int, limit: int, unit: str, offset: int) -> None:
        message = f"{what} asks for {asked} {unit}, the limit of the model is {limit}"
        super().__init__(message, offset)
        self.asked = asked
        self.limit = limit
        self.unit = unit


class BlobLimit(WorkLimit):
    """The blob itself asks for it."""

    place = BlobError.place


def check_limit(what: str, asked: int, limit: int, unit: str, offset: int) -> None:
    """Compare a need with its limit. Raises WorkLimit."""
    if asked > limit:
        raise WorkLimit(what, asked, limit, unit, offset)


class Unsupported(EthosUError):
    """It may be valid, but the hardware's behaviour is not confirmed."""

    kind = "ethosu_unsupported"

    def __init__(self, register: str, value: object, offset: int, why: str = "") -> None:
        super().__init__(f"{register} = {value} is not verified{f': {why}' if why else ''}", offset)
        self.register = register
        self.value = value
