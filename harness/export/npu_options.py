"""What Vela is told about an Ethos-U. Imports no torch: a mistake shows before any work.

Products, their MAC counts and defaults are those of ``targets/npu/products.yaml``. Which system
configurations and memory modes go together is read from Vela's own ``vela.ini``, by the rule of
its ``architecture_features.py`` (5.1.0): the arena must be in SRAM or DRAM.
"""

from __future__ import annotations

import configparser
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.core.errors import Unknown, UsageError

if TYPE_CHECKING:  # for an Ethos-U only, so that a Cortex-M request stays quick
    from harness.config.npu import ProductFacts

_VELA_INI = "ethosu/config_files/Arm/vela.ini"


@dataclass(frozen=True)
class NpuOptions:
    """Everything that Vela is told; nothing is left to a default. ``direct_drive``: for a driver
    under Linux, with inputs and outputs in regions of their own."""

    compile_target: str
    system_config: str
    memory_mode: str
    direct_drive: bool = False


def is_ethos_u(compile_target: str) -> bool:
    return compile_target.startswith("ethos-u")


def resolve(
    compile_target: str,
    system_config: str = "",
    memory_mode: str = "",
    *,
    direct_drive: bool = False,
) -> NpuOptions:
    """Fill in the defaults. Raises UsageError for what Vela does not know or cannot do.

    Call with ethos-u-vela installed.
    """
    product, facts = _product(compile_target)
    options = NpuOptions(
        compile_target,
        system_config or facts.system_config,
        memory_mode or facts.memory_mode,
        direct_drive,
    )
    ini = configparser.ConfigParser()
    from importlib import metadata

    ini.read(str(metadata.distribution("ethos-u-vela").locate_file(_VELA_INI)))
    system = _section(ini, "System_Config", options.system_config, f"Ethos_{product.upper()}_")
    mode = _section(ini, "Memory_Mode", options.memory_mode)
    if "inherit" in mode:
        mode = ini[mode["inherit"]]
    arena = system[f"{mode['arena_mem_area'].lower()}_port"]
    if arena not in ("Sram", "Dram"):
        raise UsageError(
            f"{compile_target} has no memory mode {options.memory_mode} with "
            f"{options.system_config}: the arena would be in {arena}, which nothing can write to",
            hint="another memory mode, or a system configuration with DRAM",
        )
    return options


def _product(compile_target: str) -> tuple[str, ProductFacts]:
    from harness.config.npu import products

    for product, facts in products().products.items():
        match = re.fullmatch(rf"ethos-{product}-(\d+)", compile_target)
        if match and int(match[1]) in facts.macs:
            return product, facts
    known = [
        f"ethos-{product}-{{{','.join(map(str, facts.macs))}}}"
        for product, facts in products().products.items()
    ]
    raise UsageError(
        f"ExecuTorch cannot compile for '{compile_target}'",
        hint=f"an Ethos-U is one of {', '.join(known)}",
    )


def _section(
    ini: configparser.ConfigParser, kind: str, name: str, prefix: str = ""
) -> configparser.SectionProxy:
    start = f"{kind}.{prefix}"
    if ini.has_section(f"{kind}.{name}") and name.startswith(prefix):
        return ini[f"{kind}.{name}"]
    known = [s.removeprefix(f"{kind}.") for s in ini.sections() if s.startswith(start)]
    what = kind.replace("_Config", " configuration").replace("_", " ").lower()
    npu = f" for an Ethos-{prefix[6:-1]}" if prefix else ""
    raise Unknown(f"Vela has no {what} '{name}'{npu}", name, known)
