"""The request for an export, and the key that names its result. Imports no torch.

``ExportRequest.compile_target`` is the exporter's name for a core (``cortex-m55``,
``ethos-u55-128``), or, for a CPU under an operating system, one of LOWERINGS.

The options of Vela, the Ethos-U's compiler, are checked here, before any work: products, MAC counts
and defaults are those of ``targets/npu/products.yaml``. Which system configurations and memory
modes go together is read from Vela's own ``vela.ini``, by the rule of its
``architecture_features.py`` (5.1.0): the arena must be in SRAM or DRAM.
"""

from __future__ import annotations

import configparser
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from harness.config.models import (
    CalibrationType,
    Layout,
    ModelSource,
    Quantization,
    source_files,
)
from harness.config.npu import ProductFacts, products
from harness.core.errors import ToolMissing, Unknown, UsageError
from harness.system.artifact_cache import key_of
from harness.system.files import content_digest
from harness.system.paths import install_command

EXPORTERS = ("torch", "executorch", "torchao")
ETHOS_U_EXPORTERS = (*EXPORTERS, "ethos-u-vela", "tosa-tools")
_OWN = Path(__file__).parent
_VELA_INI = "ethosu/config_files/Arm/vela.ini"


@dataclass(frozen=True)
class CpuLowering:
    """How a program for a CPU under Linux is lowered.

    ``quantised``: to int8, with a scale per output channel for weights, else it stays float32.
    ``xnnpack``: what XNNPACK's partitioner wants is XNNPACK's; else every operator is a kernel of
    ExecuTorch's, and between quantised ones the values are float32 (``quantized_decomposed``)."""

    quantised: bool
    xnnpack: bool


LOWERINGS: Mapping[str, CpuLowering] = {
    "portable-fp32": CpuLowering(quantised=False, xnnpack=False),
    "portable-int8": CpuLowering(quantised=True, xnnpack=False),
    "xnnpack-fp32": CpuLowering(quantised=False, xnnpack=True),
    "xnnpack-int8": CpuLowering(quantised=True, xnnpack=True),
}


@dataclass(frozen=True)
class NpuOptions:
    """All options of Vela; nothing is left to a default.

    ``direct_drive``: for a driver under Linux, with inputs and outputs in regions of their own."""

    compile_target: str
    system_config: str = ""
    memory_mode: str = ""
    direct_drive: bool = False


@dataclass(frozen=True)
class ExportRequest:
    """``compile_target`` is the exporter's name for the core, such as ``cortex-m55``.

    For an Ethos-U (``ethos-u55-128``) an empty system configuration or memory mode is
    ExecuTorch's default; for a Cortex-M both are empty. ``direct_drive``: see NpuOptions.
    """

    model: ModelSource
    compile_target: str = "cortex-m55"
    system_config: str = ""
    memory_mode: str = ""
    direct_drive: bool = False
    calibration: CalibrationType = CalibrationType.FLOAT64
    quantization: Quantization = Quantization.A8W8
    layout: Layout = Layout.CHANNELS_LAST

    @property
    def home(self) -> Path | None:
        """The folder of the user's file; None for a model of the catalogue."""
        return None if self.model.file is None else self.model.file.parent

    @property
    def npu(self) -> NpuOptions:
        """The options of a request for an Ethos-U. Raises what ``resolve`` does."""
        return resolve(
            NpuOptions(self.compile_target, self.system_config, self.memory_mode, self.direct_drive)
        )


def exporter_versions(compile_target: str = "cortex-m55") -> dict[str, str]:
    """Versions of the packages that decide the bytes, read without importing them.

    Raises ToolMissing."""
    names = ETHOS_U_EXPORTERS if is_ethos_u(compile_target) else EXPORTERS
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError as error:
            raise ToolMissing(
                f"the Python package '{name}' is not installed, so nothing can be exported",
                hint=install_command("export"),
                package=name,
            ) from error
    return found


def content_key(request: ExportRequest, versions: dict[str, str]) -> str:
    """Equal keys mean equal Programs: everything that decides the bytes is hashed into it."""
    model = request.model
    parts: dict[str, object] = {
        "model": [model.name, model.module, model.attribute],
        "sources": _sources(model),
        "compile_target": request.compile_target,
        "calibration": request.calibration,
        "quantization": request.quantization,
        "layout": request.layout,
        "versions": versions,
        "python": platform.python_version_tuple()[:2],
        "exporter": content_digest(sorted(_OWN.rglob("*.py")), _OWN),
    }
    name = f"{model.name}-{request.compile_target}"
    if request.quantization is not Quantization.A8W8:
        name += f"-{request.quantization}"
        lowering = LOWERINGS.get(request.compile_target)
        if lowering is not None and lowering.quantised:
            raise UsageError(
                f"'{request.compile_target}' has no {request.quantization}: XNNPACK's quantizer "
                "has 8 bits",
                hint="`quantization: a16w8` is for an Ethos-U; leave it out of the model's file",
            )
    if is_ethos_u(request.compile_target):
        npu = request.npu
        parts |= {"system_config": npu.system_config, "memory_mode": npu.memory_mode}
        parts |= {"direct_drive": npu.direct_drive}
        name += f"-{npu.memory_mode}" + ("-direct" if npu.direct_drive else "")
    return f"{name}-{key_of(parts)[:24]}"


def _sources(model: ModelSource) -> str:
    if model.definitions is not None:
        return content_digest([model.definitions], model.definitions.parent)
    if model.file is None:
        return ""
    files = source_files(model.file)
    return content_digest(files, model.file.parent)


def is_ethos_u(compile_target: str) -> bool:
    return compile_target.startswith("ethos-u")


def resolve(asked: NpuOptions) -> NpuOptions:
    """Fill in the defaults.

    Raises UsageError for what Vela does not know or cannot do; memory modes by name are
    ``harness.config.npu``'s to check. Call with ethos-u-vela installed."""
    product, facts = _product(asked.compile_target)
    options = replace(
        asked,
        system_config=asked.system_config or facts.system_config,
        memory_mode=asked.memory_mode or facts.memory_mode,
    )
    ini = configparser.ConfigParser()
    ini.read(str(metadata.distribution("ethos-u-vela").locate_file(_VELA_INI)))
    kind = "System_Config."
    names = [name.removeprefix(kind) for name in ini.sections() if name.startswith(kind)]
    known = [name for name in names if name.startswith(f"Ethos_{product.upper()}_")]
    if options.system_config not in known:
        what = f"system configuration '{options.system_config}' for an Ethos-{product.upper()}"
        raise Unknown(f"Vela has no {what}", options.system_config, known)
    system, mode = ini[kind + options.system_config], ini[f"Memory_Mode.{options.memory_mode}"]
    if "inherit" in mode:
        mode = ini[mode["inherit"]]
    arena = system[f"{mode['arena_mem_area'].lower()}_port"]
    if arena not in ("Sram", "Dram"):
        raise UsageError(
            f"{options.compile_target} has no memory mode {options.memory_mode} with "
            f"{options.system_config}: the arena would be in {arena}, which nothing can write to",
            hint="another memory mode, or a system configuration with DRAM",
        )
    return options


def _product(compile_target: str) -> tuple[str, ProductFacts]:
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
