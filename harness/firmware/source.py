"""Where a runner under test comes from: what each source can do, and how to find the sources.

A source is the object ``SOURCE`` of a module in ``harness.firmware.sources``; the module's name is
its name in ``--firmware``, in records and in references. No other module asks which one it has.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.config.loading import Target
from harness.config.model import SimulatorName
from harness.firmware.installed import executorch_package
from harness.firmware.names import source_names
from harness.system.progress import Progress, silent

if TYPE_CHECKING:
    from harness.firmware.executorch.checkout import Checkout
    from harness.firmware.firmware import Firmware

_SHOWN_COMMIT = 8  # characters


@dataclass(frozen=True)
class BuildRequest:
    """The runner that is wanted. ``target``: as it is on ``simulator`` (``Chosen.target``).

    ``checkout``: for a source that needs one. ``options`` (CMake's) and ``variant``
    are of the bundled runner's build.
    """

    target: Target
    simulator: SimulatorName
    checkout: Checkout | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    variant: str | None = None


class FirmwareSource(ABC):
    """One source. The attributes given here hold for a runner that is not the harness's own."""

    name: str
    runner = "ExecuTorch's runner"  # in messages
    kernel_hint: str  # what to do about a missing kernel
    backend_hint: str  # and about a missing backend
    extra_backends: tuple[str, ...] = ()  # that no runner of a single file has
    offer = ""  # how to propose this source to somebody who wants one of them
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
        """The name in the cache of what ``build`` gives, built or not."""

    @abstractmethod
    def build(self, request: BuildRequest, progress: Progress = silent) -> Firmware:
        """From the cache or built now; one process builds, others wait.

        Raises BuildError, LinkError, ToolMissing, InfraError, UsageError (no such runner).
        """

    @abstractmethod
    def tree(self, request: BuildRequest) -> Path:
        """The directory that ``build`` builds in, whether it exists or not."""

    def schema_root(self, checkout: Path | None) -> Path:
        """The folder of ExecuTorch whose schemas the runner reads programs by."""
        return executorch_package()

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
    """What a record says of a checkout under test.

    ``diff_sha256`` is of the edits that are not committed, "" where there are none. ``platform``:
    who gave start-up, linker script and libraries ("hil" or "sdk"). ``notes``: what differs from
    ExecuTorch's own build.
    """

    path: str
    commit: str
    branch: str
    dirty: bool
    diff_sha256: str
    platform: str
    notes: tuple[str, ...] = ()

    @property
    def short(self) -> str:
        """The commit as people write it, and whether there are edits."""
        return self.commit[:_SHOWN_COMMIT] + ("+edits" if self.dirty else "")

    def to_fields(self) -> dict[str, Any]:
        return asdict(self)


def checkout_facts(fields: Mapping[str, Any] | None) -> CheckoutFacts | None:
    """From plain data. Raises TypeError or KeyError for data of another shape."""
    if fields is None:
        return None
    return CheckoutFacts(**{**fields, "notes": tuple(fields["notes"])})
