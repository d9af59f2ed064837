"""What is known of Arm's FVPs, as data: targets/fvp/models.yaml, one entry per model.

Names of MPS3 boards (Corstone-300/310) and MPS4 boards (Corstone-315/320) look alike and are
never accepted for each other: a model takes an unknown parameter as an error at best.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field

from harness.config import strict_yaml
from harness.config.schema import Data, Text
from harness.formats.ethosu import MACS
from harness.system import paths

Board = Literal["mps3", "mps4", "corstone1000"]
Npu = Annotated[str, Field(pattern=f"^ethos-({'|'.join(MACS)})$")]

_ADDRESSES = ("heap_base", "heap_limit", "stack_base", "stack_limit")
# First parts of parameter names, by the board they belong to.
_PREFIXES = {
    "mps3": ("mps3_board.", "ethosu.", "cpu0.", "core_clk."),
    "mps4": ("mps4_board.", "vis_hdlcd.", "core_clk."),
    "corstone1000": ("board.", "host.", "se.", "extsys0.", "diagnostics"),
}


@dataclass(frozen=True, kw_only=True)
class Semihosting(Data):
    """The names this model gives to its semihosting parameters."""

    enable: Text
    cwd: Text
    command_line: Text
    command_line_limit: Annotated[int, Field(gt=0)]


@dataclass(frozen=True, kw_only=True)
class Fvp(Data):
    executable: Text
    package: Text  # the archive it comes in
    versions: tuple[Text, ...] = ()  # with the parameters below, as public sources have them
    semihosting: Semihosting | None = None  # None: a model that boots an operating system
    parameters: dict[Text, bool | int | str]
    model: Text | None = None  # the entry of targets/fvp/models.yaml this came from
    board: Board | None = None
    npu: Npu | None = None
    macs: Text | None = None  # the name of the parameter with the NPU's MAC count
    fast: bool = False  # the NPU's model without its cycles

    def __post_init__(self) -> None:
        names = [*self.parameters]
        if self.semihosting is not None:
            names += [self.semihosting.enable, self.semihosting.cwd, self.semihosting.command_line]
        for name in names:
            if self.board is not None and not name.startswith(_PREFIXES[self.board]):
                owner = next((b for b, p in _PREFIXES.items() if name.startswith(p)), None)
                belongs = f"it belongs to {owner} boards" if owner else "no board has it"
                raise ValueError(f"{name!r} is not a parameter of a {self.board} model: {belongs}")
        if self.npu is not None and self.macs in self.parameters:
            macs, known = self.parameters[self.macs], MACS[self.npu.removeprefix("ethos-")]
            if macs not in known:
                there = ", ".join(map(str, known))
                raise ValueError(f"{self.macs} is {macs}: an {self.npu} has {there}")
        # The semihosting heap and stack; the addresses hold on QEMU, too.
        for name, value in self.parameters.items():
            if name.endswith(_ADDRESSES):
                try:
                    int(str(value), 0)
                except ValueError:
                    raise ValueError(f"{name} is {value!r}, and no address") from None

    @property
    def all_parameters(self) -> dict[str, str]:
        """As the command line has them, with the NPU's for its fast mode (run_fvp.sh)."""
        values = self.parameters.items()
        given = {n: str(int(v) if isinstance(v, bool) else v) for n, v in values}
        if self.fast and self.macs is not None:
            name = self.macs.replace("num_macs", "extra_args")
            given[name] = f"{given.get(name, '')} --fast".strip()
        return given


@cache
def models_file() -> strict_yaml.Document:
    return strict_yaml.read(paths.data_root() / "targets" / "fvp" / "models.yaml")


def fvp_model(name: Any, place: strict_yaml.Place) -> dict[str, Any]:
    """Return the entry of one model. Raises TargetError at ``place`` if none has this name."""
    models = models_file().data
    if not isinstance(name, str) or name not in models:
        raise place.error(f"no FVP is called {name!r}", hint="there are: " + ", ".join(models))
    found: dict[str, Any] = models[name]
    return found
