"""A Program as ExecuTorch's BundledProgram (``.bpte``)."""

from __future__ import annotations

import tempfile
from pathlib import Path

from harness.export import cache
from harness.export.process import ExportProcess
from harness.export.program import Program


def bundle(program: Program) -> Path:
    """The Program as a ``.bpte``: with its input sets and expected outputs inside.

    Made on first use, in the cached Program's own directory.
    """
    name = "program.bpte"
    with cache.locked(program.directory.name):
        if not cache.has(program.directory, name):
            with tempfile.TemporaryDirectory() as folder, ExportProcess() as process:
                file = Path(folder) / name
                process.call(
                    "bundled:serialise", program, str(file), task=f"bundling {program.model}"
                )
                cache.add(program.directory, name, file.read_bytes())
    return program.directory / name
