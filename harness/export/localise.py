"""Lets the export process find the wrong operator of a delegate, and reduce its graph.

Is it still wrong with the newest Vela of the package index? That is in an environment of its own,
which has Vela alone. ExecuTorch's ``arm_vela.py`` packs the stream there, as it does for a program;
it needs numpy and Vela (1.5.1).
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from harness.config.schema import Data, checked
from harness.core.errors import ExportError, InfraError
from harness.export.process import ExportProcess
from harness.export.program import Program
from harness.system.call import CallFailed, call
from harness.system.paths import executorch_package, state_dir

MOST_TRIES = 300  # compilations by Vela in one reduction, unless the user sets it
_Found = TypeVar("_Found", bound=Data)
_FRESH_S = 7 * 86400  # before the index is asked again
_TIMEOUT_S = 600.0
_VERSION = "import importlib.metadata as m; print(m.version('ethos-u-vela'))"
_COMPILE = """
import importlib.util, pathlib, sys
file, graph, result, *flags = sys.argv[1:]
spec = importlib.util.spec_from_file_location("arm_vela", file)
sys.modules["arm_vela"] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
found = module.vela_compile(pathlib.Path(graph).read_bytes(), flags)
pathlib.Path(result).write_bytes(found.processed_bytes)
"""


@dataclass(frozen=True)
class WrongValue(Data):
    """The first tensor with a wrong element. ``operator``: TOSA's name of what computed it."""

    operator: str
    tensor: str
    element: tuple[int, ...]
    expected: int
    actual: int


@dataclass(frozen=True)
class SmallestPart(Data):
    """The smallest part of a graph that is still wrong.

    ``operators``: those left of ``whole``, in order. ``listing``: a line for each, with the
    tensors. ``tries``: number of compiled graphs. ``defect``: the name of a known one, or "".
    ``files``: the written files. ``newest``: what the newest Vela makes of it, "" if not tried."""

    operators: tuple[str, ...]
    whole: int
    tries: int
    trouble: str
    defect: str = ""
    listing: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    newest: str = ""


def first_wrong_value(
    process: ExportProcess, program: Program, delegate: int, input_set: int
) -> WrongValue | None:
    """Return None when no choice of outputs shows the fault again. Raises HarnessError."""
    return _search(process, WrongValue, "first_wrong_value", program, delegate, input_set)


def smallest_part(
    process: ExportProcess,
    program: Program,
    delegate: int,
    input_set: int,
    *,
    tries: int,
    base: Path | None = None,
    newest: NewestVela | None = None,
) -> SmallestPart | None:
    """Write ``base``.tosa, its inputs and Vela's stream of it.

    Returns None when the recompiled graph is right for these inputs. Raises HarnessError."""
    given = program, delegate, input_set, tries, base, newest
    return _search(process, SmallestPart, "smallest_part", *given)


def _search(
    process: ExportProcess,
    kind: type[_Found],
    function: str,
    program: Program,
    delegate: int,
    *arguments: object,
) -> _Found | None:
    task = f"the search in delegate {delegate} of {program.model}"
    answer = process.call(f"localise:{function}", program, delegate, *arguments, task=task)
    return None if answer is None else checked(kind, answer)


@dataclass(frozen=True)
class NewestVela:
    version: str
    python: Path

    def compile(self, tosa: bytes, flags: Sequence[str]) -> bytes:
        """To a blob. Raises ExportError when it refuses the graph."""
        packer = executorch_package() / "backends" / "arm" / "arm_vela.py"
        with tempfile.TemporaryDirectory() as folder:
            graph, result = Path(folder) / "graph.tosa", Path(folder) / "result"
            graph.write_bytes(tosa)
            try:
                call([self.python, "-c", _COMPILE, packer, graph, result, *flags], _TIMEOUT_S)
            except CallFailed as error:
                raise ExportError(f"Vela {self.version} refuses the graph: {error}") from error
            return result.read_bytes()


def newest_vela() -> NewestVela:
    """Installs it, once a week. Raises InfraError, as without an index."""
    folder = state_dir() / "vela-newest"
    python, stamp = folder / "bin" / "python", folder / "asked"
    try:
        if not stamp.is_file() or time.time() - stamp.stat().st_mtime > _FRESH_S:
            call([sys.executable, "-m", "venv", folder], _TIMEOUT_S)
            quick = ("--upgrade", "--retries=1", "--timeout=15")
            call([python, "-m", "pip", "install", *quick, "ethos-u-vela"], _TIMEOUT_S)
            stamp.touch()
        return NewestVela(call([python, "-c", _VERSION], _TIMEOUT_S).strip(), python)
    except (CallFailed, OSError) as error:
        raise InfraError(f"no newest Vela: {error}", hint="it comes from pip's index") from error
