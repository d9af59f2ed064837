"""Programs that are made of one that is there, for what differs is no work of the exporter's.

ExecuTorch lowers for a kind of CMSIS-NN's kernels and not for a core (``backend`` is all that its
Cortex-M passes ask of a ``target_config``), so that two cores of one kind have the same program.
For an Ethos-U it makes TOSA graphs by a profile (``tosa_spec``), which Vela then compiles for a
MAC count and a memory mode: of such a program the streams alone are made anew. What is not seen to
be so is exported as a whole.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from executorch.backends.cortex_m.target_config import CortexM, CortexMTargetConfig
from executorch.exir._serialize import _deserialize_pte_binary, _serialize_pte_binary
from executorch.exir.schema import BackendDelegate
from executorch.exir.schema import Program as Plan

from harness.errors import HarnessError
from harness.ethosu.blob import find_blobs
from harness.export import lower
from harness.export.lower_ethosu import compile_spec
from harness.export.lowering import LOWERINGS
from harness.export.npu_options import NpuOptions, is_ethos_u
from harness.export.program import InputSet, Program
from harness.export.request import ExportRequest
from harness.export.vela import compile_graph
from harness.target.npu import products

# What is said above was read in this one; another may ask more of a core.
EXECUTORCH = "1.5.1"
_VELAS = ("compile_flags", "target")  # the compile specs that TOSA graphs do not depend on


@dataclass(frozen=True)
class Made:
    """A program in memory, whose other files are those of ``base``. ``streams``: those of its
    delegates, in their order."""

    request: ExportRequest
    base: Program
    pte: bytes
    streams: tuple[bytes, ...]

    def write(self, directory: Path) -> Program:
        base, npu = self.base, self.request.npu if self.streams else None
        for name in _files(base):
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(base.directory / name, directory / name)
        (directory / base.pte).write_bytes(self.pte)
        for delegate, stream in zip(base.delegates, self.streams, strict=True):
            (directory / delegate.blob).write_bytes(stream)
        found = find_blobs(self.pte)
        return replace(
            base,
            directory=directory,
            compile_target=self.request.compile_target,
            pte_sha256=hashlib.sha256(self.pte).hexdigest(),
            system_config=npu.system_config if npu else "",
            memory_mode=npu.memory_mode if npu else "",
            delegates=tuple(
                replace(delegate, position=found.index(stream))
                for delegate, stream in zip(base.delegates, self.streams, strict=True)
            ),
        )


def make(request: ExportRequest, load: Callable[[ExportRequest], Program | None]) -> Made | None:
    """Of the first program that ``load`` has; None when there is none that it can be made of."""
    for other in _kindred(request):
        base = load(other)
        made = None if base is None else _of(base, request)
        if made is not None:
            return made
    return None


def _of(base: Program, request: ExportRequest) -> Made | None:
    pte = base.pte_path.read_bytes()
    if not is_ethos_u(request.compile_target):
        return Made(request, base, pte, ())
    graphs = {
        (base.directory / one.blob).read_bytes(): (base.directory / one.tosa).read_bytes()
        for one in base.delegates
    }
    if len(graphs) < len(base.delegates):  # then it is not known which graph a stream is of
        return None
    try:
        streams = {blob: compile_graph(tosa, request.npu) for blob, tosa in graphs.items()}
    except HarnessError:
        return None  # the export says it with its stage
    changed = _with_streams(pte, streams, request.npu)
    return None if changed is None else Made(request, base, changed, tuple(streams.values()))


def _kindred(request: ExportRequest) -> Iterator[ExportRequest]:
    """The requests whose programs this one's can be made of."""
    of = request.compile_target
    if of in LOWERINGS:
        return
    if not is_ethos_u(of):
        backend = lower.target_config(of).backend
        others = (CortexMTargetConfig(cpu) for cpu in CortexM)
        names = [one.target_string for one in others if one.backend == backend]
        yield from (replace(request, compile_target=name) for name in names if name != of)
        return
    profile = compile_spec(request.npu).tosa_spec
    for product, facts in products().products.items():
        first = replace(request, compile_target=f"ethos-{product}-{facts.default_macs}")
        first = replace(first, system_config="", memory_mode="")
        if str(compile_spec(first.npu).tosa_spec) != str(profile):
            continue
        for macs in (facts.default_macs, *facts.macs):
            for mode in ("", *products().modes_of(facts)):
                other = replace(first, compile_target=f"ethos-{product}-{macs}", memory_mode=mode)
                if other.npu != request.npu:
                    yield other


def _with_streams(pte: bytes, streams: Mapping[bytes, bytes], npu: NpuOptions) -> bytes | None:
    """The program with the streams that are named by those it has; None when it is not one that
    differs in them alone."""
    file = _deserialize_pte_binary(pte)
    program: Plan = file.program
    wanted = {spec.key: spec.value for spec in compile_spec(npu)._to_list()}
    for plan in program.execution_plan:
        if not all(_told(delegate, wanted) for delegate in plan.delegates):
            return None
    for data in program.backend_delegate_data:
        stream = streams.get(bytes(data.data))
        if stream is None:
            return None
        data.data = stream
    # a written program is the same when it is read and written: what was not read would be lost
    if bytes(_serialize_pte_binary(_deserialize_pte_binary(pte))) != pte:
        return None
    return bytes(_serialize_pte_binary(file))


def _told(delegate: BackendDelegate, wanted: Mapping[str, bytes]) -> bool:
    """Puts in what Vela is told; False for a delegate that was told something else besides."""
    for spec in delegate.compile_specs:
        if spec.key in _VELAS:
            spec.value = wanted[spec.key]
        elif spec.key in wanted and bytes(spec.value) != wanted[spec.key]:
            return False
    return True


def _files(program: Program) -> Iterator[str]:
    """What its description names, besides the program and its streams."""

    def of_sets(sets: tuple[InputSet, ...]) -> Iterator[str]:
        for one in sets:
            yield from (*one.inputs, *one.expected, *one.by_design)

    yield from of_sets(program.sets)
    for delegate in program.delegates:
        yield delegate.tosa
        yield from of_sets(delegate.sets)
