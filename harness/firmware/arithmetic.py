"""Whose arithmetic operators follow where ExecuTorch's C++ and its Python definitions differ.

What ships is the C++, with CMSIS-NN below it; the Python definitions are what the exporter's own
tests hold a lowered program against. Where the two differ is in ``export/by_design``.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.core.verdict import Word


class Arithmetic(Word):
    CMSIS_NN = "cmsis-nn"
    PYTHON = "python"


OPTION = "HIL_ARITHMETIC"  # of the runner's CMake


def build_options(wanted: Arithmetic | None) -> dict[str, str]:
    """What builds our runner so; nothing when the target is to decide."""
    return {} if wanted is None else {OPTION: str(wanted)}


def built_with(options: Mapping[str, str]) -> Arithmetic:
    """Of a runner that these CMake options made."""
    return Arithmetic(options.get(OPTION, Arithmetic.CMSIS_NN))
