"""What a run asked of the model of an NPU beside its simulator, and what stopped it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness.core.verdict import Word


class NpuResult(Word):
    """Why the model of an NPU did not run a command stream to its end."""

    FAULT = "fault"  # the NPU itself would stop
    REFUSED = "refused"  # the guest's request is wrong
    UNSUPPORTED = "unsupported"  # the model does not know it
    BROKEN = "broken"  # the model failed


@dataclass(frozen=True)
class NpuStop:
    """A command stream that the NPU's model did not run to its end.

    ``offset``: bytes of the command stream that were read.
    """

    job: int  # counted from 1
    result: NpuResult
    message: str
    offset: int = 0


@dataclass(frozen=True)
class NpuUse:
    """What a model of an NPU beside the simulator was asked for."""

    jobs: int
    stop: NpuStop | None = None  # the first

    def after(self, jobs: int) -> NpuUse:
        """The same when ``jobs`` came before."""
        stop = None if self.stop is None else replace(self.stop, job=self.stop.job + jobs)
        return replace(self, jobs=self.jobs + jobs, stop=stop)
