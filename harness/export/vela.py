"""Compiles a TOSA graph with the installed Vela, as ExecuTorch does."""

from __future__ import annotations

from importlib import metadata

from executorch.backends.arm.arm_vela import vela_compile

from harness.errors import ExportError
from harness.export.lower_ethosu import compile_spec
from harness.export.npu_options import NpuOptions


def compile_graph(tosa: bytes, options: NpuOptions) -> bytes:
    """The stream of ExecuTorch's delegate. Raises ExportError when Vela refuses the graph."""
    flags = list(compile_spec(options).compiler_flags)
    try:
        blob: bytes = vela_compile(tosa, flags).processed_bytes
    except (Exception, SystemExit) as error:  # foreign code: any exception is possible
        raise ExportError(f"Vela does not compile the graph: {error}") from error
    return blob


def version() -> str:
    return metadata.version("ethos-u-vela")
