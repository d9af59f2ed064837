"""The sources of a runner under test: what each can do, and the Firmware that each builds.

A source is the object ``SOURCE`` of a module in ``harness.firmware.sources``; the module's name is
its name in ``--firmware``, in records and in references. No other module depends on which one it
has.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.config.schema import Data
from harness.config.target import Region, Target
from harness.core.verdict import Word
from harness.firmware.names import BUNDLED, source_names
from harness.system.git import shown
from harness.system.paths import executorch_package
from harness.system.progress import Progress, silent

if TYPE_CHECKING:
    from harness.core.simulator_name import SimulatorName
    from harness.firmware.checkout import Checkout
    from harness.formats.linker_map import MapRegion


RUNNER = "executor_runner"
STRIPPED = f"{RUNNER}.stripped"  # as a board stores it, where the port makes it
ROOT = "root"  # files that the guest's root file system must have, if any
STAMP = "firmware.json"
REGION = "HIL_REGION_"  # begins the CMake options of the memory map


@dataclass(frozen=True)
class BuildRequest:
    """The requested runner. ``target``: with the memory of ``simulator`` (``Chosen.target``).
    ``checkout``: for a source that needs one. ``options``: CMake's, of the bundled runner.
    ``program``: the ``.pte`` to run, for a source that compiles it into the firmware.
    """

    target: Target
    simulator: SimulatorName
    checkout: Checkout | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    program: Path | None = None


class FirmwareSource(ABC):
    """One source. The defaults hold for a runner that is not the harness's own."""

    name: str
    runner = "ExecuTorch's runner"  # in messages
    kernel_hint: str  # what to do about a missing kernel
    backend_hint: str  # and about a missing backend
    extra_backends: tuple[str, ...] = ()  # that no runner of a single file has
    offer = ""  # how to propose this source to a user who needs one of these backends
    schema_hint = "export with the checkout, too: --exporter checkout"  # if it misreads programs
    needs_checkout = False
    one_set_per_process = False  # each start takes one input set
    one_memory_mode = False  # the ELF is for one memory mode of the NPU
    prints_build_id = False
    prints_all_figures = False  # every figure that a budget can limit is on the console
    sizes_are_accepted = False  # has references of its sizes alone, with pools and stored file
    linked_for_simulator = False  # with the memory map that ``pick`` gives the target
    follows_definitions = False  # its kernels have none of the named differences (by_design)

    @abstractmethod
    def key(self, request: BuildRequest) -> str:
        """The cache key of the firmware of ``build``, built or not."""

    def require_tools(self, request: BuildRequest) -> None:  # noqa: B027
        """Raises ToolMissing for what a build needs, as far as it is known at once."""

    def check(self, request: BuildRequest) -> None:
        """Raises UsageError when there is no such runner, as far as known without any work."""
        return

    @abstractmethod
    def build(self, request: BuildRequest, progress: Progress = silent) -> Firmware:
        """The firmware, from the cache or built now; one process builds, others wait.

        Raises BuildError, LinkError, ToolMissing, InfraError, UsageError (no such runner).
        """

    def embeds_program(self, target: Target) -> bool:
        """Whether each program has a firmware of its own, which is built with it."""
        return False

    @abstractmethod
    def tree(self, request: BuildRequest) -> Path:
        """The directory that ``build`` builds in, whether it exists or not."""

    def options_for(self, operators: Sequence[str]) -> Mapping[str, str]:
        """The build options that add kernels for these operators."""
        return {}

    def without_kernel(self, operators: Sequence[str], target: Target) -> tuple[str, ...]:
        """The operators without a kernel in any build for the target, as far as known before a
        build."""
        return ()

    def larger_pools(
        self, options: Mapping[str, str], target: Target, pte: Path
    ) -> Mapping[str, str]:
        """The build options that give memory for a program; none if a firmware's ``options`` give
        enough. Raises DoesNotFit when the target has too little."""
        return {}

    def schema_root(self, checkout: Path | None) -> Path:
        """The folder of the ExecuTorch whose schemas the runner uses to read programs."""
        return executorch_package()

    def arguments(self) -> Mapping[str, tuple[str, ...]]:
        """The names of its kernels' arguments, by operator, if ``schema_root`` may differ: another
        release than the kernels were written for may be installed."""
        return {}

    def takes_flags(self, port: str | None) -> bool:
        """Whether the command line is that of ExecuTorch's runner for Linux."""
        return False

    def has_linker_script(self, port: str | None) -> bool:
        """Whether the memory map is in its own linker script, not in the target's."""
        return port == "zephyr"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are the one object."""
        return source_named, (self.name,)


@cache
def source_named(name: str) -> FirmwareSource:
    """Raises ValueError for a name that no source has."""
    if name not in source_names():
        raise ValueError(f"no source of firmware is called {name!r}")
    source = importlib.import_module(f"harness.firmware.sources.{name}").SOURCE
    assert isinstance(source, FirmwareSource)
    return source


@dataclass(frozen=True)
class Firmware(Data):
    """A built runner. ``options`` are the CMake options that made it.

    ``checkout``: the one it was built from, if the source needs one. ``sources``: digest of the
    bundled runner's source files. ``notes``: for a record. ``program``: sha256 of the program that
    is compiled into it; "" for a runner that reads programs.
    """

    directory: Path
    target: str
    key: str
    toolchain_id: str
    build_id: str  # hex, from the ELF's note; also printed by the bundled runner
    elf_sha256: str
    seconds: float  # of its build
    options: dict[str, str] = field(default_factory=dict)
    source: FirmwareSource = field(default_factory=lambda: source_named(BUNDLED))
    checkout: CheckoutFacts | None = None
    sources: str = ""
    notes: tuple[str, ...] = ()
    program: str = ""

    @property
    def one_set_per_process(self) -> bool:
        """Whether each start takes only one input set."""
        return self.source.one_set_per_process

    @property
    def takes_flags(self) -> bool:
        """Whether it has the command line of ExecuTorch's runner for Linux."""
        return self.source.takes_flags(self._port)

    @property
    def _port(self) -> str | None:
        return self.options.get("HIL_PORT")

    @property
    def printed_build_id(self) -> str | None:
        """The build id; None if the runner does not print it."""
        return self.build_id if self.source.prints_build_id else None

    @property
    def arithmetic(self) -> Arithmetic:
        """The arithmetic of its kernels; a checkout's are ExecuTorch's C++."""
        return built_with(self.options)

    @property
    def elf(self) -> Path:
        return self.directory / RUNNER

    @property
    def root(self) -> Path | None:
        """A part of a root file system, the shared libraries of the program; None for a program
        that is one file."""
        folder = self.directory / ROOT
        return folder if folder.is_dir() else None

    @property
    def images(self) -> tuple[Path, ...]:
        """All its ELF files, the program first."""
        libraries = () if self.root is None else sorted(self.root.rglob("*.so"))
        return (self.elf, *libraries)

    @property
    def stored_bytes(self) -> int | None:
        """The size of the file that a board stores; None if the port makes no such file."""
        stripped = self.directory / STRIPPED
        return stripped.stat().st_size if stripped.is_file() else None

    @property
    def map(self) -> Path:
        """The linker map."""
        return self.directory / f"{RUNNER}.map"

    @property
    def regions(self) -> tuple[Region | MapRegion, ...]:
        """The memory regions that it was linked for; a simulator may have less than the board. A
        checkout and Zephyr have their own linker scripts, whose regions are in the map (here
        without those that another one covers).

        Raises UsageError when the map cannot be read.
        """
        if self.source.has_linker_script(self._port):
            from harness.formats.linker_map import read_map

            kept: list[MapRegion] = []
            for region in read_map(self.map).regions:  # Zephyr's ITCM is also its FLASH
                end = region.origin + region.size
                if not any(k.origin <= region.origin and end <= k.origin + k.size for k in kept):
                    kept.append(region)
            return tuple(kept)
        regions = (name for name in self.options if name.startswith(REGION))
        return tuple(
            Region(name=name.removeprefix(REGION), origin=int(at, 16), size=int(size, 16))
            for name in regions
            for at, _, size in [self.options[name].partition(":")]
        )


@dataclass(frozen=True)
class CheckoutFacts:
    """The facts in a record about a checkout under test.

    ``diff_sha256``: of the uncommitted edits, "" without any. ``platform``: the source of start-up,
    linker script and libraries ("hil" or "sdk"). ``notes``: differences to ExecuTorch's own build.
    ``parts``: those that are not the versions the checkout names. ``edited``: names of files.
    """

    path: str
    commit: str
    branch: str
    dirty: bool
    diff_sha256: str
    platform: str
    notes: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()

    @property
    def short(self) -> str:
        """For messages: "cff6f4dd+edits, cmsis-nn 1234abcd"."""
        return ", ".join((shown(self.commit, edited=self.dirty), *self.parts))


def label(source: str, checkout: CheckoutFacts | None = None) -> str:
    """Distinguishes a result from one of the bundled runner, whose label is ""."""
    if source == BUNDLED:
        return ""
    return source if checkout is None else f"{source} {checkout.short}"


def full_label(source: str, checkout: CheckoutFacts | None) -> str:
    """The label, where the bundled runner has one too."""
    return label(source, checkout) or source


class Arithmetic(Word):
    """The arithmetic of operators where ExecuTorch's C++ and its Python definitions differ.

    The C++, on top of CMSIS-NN, is what ships; the exporter's own tests compare a lowered program
    with the Python definitions. ``export/by_design`` lists the differences.
    """

    CMSIS_NN = "cmsis-nn"
    PYTHON = "python"


OPTION = "HIL_ARITHMETIC"  # of the runner's CMake


def build_options(wanted: Arithmetic | None) -> dict[str, str]:
    """The CMake options of the bundled runner for an arithmetic; none when the target decides."""
    return {} if wanted is None else {OPTION: str(wanted)}


def built_with(options: Mapping[str, str]) -> Arithmetic:
    """The arithmetic of a runner with these CMake options."""
    return Arithmetic(options.get(OPTION, Arithmetic.CMSIS_NN))
