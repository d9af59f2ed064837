"""The runner as a native program of this machine.

Its Ethos-U is the functional model in a process of its own, reached by the doorbell's files in the
runner's directory (``targets/runner/ethosu/doorbell.h``).
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from harness.config.target import Target
from harness.core.simulator_name import SimulatorName
from harness.npu.doorbell import MEMORY_FILE, serving
from harness.sim.companion import ModelledNpu, NpuRunner, modelled, npu_of
from harness.sim.simulator import Companion, GuestJob, Launch, Simulator
from harness.system.toolchain import Tool


class _Host(Simulator):
    name = SimulatorName.HOST
    native = True

    def find(self, target: Target, checkout: Path | None = None) -> Tool:
        return Tool("host", Path("/"), f"{platform.system()} {platform.machine()}")

    def launch(self, target: Target, tool: Tool, job: GuestJob) -> Launch:
        argv = (str(job.elf), *job.arguments[1:])
        return Launch(argv, readable=(job.elf,))

    def beside(self, target: Target, job: GuestJob) -> AbstractContextManager[Sequence[Companion]]:
        host = target.simulators.host
        npu = None if host is None else npu_of(target.npu, host.shared_memory)
        return super().beside(target, job) if npu is None else _with_npu(npu, job.work)


@contextmanager
def _with_npu(npu: ModelledNpu, work: Path) -> Iterator[Sequence[Companion]]:
    link = work / MEMORY_FILE
    with modelled(npu) as (memory, process):
        runner = NpuRunner(process)
        runner.descriptors = (memory.descriptor,)
        link.symlink_to(memory.path)
        try:
            with serving(work, memory, npu.identity, runner.run):
                yield (runner,)
                process.stop()  # so that the service does not wait for a job
        finally:
            link.unlink(missing_ok=True)


SIMULATOR = _Host()
