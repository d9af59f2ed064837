"""The runner that the tests of a suite find: built for the suite, or given, and for the right core.

A program holds the scratch sizes and weight layouts of one kind of CMSIS-NN kernels (scalar, DSP
or Helium). On a runner with others it may fail for no fault of either, or pass by chance: until
ExecuTorch's pull request 20048 its own tests took whatever runner was built last. What an ELF was
built for is in its build attributes ("Addenda to, and Errata in, the ABI for the Arm
Architecture", section 3.3.5).
"""

from __future__ import annotations

from pathlib import Path

from harness.config.loading import load_target
from harness.config.model import SimulatorName
from harness.core.errors import UsageError
from harness.firmware.executorch.checkout import Checkout
from harness.firmware.firmware import Firmware
from harness.firmware.source import BuildRequest, FirmwareSource
from harness.formats.damage import DamagedFile
from harness.formats.elf import EM_ARM, ElfFile
from harness.sim.pick import pick
from harness.suites.suites import Suite
from harness.system.progress import Progress

_CPU_NAME, _CPU_ARCH, _MVE_ARCH = 5, 6, 48


def build_runner(
    suite: Suite, source: FirmwareSource, checkout: Checkout | None, progress: Progress
) -> Firmware:
    """Built for QEMU, on which the stand-in runs it. Raises what the source's ``build`` does."""
    in_mode = source.one_memory_mode and suite.mode
    target = load_target(f"{suite.target}@{suite.mode}" if in_mode else suite.target)
    chosen = pick(target, SimulatorName.QEMU)
    request = BuildRequest(chosen.target, chosen.name, checkout, suite.options)
    return source.build(request, progress)


class WrongCore(UsageError):
    """``built_for``: the core or architecture that the ELF names, or ""."""

    def __init__(self, suite: Suite, elf: Path, built_for: str) -> None:
        self.built_for = built_for
        super().__init__(
            f"{elf} was built for {built_for or 'a core'} without Helium, and the programs of the "
            f"{suite.name} suite are compiled for a Cortex-M55 with it: they would run with the "
            "scratch sizes of other kernels, and prove nothing",
            hint="give the runner that was built for cortex-m55 (ExecuTorch's "
            "backends/cortex_m/test/build_test_runner.sh --target=cortex-m55)",
            path=elf,
        )


def check_core(suite: Suite, elf: Path) -> None:
    """An ELF without build attributes is accepted. Raises WrongCore."""
    if not suite.helium:
        return
    try:
        file = ElfFile(elf.read_bytes())
        tags = file.attributes if file.machine_number == EM_ARM else {}
    except (DamagedFile, OSError):  # the stand-in says what is wrong with it
        return
    if _CPU_ARCH in tags and not tags.get(_MVE_ARCH):
        name = str(tags.get(_CPU_NAME, ""))
        raise WrongCore(suite, elf, f"Armv{name}" if name[:1].isdecimal() else name)
