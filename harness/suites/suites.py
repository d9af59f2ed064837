"""ExecuTorch's on-target suites: which tests, which runner, and the failures that are known.

Directories and names are those of ExecuTorch 1.5.1 (``backends/arm/test/runner_utils.py``), and so
is the size of each NPU: ``run_corstone`` there starts the models with 128, 256 and 128 MACs.

A program holds the scratch sizes and weight layouts of one kind of CMSIS-NN kernels (scalar, DSP
or Helium). On a runner with other kernels it may fail without a defect, or pass by chance: until
ExecuTorch's pull request 20048 its own tests took the runner that was built last. An ELF's build
attributes name the core it was built for ("Addenda to, and Errata in, the ABI for the Arm
Architecture", section 3.3.5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.config import strict_yaml
from harness.config.loading import load_target
from harness.config.schema import Data, Text, checked_document
from harness.core.errors import InfraError, MalformedFile, UsageError
from harness.core.simulator_name import SimulatorName
from harness.export.checkout import CheckoutExporter
from harness.firmware.checkout import Checkout
from harness.firmware.source import BuildRequest, Firmware, FirmwareSource
from harness.formats.elf import EM_ARM, ElfFile
from harness.sim.simulator import pick
from harness.suites.results import SuiteTest
from harness.system.files import read_regular
from harness.system.paths import executorch_package, install_command
from harness.system.progress import Progress

_RUNNERS = "arm_test/arm_semihosting_executor_runner_"
_MIB = 1 << 20
# Single operators on large tensors: more memory than any board has, all of it shared with the NPU.
_ROOMY = {
    **{f"HIL_{pool}_POOL_PLACE": "DDR" for pool in ("METHOD", "TEMP", "FILE")},
    "HIL_METHOD_POOL_BYTES": str(48 * _MIB),
    "HIL_TEMP_POOL_BYTES": str(96 * _MIB),
    "HIL_FILE_POOL_BYTES": str(64 * _MIB),
}
# Networks of ImageNet size, also with float32 weights: nearly all of the board's 256 MiB of DDR.
_WHOLE_NETWORKS = {
    **_ROOMY,
    "HIL_METHOD_POOL_BYTES": str(76 * _MIB),
    "HIL_TEMP_POOL_BYTES": str(36 * _MIB),
    "HIL_FILE_POOL_BYTES": str(140 * _MIB),
    "HIL_PORTABLE_KERNELS": "ON",
}


@dataclass(frozen=True)
class Suite:
    name: str
    root: str  # of the suite, in the executorch package; test ids are relative to it
    runners: tuple[str, ...]  # directories in which the suite looks for its runner
    target: str  # the one whose bundled runner is used
    tests: str = "."  # directory of the tests, below root
    only: str = ""  # the suite's tests are those whose function name contains this
    marker: str = ""  # and that have this marker of pytest
    options: Mapping[str, str] = field(default_factory=dict)  # of the runner's build
    note: str = ""  # for the report
    helium: bool = False  # its programs need kernels that were built for Helium
    # The memory mode for which the suite's own script builds ExecuTorch's runner, if it is not the
    # target's (backends/arm/test/setup_testing.sh); it decides the size of the pools.
    mode: str = ""

    def directory(self, exporter: CheckoutExporter | None = None) -> Path:
        """Its folder in the exporter's package, or in the installed one. Raises InfraError."""
        from_checkout = exporter is not None
        package = executorch_package() if exporter is None else exporter.environment / "executorch"
        directory = package / self.root
        tests = directory / ("ops" if self.tests == "." else self.tests)
        if not tests.exists():
            raise InfraError(
                f"the {'checkout' if from_checkout else 'installed executorch'} has no "
                f"{self.name} suite (no {tests})",
                hint="run the wheel's suite: --exporter wheel"
                if from_checkout
                else install_command("export"),
            )
        return directory

    @property
    def known_failures_file(self) -> Path:
        return Path(__file__).with_name(f"{self.name.replace('-', '_')}.yaml")


def _ethos_u(product: str, board: str, target: str, note: str = "", mode: str = "") -> Suite:
    return Suite(
        name=f"ethos-{product}",
        root="backends/arm/test",
        tests="ops",
        only=product,
        # The second one has ExecuTorch's portable operators; the bundled runner always has its own.
        runners=(f"{_RUNNERS}{board}", f"{_RUNNERS}portable-ops_{board}"),
        target=target,
        options=_ROOMY,
        note=note,
        mode=mode,
    )


def _of_models(operators: Suite, flow: str) -> Suite:
    """The models of the suite that all of ExecuTorch's backends share, in one of its flows
    (``backends/test/suite``), for the runner of a suite of operators."""
    return replace(
        operators,
        name=f"models-{operators.name}",
        root="backends/test/suite",
        tests="models",
        only="",
        marker=f"flow_{flow}",
        options=_WHOLE_NETWORKS,
        note="the weights are random, as in ExecuTorch's own test",
    )


_CORTEX_M = Suite(
    name="cortex-m",
    root="backends/cortex_m/test",
    # Until ExecuTorch's pull request 20048 (June 2026) the one for every core.
    runners=(f"{_RUNNERS}corstone-300_cortex-m55", f"{_RUNNERS}corstone-300"),
    target="corstone-300-m55",
    helium=True,
)
_U55 = _ethos_u("u55", "corstone-300", "corstone-300-u55-128")
_U65 = _ethos_u(
    "u65",
    "corstone-300-u65",
    "corstone-300-u65-256",
    "ExecuTorch has five tests for the Ethos-U65, all of add, and no option that compiles its "
    "other tests for one",
)
_U85 = _ethos_u("u85", "corstone-320", "corstone-320-u85-128", mode="Dedicated_Sram_384KB")
SUITES: Mapping[str, Suite] = {
    suite.name: suite
    for suite in (
        _CORTEX_M,
        _U55,
        _U65,
        _U85,
        _of_models(_CORTEX_M, "cortex_m"),
        _of_models(_U55, "arm_ethos_u55"),
        _of_models(_U85, "arm_ethos_u85"),
    )
}


@dataclass(frozen=True, kw_only=True)
class KnownFailure(Data):
    """A failure with a known reason. It is strict: a pass of the test is an error.
    ``elf_has``, ``elf_lacks``: only for runners with, or without, these bytes in their ELF."""

    reason: Text
    finding: Text  # the heading of docs/findings.md
    elf_has: Text | None = None
    elf_lacks: Text | None = None

    def applies_to(self, elf: bytes) -> bool:
        return (self.elf_has is None or self.elf_has.encode() in elf) and (
            self.elf_lacks is None or self.elf_lacks.encode() not in elf
        )


@dataclass(frozen=True, kw_only=True)
class KnownFailures(Data):
    """``failures``: by test id."""

    failures: dict[Text, KnownFailure]


def read_known_failures(path: Path) -> dict[str, KnownFailure]:
    """By test id. Raises TargetError (file and line) when the file is malformed."""
    return checked_document(KnownFailures, strict_yaml.read(path)).failures


def known_failures_for(known: dict[str, KnownFailure], elf: Path) -> dict[str, KnownFailure]:
    """The known failures that apply to this runner."""
    content = read_regular(elf)
    return {test: failure for test, failure in known.items() if failure.applies_to(content)}


def apply_known_failures(
    tests: Iterable[SuiteTest], known: dict[str, KnownFailure], *, strict: bool = True
) -> tuple[SuiteTest, ...]:
    """A known failure becomes ``xfailed``; a pass in spite of one becomes ``failed``.

    Without ``strict`` they may pass: the tests are those of another ExecuTorch than the list.
    """
    return tuple(_apply(test, known.get(test.id), strict) for test in tests)


def _apply(test: SuiteTest, known: KnownFailure | None, strict: bool) -> SuiteTest:
    if known is None:
        return test
    if test.result == "failed":
        return replace(test, result="xfailed", cause=f"{known.reason} [{test.cause}]")
    if test.result == "passed" and strict:
        return replace(
            test,
            result="failed",
            cause=f"is a known failure ({known.reason}) and passed: take it out of the list of "
            "known failures",
        )
    return test


def unknown_tests(tests: Iterable[SuiteTest], known: dict[str, KnownFailure]) -> tuple[str, ...]:
    """Complaints about known failures of tests that the whole suite does not have."""
    ids = {test.id for test in tests}
    return tuple(
        f"the list of known failures names {test}, which the suite does not have"
        for test in known
        if test not in ids
    )


_CPU_NAME, _CPU_ARCH, _MVE_ARCH = 5, 6, 48


def build_runner(
    suite: Suite, source: FirmwareSource, checkout: Checkout | None, progress: Progress
) -> Firmware:
    """Builds the runner for QEMU, on which the stand-in runs it. Raises what ``source.build``
    does."""
    in_mode = source.one_memory_mode and suite.mode
    target = load_target(f"{suite.target}@{suite.mode}" if in_mode else suite.target)
    chosen = pick(target, SimulatorName.QEMU)
    request = BuildRequest(chosen.target, chosen.name, checkout, suite.options)
    return source.build(request, progress)


def check_core(suite: Suite, elf: Path) -> None:
    """An ELF without build attributes is accepted. Raises UsageError."""
    if not suite.helium:
        return
    try:
        file = ElfFile(read_regular(elf))
        tags = file.attributes if file.machine_number == EM_ARM else {}
    except (MalformedFile, OSError):  # the stand-in reports it
        return
    if _CPU_ARCH in tags and not tags.get(_MVE_ARCH):
        name = str(tags.get(_CPU_NAME, ""))
        built_for = f"Armv{name}" if name[:1].isdecimal() else name
        raise UsageError(
            f"{elf} was built for {built_for or 'a core'} without Helium, and the programs of the "
            f"{suite.name} suite are compiled for a Cortex-M55 with it: they would run with the "
            "scratch sizes of other kernels, and prove nothing",
            hint="give the runner that was built for cortex-m55 (ExecuTorch's "
            "backends/cortex_m/test/build_test_runner.sh --target=cortex-m55)",
            path=elf,
            built_for=built_for,
        )
