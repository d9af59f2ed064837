"""The runner as a native program of this machine."""

from __future__ import annotations

import platform
from contextlib import nullcontext
from pathlib import Path

from harness.simulate.launch import Job, Launch, Simulator
from harness.system.toolchain import Tool
from harness.target.loading import Target
from harness.target.model import SimulatorName


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

    def beside(self, target: Target, job: Job) -> nullcontext[None]:
        return nullcontext()


SIMULATOR: Simulator = _Host()
