"""The runner as a native program of this machine.

An Ethos-U of its is the functional model in a process of its own, reached by the doorbell's files
in the runner's directory (``targets/runner/ethosu/doorbell.h``).
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from harness.config.loading import Target
from harness.config.model import Region, SimulatorName
from harness.config.npu import Npu
from harness.npu.doorbell import MEMORY_FILE, Identity, serving
from harness.npu.npu_process import NpuProcess
from harness.sim.companion import NpuRunner, shared_memory
from harness.sim.simulator import Companion, Job, Launch, Simulator
from harness.system.toolchain import Tool


class _Host:
    name = SimulatorName.HOST
    native = True

    def find(self, target: Target) -> Tool:
        return Tool("host", Path("/"), f"{platform.system()} {platform.machine()}", "")

    def require(self, target: Target) -> Tool:
        return self.find(target)

    def launch(self, target: Target, tool: Tool, job: Job) -> Launch:
        argv = (str(job.elf), *job.arguments[1:])
        return Launch(argv, environment=job.environment, readable=(job.elf,))

    def beside(self, target: Target, job: Job) -> AbstractContextManager[Companion | None]:
        host = target.simulators.host
        if target.npu is None or host is None or host.shared_memory is None:
            return nullcontext()
        return _with_npu(target.npu, host.shared_memory, job.work)


@contextmanager
def _with_npu(npu: Npu, region: Region, work: Path) -> Iterator[Companion]:
    place = work / MEMORY_FILE
    with shared_memory(region) as memory, NpuProcess(npu.product, npu.macs, memory) as process:
        npu_runner = NpuRunner(process)
        npu_runner.descriptors = (memory.descriptor,)
        place.symlink_to(memory.path)
        try:
            with serving(work, memory, Identity.of(npu.product, npu.macs), npu_runner.run):
                yield npu_runner
                process.stop()  # so that the service does not wait for a job
        finally:
            place.unlink(missing_ok=True)


SIMULATOR: Simulator = _Host()
