"""What the double of the worker gives: a Program of one byte, made by nobody."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from harness.export.program import InputSet, Program, TensorSpec
from harness.export.request import ExportRequest

_SPEC = TensorSpec("x", "int8", (1,), (0,))


@dataclass(frozen=True)
class Made:
    request: ExportRequest
    versions: dict[str, str]
    whose: str

    def write(self, directory: Path) -> Program:
        content = self.whose.encode()
        (directory / "program.pte").write_bytes(content)
        for name in ("i0.bin", "e0.bin"):
            (directory / name).write_bytes(b"\1")
        return Program(
            directory=directory,
            model=self.request.model.name,
            compile_target=self.request.compile_target,
            pte="program.pte",
            pte_sha256=hashlib.sha256(content).hexdigest(),
            oracle="nobody",
            inputs=(_SPEC,),
            outputs=(_SPEC,),
            sets=(InputSet(("i0.bin",), ("e0.bin",)),),
            operators=(),
            versions=self.versions,
        )
