"""The sources of a runner under test: what each can do, and how to find them.

A source is the object ``SOURCE`` of a module in ``harness.firmware.sources``; the module's name is
its name in ``--firmware``, in records and in references. No other module depends on which one it
has.

A checkout is named by ``--executorch DIR``, by ``$EXECUTORCH_ROOT``, or by ``executorch`` of the
user's settings (``harness.system.settings``). Only the option also selects the checkout's
firmware; with the others ``--firmware`` must.
"""

from __future__ import annotations

import importlib
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.core.errors import UsageError
from harness.core.verdict import Word
from harness.system.git import shown
from harness.system.paths import executorch_package
from harness.system.progress import Progress, silent
from harness.system.settings import ROOT_VARIABLE, Settings, settings

if TYPE_CHECKING:
    from harness.config.target import Target
    from harness.core.simulator_name import SimulatorName
    from harness.firmware.executorch.checkout import Checkout
    from harness.firmware.firmware import Firmware


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


BUNDLED = "bundled"  # the source where none is named
CHECKOUT = "executorch"  # the source that ``--executorch`` asks for
_ALIASES = {"both": f"{BUNDLED}+{CHECKOUT}"}


def source_names() -> tuple[str, ...]:
    """The modules of ``harness.firmware.sources``, the bundled one first."""
    folder = Path(__file__).with_name("sources")
    names = {name[:-3] for name in os.listdir(folder) if name.endswith(".py") and name[0] != "_"}
    return (BUNDLED, *sorted(names - {BUNDLED}))


def firmware_words() -> tuple[str, ...]:
    """The values of ``--firmware``: each source, and each together with the bundled one."""
    others = source_names()[1:]
    return (BUNDLED, *others, *_ALIASES, *(f"{BUNDLED}+{name}" for name in others))


def names_of(word: str) -> tuple[str, ...]:
    """The sources of one of ``firmware_words``, in order. Raises ValueError for another word."""
    if word not in firmware_words():
        raise ValueError(f"one of {', '.join(firmware_words())} is wanted")
    return tuple(_ALIASES.get(word, word).split("+"))


def label(source: str, checkout: CheckoutFacts | None = None) -> str:
    """Distinguishes a result from one of the bundled runner, whose label is ""."""
    if source == BUNDLED:
        return ""
    return source if checkout is None else f"{source} {checkout.short}"


def full_label(source: str, checkout: CheckoutFacts | None) -> str:
    """The label, where the bundled runner has one too."""
    return label(source, checkout) or source


@dataclass(frozen=True)
class FirmwareChoice:
    """``sources``: those of the firmware, in order. ``root``: the checkout's folder, if a source
    needs one. ``parts``: local folders instead of the downloads of its build."""

    sources: tuple[FirmwareSource, ...] = field(default_factory=lambda: (source_named(BUNDLED),))
    root: Path | None = None
    parts: Mapping[str, Path] = field(default_factory=dict)

    def checkout(self) -> Checkout | None:
        """None when no source needs one. Raises what ``find_checkout`` does."""
        if self.root is None:
            return None
        from harness.firmware.executorch.checkout import find_checkout

        return find_checkout(self.root, self.parts)


class NoCheckout(UsageError):
    """``option`` needs a checkout of ExecuTorch, and nothing names one."""

    def __init__(self, option: str) -> None:
        self.option = option
        super().__init__(
            f"{option} needs a checkout of ExecuTorch, and none was named",
            hint="name it with --executorch DIR (for pytest: --hil-executorch DIR), with "
            f'${ROOT_VARIABLE}, or with executorch = "DIR" under [tool.hil] in pyproject.toml',
        )


def sources_of(word: str) -> tuple[FirmwareSource, ...]:
    """The sources of a value of ``--firmware``, in order. Raises ValueError for another word."""
    return tuple(map(source_named, names_of(word)))


def choose(word: str | None, executorch: Path | None, parts: Sequence[str]) -> FirmwareChoice:
    """The firmware that ``--firmware``, ``--executorch`` and ``--part`` select together.

    Raises NoCheckout, and UsageError for a part or settings that are malformed.
    """
    wanted = word or (BUNDLED if executorch is None else CHECKOUT)
    sources = sources_of(wanted)
    if not any(source.needs_checkout for source in sources):
        return FirmwareChoice(sources)
    root = named_root(executorch)
    if root is None:
        raise NoCheckout(f"--firmware {wanted}")
    return FirmwareChoice(sources, root, _parts(parts, settings()))


def named_root(executorch: Path | None) -> Path | None:
    """The checkout's folder, from ``--executorch``, the environment or the project's settings; None
    when none of them names it. Raises UsageError for settings that are malformed."""
    root = executorch or os.environ.get(ROOT_VARIABLE) or settings().executorch
    return None if root is None else Path(root).absolute()


def _parts(words: Sequence[str], project: Settings) -> dict[str, Path]:
    """Parts of the command line replace those of the settings."""
    if not (project.parts or words):
        return {}
    from harness.firmware.executorch.checkout import read_given

    inherited = read_given(project.parts, project.folder) if project.parts else {}
    return {**inherited, **read_given(words)}


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
