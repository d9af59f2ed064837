"""Target and its parts: data, checked strictly, without behaviour."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from harness.config.budgets import Budgets, Steps
from harness.config.fvp import Fvp
from harness.config.npu import DIRECT, Npu
from harness.config.schema import Data, Text
from harness.core.errors import Unknown
from harness.core.simulator_name import SimulatorName

LoweringName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
Identifier = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
CMakeName = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]
CMakeValue = Annotated[str, Field(pattern=r"^[^\x00-\x1f;]*$")]
Options = dict[CMakeName, CMakeValue]
PoolName = Annotated[str, Field(pattern=r"^(file|method|temp)$")]
RegionName = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]
Address = Annotated[int, Field(ge=0, le=0xFFFF_FFFF)]
Bytes = Annotated[int, Field(gt=0, le=0x1_0000_0000)]
Seconds = Annotated[float, Field(gt=0, lt=1e6)]


@dataclass(frozen=True, kw_only=True)
class Region(Data):
    """A stretch of memory the linker may use, at the address the program uses for it."""

    name: RegionName
    origin: Address
    size: Bytes

    @property
    def end(self) -> int:
        return self.origin + self.size


def apart(regions: tuple[Region, ...]) -> tuple[Region, ...]:
    """Return the regions. Raises ValueError when two have one name, overlap, or exceed 32 bits."""
    ordered = sorted(regions, key=lambda region: region.origin)
    names = [region.name for region in ordered]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"two regions are called {min(twice)}")
    for low, high in pairwise(ordered):
        if low.end > high.origin:
            raise ValueError(f"{low.name} (ends at 0x{low.end:x}) overlaps {high.name}")
    if ordered and ordered[-1].end > 1 << 32:
        raise ValueError(f"{ordered[-1].name} reaches beyond 32 bits")
    return regions


@dataclass(frozen=True, kw_only=True)
class Limits(Data):
    """The limits of a run. ``model`` and ``simulated`` are the simulator's own limits."""

    host: Seconds  # wall time, enforced by the harness
    stall: Seconds  # no console byte and no CPU time used
    # without a console byte, where QEMU counts them (-icount): a busy loop
    instructions: Annotated[int, Field(gt=0)] = 10_000_000_000
    model: Seconds | None = None  # wall time, enforced by the FVP (--timelimit)
    simulated: Seconds | None = None  # time inside the model (--simlimit)
    cycles: Annotated[int, Field(gt=0)] | None = None  # of the model (--cyclelimit)
    boot: Seconds = 120.0  # wall time from the start to the login prompt of an operating system
    shell: Seconds = 30.0  # wall time for each command but the runner's
    factor: Annotated[float, Field(gt=0, le=1000)] = 1.0  # this target's own multiplier

    def booting(self, seconds: float) -> Limits:
        """Return a copy with at least ``seconds`` to boot, and ``host`` extended by as much."""
        more = max(0.0, seconds - self.boot)
        return replace(self, host=self.host + more, boot=self.boot + more)

    def scaled(self, factor: float) -> Limits:
        """All limits times ``factor`` and the target's own factor, which is then used up."""
        by = factor * self.factor
        seconds = ("host", "stall", "model", "simulated", "boot", "shell")
        given = {name: value for name in seconds if (value := getattr(self, name)) is not None}
        cycles = None if self.cycles is None else max(1, round(self.cycles * by))
        scaled = {name: value * by for name, value in given.items()}
        return replace(self, **scaled, cycles=cycles, factor=1.0)


@dataclass(frozen=True, kw_only=True)
class Lowering(Data):
    """Another way to lower a target's programs.

    ``compile_target``: the exporter's name of it; ``tolerance_lsb`` replaces the target's own,
    because this arithmetic is not exact."""

    description: Text
    compile_target: Text
    tolerance_lsb: Steps = 0.0


@dataclass(frozen=True, kw_only=True)
class Substitute(Data):
    """A simulator that replaces some parts of the board.

    ``moved``: regions that are elsewhere. ``cmake``: how the runner for it is built differently.
    ``core``: its CPU. ``shared_memory``: where a functional model of the NPU and the CPU meet.
    ``board``: Zephyr's name of the board that this simulator models.
    """

    called: ClassVar[str] = "QEMU"
    process: ClassVar[bool] = False  # the runner is a process of this machine
    moved: tuple[Region, ...] = ()
    cmake: Options = field(default_factory=dict)
    core: Text | None = None
    shared_memory: Region | None = None
    board: Text | None = None


@dataclass(frozen=True, kw_only=True)
class GuestOnQemu(Data):
    """The image that is made for a Linux guest.

    It says where its console is, and what the kernel loads to reach the machine's devices. Its
    files are those of a directory, by virtio-9p."""

    console: Text
    modules: tuple[Text, ...] = ()
    options: tuple[Text, ...] = ()  # more of the kernel's command line


@dataclass(frozen=True, kw_only=True)
class Qemu(Substitute):
    executable: Text
    machine: Text
    arguments: tuple[Text, ...] = ()
    memory: Annotated[str, Field(pattern=r"^[1-9][0-9]{0,6}[KMGkmg]?$")] | None = None
    serial: bool = False  # its first UART is part of the console
    guest: GuestOnQemu | None = None  # of a target with Linux

    def __post_init__(self) -> None:
        if self.memory is not None and self.shared_memory is not None:
            raise ValueError("`memory` and `shared_memory` both set the memory; give one of them")


@dataclass(frozen=True, kw_only=True)
class QemuUser(Substitute):
    """QEMU in user mode, for a program that runs under Linux.

    ``cpu``: QEMU's name of the CPU; its default is not a real one. ``core``: the usual name."""

    process: ClassVar[bool] = True
    executable: Text
    cpu: Text
    core: Text


@dataclass(frozen=True, kw_only=True)
class Host(Substitute):
    """The machine we are on. ``shared_memory``: where the model of a target's NPU works."""

    called: ClassVar[str] = "a native program"


@dataclass(frozen=True, kw_only=True)
class Board(Substitute):
    """Hardware, through labgrid.

    ``labgrid``: its environment file, next to the target's file; ``role``: of the target in it.
    ``flash``: a command that flashes ``{file}``, ELF or Intel HEX, and starts the board, where no
    driver of labgrid's does. ``stand_in``: what stands in for the hardware, if anything."""

    called: ClassVar[str] = "the board"
    labgrid: Text
    role: Text = "main"
    flash: tuple[Text, ...] = ()
    flash_seconds: Seconds = 120.0
    answer_seconds: Seconds = 30.0  # until the runner's first line
    wait: Seconds = 600.0  # for another run to be done with the board
    stand_in: Text | None = None


@dataclass(frozen=True, kw_only=True)
class Linux(Data):
    """The console of a target with Linux: the user who logs in, and how the prompt ends.

    ``folder``: where a run on an FVP or a board puts its files, on a memory card for instance."""

    hostname: Text
    user: Text = "root"
    prompt: Annotated[str, Field(min_length=1)]
    folder: Annotated[str, Field(pattern=r"^/[\w./-]*$")] = "/tmp"


@dataclass(frozen=True, kw_only=True)
class Zephyr(Data):
    board: Text  # as `west build -b` takes it
    # one's own, with the runner's module; its folder is named from that of the target's file
    application: Text | None = None


@dataclass(frozen=True, kw_only=True)
class Simulators(Data):
    # the first that is installed
    auto: Annotated[tuple[SimulatorName, ...], Field(min_length=1)]
    fvp: Fvp | None = None
    qemu: Qemu | None = None
    qemu_user: QemuUser | None = None
    host: Host | None = None
    board: Board | None = None

    @property
    def names(self) -> tuple[SimulatorName, ...]:
        return tuple(name for name in SimulatorName if getattr(self, name) is not None)

    def substitute(self, simulator: SimulatorName) -> Substitute | None:
        """None for a simulator that has the whole board."""
        there = getattr(self, simulator)
        if isinstance(there, Host) and there.shared_memory is None:
            return None  # the target is this machine
        return there if isinstance(there, Substitute) else None

    def __post_init__(self) -> None:
        missing = [name for name in self.auto if name not in self.names]
        if missing:
            raise ValueError(f"`auto` names '{missing[0]}', which is not described here")


@dataclass(frozen=True, kw_only=True)
class Target(Data):
    name: str
    file: Path
    description: Text
    marker: Identifier
    compile_target: Text  # the exporter's name
    lowerings: dict[LoweringName, Lowering] = field(default_factory=dict)  # others, by NAME@this
    port: Literal["cortex_m", "host", "linux", "zephyr"]
    zephyr: Zephyr | None = None  # for the port of that name
    linux: Linux | None = None  # the same
    cpu: Text  # the compiler's name of it
    core: Text | None = None  # the board's CPU, where a simulator has another
    npu: Npu | None = None
    toolchain: Literal["arm-none-eabi-gcc", "gcc", "aarch64-linux-gnu-gcc"]
    cmake: Options = field(default_factory=dict)
    memory: Annotated[tuple[Region, ...], AfterValidator(apart)] = ()
    # Bytes of the runner's pools: what most programs share, and what is fixed whatever they need.
    default_pools: dict[PoolName, Bytes] = field(default_factory=dict)
    pools: dict[PoolName, Bytes] = field(default_factory=dict)
    budgets: Budgets = field(default_factory=Budgets)
    limits: Limits
    simulators: Simulators

    def __post_init__(self) -> None:
        qemu = self.simulators.qemu
        for name in ("zephyr", "linux"):
            if (self.port == name) != (getattr(self, name) is not None):
                raise ValueError(f"`port: {name}` and the section `{name}` go together")
        if self.zephyr is None and qemu is not None and qemu.board is not None:
            raise ValueError("`board` of `qemu` is Zephyr's, and this target is not for Zephyr")
        if qemu is not None and (qemu.guest is None) != (self.linux is None):
            raise ValueError("QEMU has a section `guest` when the target has Linux, and only then")
        unknown = {r.name for r in (qemu.moved if qemu else ())} - {r.name for r in self.memory}
        if unknown:
            raise ValueError(f"`moved` names {min(unknown)}, which is not a region of the target")
        for simulator in self.simulators.names:
            apart(self._memory_on(simulator))

    @property
    def direct_drive(self) -> bool:
        """A driver of Linux has the NPU, with inputs and outputs in regions of their own."""
        return self.npu is not None and self.port in DIRECT

    def lowered(self, name: str) -> Target:
        """Return the target that is lowered otherwise: ``NAME@lowering``. Raises Unknown."""
        if name not in self.lowerings:
            message = f"target {self.name} has no lowering {name!r}"
            raise Unknown(message, name, self.lowerings, listing="it has: ")
        chosen = self.lowerings[name]
        return replace(
            self,
            name=f"{self.name}@{name}",
            description=f"{self.description}; {chosen.description}",
            compile_target=chosen.compile_target,
            budgets=replace(self.budgets, tolerance_lsb=chosen.tolerance_lsb),
        )

    def on(self, simulator: SimulatorName) -> Target:
        """Return the target as the runner for ``simulator`` is built: memory, CPU, options."""
        there = self.simulators.substitute(simulator)
        if there is None:
            return self
        return replace(
            self,
            memory=self._memory_on(simulator),
            cmake={**self.cmake, **there.cmake},
            zephyr=replace(self.zephyr, board=there.board)
            if self.zephyr and there.board
            else self.zephyr,
        )

    def _memory_on(self, simulator: SimulatorName) -> tuple[Region, ...]:
        there = self.simulators.substitute(simulator)
        moved = {} if there is None else {region.name: region for region in there.moved}
        return tuple(moved.get(region.name, region) for region in self.memory)

    def differences(self, simulator: SimulatorName, *, moved: bool = True) -> tuple[str, ...]:
        """Name what the board has and ``simulator`` lacks. ``moved``: the memory differs."""
        there = self.simulators.substitute(simulator)
        if there is None:
            return ()
        found = []
        model = there.shared_memory
        if self.npu is not None and model is not None:
            found.append(f"the {self.npu.name} is a functional model: results, not time")
        if self.core is not None and there.core is not None:
            found.append(f"the board's CPU is a {self.core}; {there.called} ran a {there.core}")
        if moved and self.zephyr is not None and there.board is not None:
            found.append(
                f"Zephyr was built for {there.board}, which {there.called} is, not for "
                f"{self.zephyr.board}"
            )
        if self.linux is not None and isinstance(there, Qemu):
            found.append(
                f"the guest is our own Linux on {there.called}'s {there.machine}: without the "
                "board's firmware, kernel and devices"
            )
        if there.process:
            found.append(
                "there was no board and no guest: the runner was a process of the harness's own "
                "machine, whose kernel answered its system calls"
            )
        if moved and self.npu is not None and model is not None:
            found += [
                f"the {region.name} is a slice of {there.called}'s DDR, which the NPU's model "
                "shares"
                for region in there.moved
                if model.origin <= region.origin and region.end <= model.end
            ]
        return tuple(found)
