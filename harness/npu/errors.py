"""What can be wrong with a blob or a stream. Each error has the byte ``offset`` of it."""

from __future__ import annotations

from harness.core.errors import HarnessError
from harness.core.verdict import ExitCode, Verdict


class EthosUError(HarnessError):
    """Base: what the compiler wrote cannot be run."""

    kind = "ethosu"
    verdict = Verdict.FAULT
    exit_code = ExitCode.FAILED


class BlobError(EthosUError):
    """The container around the command stream is malformed."""

    kind = "ethosu_blob"

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(f"{message} (byte {offset:#x} of the blob)")
        self.offset = offset


class StreamError(EthosUError):
    """The command stream itself is malformed."""

    kind = "ethosu_stream"

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(f"{message} (byte {offset:#x} of the command stream)")
        self.offset = offset


class AccessError(EthosUError):
    """A command reads or writes outside its region, or leaves an output unwritten."""

    kind = "ethosu_access"

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(f"{message} (command at byte {offset:#x} of the stream)")
        self.offset = offset


class Unwritten(AccessError):
    """The stream ended, and a byte of an output was never written."""

    kind = "ethosu_unwritten"

    def __init__(self, output: int, byte: int) -> None:
        super().__init__(f"output {output}: byte {byte} was never written", 0)
        self.output = output
        self.byte = byte


class WorkLimit(EthosUError):
    """The registers ask for more than the model is ready to do.

    ``asked`` and ``limit`` in ``unit``.
    """

    kind = "ethosu_work_limit"
    verdict = Verdict.NO_VERDICT

    def __init__(self, what: str, asked: int, limit: int, unit: str, offset: int) -> None:
        super().__init__(
            f"{what} asks for {asked} {unit}, the limit of the model is {limit} "
            f"(command at byte {offset:#x} of the stream)"
        )
        self.asked = asked
        self.limit = limit
        self.unit = unit
        self.offset = offset


class Unsupported(EthosUError):
    """Valid perhaps, but nobody has confirmed what the hardware does with it."""

    kind = "ethosu_unsupported"

    def __init__(self, register: str, value: object, offset: int, why: str = "") -> None:
        super().__init__(
            f"{register} = {value} is not verified{f': {why}' if why else ''} "
            f"(command at byte {offset:#x} of the stream)"
        )
        self.register = register
        self.value = value
        self.offset = offset
