"""ExecuTorch's on-target suites: which tests, which runner, and the failures that are known.

Directories and names are those of ExecuTorch 1.5.1 (``backends/arm/test/runner_utils.py``), and so
is the size of each NPU: ``run_corstone`` there starts the models with 128, 256 and 128 MACs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.build.plan import executorch_package
from harness.conformance.model import SuiteResult
from harness.errors import InfraError
from harness.system import strict_yaml

_RUNNERS = "arm_test/arm_semihosting_executor_runner_"
_MIB = 1 << 20
_REQUIRED = frozenset({"reason", "finding"})
_CONDITIONS = frozenset({"elf_has", "elf_lacks"})
# Single operators on large tensors: more memory than any board has, all of it shared with the NPU.
_ROOMY = {
    **{f"HIL_{pool}_POOL_PLACE": "DDR" for pool in ("METHOD", "TEMP", "FILE")},
    "HIL_METHOD_POOL_BYTES": str(48 * _MIB),
    "HIL_TEMP_POOL_BYTES": str(96 * _MIB),
    "HIL_FILE_POOL_BYTES": str(64 * _MIB),
}


@dataclass(frozen=True)
class Tooling:
    """Whose tests, and whose Python exports in them: a checkout's. ``environment``: the folder to
    import its package from; ``version``: its content; ``label``: as people write it."""

    environment: Path
    version: str
    label: str


@dataclass(frozen=True)
class Suite:
    name: str
    root: str  # of the suite, in the executorch package; test ids are relative to it
    runners: tuple[str, ...]  # directories that the suite looks for its runner in
    target: str  # whose bundled runner is used
    tests: str = "."  # directory of the tests, below root
    only: str = ""  # a test belongs to the suite when its function's name has this in it
    options: Mapping[str, str] = field(default_factory=dict)  # of the runner's build
    note: str = ""
    helium: bool = False  # its programs need kernels that were built for it
    # The memory mode that the suite's own script builds ExecuTorch's runner for, where it is not
    # the target's (backends/arm/test/setup_testing.sh): the size of its pools follows from it.
    mode: str = ""

    def directory(self, tooling: Tooling | None = None) -> Path:
        """Where the checkout has it, or the installed wheel."""
        theirs = tooling is not None
        package = executorch_package() if tooling is None else tooling.environment / "executorch"
        directory = package / self.root
        if not (directory / "ops").is_dir():
            raise InfraError(
                f"the {'checkout' if theirs else 'installed executorch'} has no {self.name} suite "
                f"(no {directory}/ops)",
                hint="run the wheel's: --exporter wheel"
                if theirs
                else "pip install executorch==1.5.1",
            )
        return directory

    @property
    def expectations(self) -> Path:
        return Path(__file__).with_name(f"{self.name.replace('-', '_')}.yaml")


def _ethos_u(product: str, board: str, target: str, note: str = "", mode: str = "") -> Suite:
    return Suite(
        name=f"ethos-{product}",
        root="backends/arm/test",
        tests="ops",
        only=product,
        # The other one has ExecuTorch's portable operators; ours always has those it has.
        runners=(f"{_RUNNERS}{board}", f"{_RUNNERS}portable-ops_{board}"),
        target=target,
        options=_ROOMY,
        note=note,
        mode=mode,
    )


SUITES: Mapping[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite(
            name="cortex-m",
            root="backends/cortex_m/test",
            # Until ExecuTorch's pull request 20048 (June 2026) the one for every core.
            runners=(f"{_RUNNERS}corstone-300_cortex-m55", f"{_RUNNERS}corstone-300"),
            target="corstone-300-m55",
            helium=True,
        ),
        _ethos_u("u55", "corstone-300", "corstone-300-u55-128"),
        _ethos_u(
            "u65",
            "corstone-300-u65",
            "corstone-300-u65-256",
            "ExecuTorch has five tests for the Ethos-U65, all of add, and no option that compiles "
            "its other tests for one",
        ),
        _ethos_u("u85", "corstone-320", "corstone-320-u85-128", mode="Dedicated_Sram_384KB"),
    )
}


@dataclass(frozen=True)
class KnownFailure:
    """It is explained, and strict: a test that passes although it is known to fail is an error."""

    reason: str
    finding: str  # the heading of docs/findings.md
    elf_has: str | None = None
    elf_lacks: str | None = None

    def applies_to(self, elf: bytes) -> bool:
        return (self.elf_has is None or self.elf_has.encode() in elf) and (
            self.elf_lacks is None or self.elf_lacks.encode() not in elf
        )


def read_known(path: Path) -> dict[str, KnownFailure]:
    """By test id. Raises TargetError (file and line) when the file is malformed."""
    document = strict_yaml.read(path)
    expected: dict[str, KnownFailure] = {}
    for test, entry in document.data.items():
        place = document.place((test,))
        if not isinstance(entry, dict) or not (_REQUIRED <= set(entry) <= _REQUIRED | _CONDITIONS):
            raise place.error(
                f"{test} needs the keys reason and finding, and may have elf_has and elf_lacks"
            )
        if not all(isinstance(value, str) and value.strip() for value in entry.values()):
            raise place.error(f"the values of {test} are texts")
        expected[test] = KnownFailure(**{key: value.strip() for key, value in entry.items()})
    return expected


def meant_for(expected: dict[str, KnownFailure], elf: Path) -> dict[str, KnownFailure]:
    """Those that are meant for this runner."""
    content = elf.read_bytes()
    return {test: one for test, one in expected.items() if one.applies_to(content)}


def lay_over(
    verdicts: Iterable[SuiteResult], expected: dict[str, KnownFailure], *, strict: bool = True
) -> tuple[SuiteResult, ...]:
    """A failure that was expected becomes ``xfailed``; a pass that was not, ``failed``.

    Not ``strict``: the tests are of another ExecuTorch than the expectations, and may pass.
    """
    return tuple(_lay_over(verdict, expected.get(verdict.id), strict) for verdict in verdicts)


def _lay_over(verdict: SuiteResult, expectation: KnownFailure | None, strict: bool) -> SuiteResult:
    if expectation is None:
        return verdict
    if verdict.result == "failed":
        return replace(verdict, result="xfailed", cause=f"{expectation.reason} [{verdict.cause}]")
    if verdict.result == "passed" and strict:
        return replace(
            verdict,
            result="failed",
            cause=f"was expected to fail ({expectation.reason}) and passed: take it out of the "
            "expectation file",
        )
    return verdict


def strangers(
    verdicts: Iterable[SuiteResult], expected: dict[str, KnownFailure]
) -> tuple[str, ...]:
    """Complaints about expectations for tests that the whole suite does not have."""
    known = {verdict.id for verdict in verdicts}
    return tuple(
        f"the expectation file names {test}, which the suite does not have"
        for test in expected
        if test not in known
    )
