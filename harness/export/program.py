"""A Program: one exported model with inputs and expected outputs, on disk and as data.

Nothing here imports torch; a cached Program loads in milliseconds. Layout of a Program's
directory (``.hil/cache/programs/<key>``)::

    program.pte            the program
    set<k>/i<n>.bin        raw input n of set k, in *method* layout (NHWC where dim_order says so)
    set<k>/expected<n>.bin raw output n the oracle computed for set k, in method layout
    set<k>/by_design<n>.bin the same by the other arithmetic, where that is known to differ
                           (``Program.by_design``)
    delegate<d>/vela.bin   what an NPU executes, graph.tosa what it was compiled from, and
    delegate<d>/set<k>/    its raw inputs and the oracle's outputs for set k of the program
    values.json            what the exported graph computes (``graph_values``)
    program.json           this description; written last, so its presence means "complete"
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.config.schema import Data, checked
from harness.core.verdict import Word
from harness.export.estimates import Estimate, NpuCost
from harness.export.exporter import ExporterFacts
from harness.export.request import ETHOS_U_EXPORTERS, LOWERINGS, NpuOptions
from harness.firmware.source import Arithmetic
from harness.formats.pte import SCALAR_TYPES
from harness.system.files import read_json, sha256_of, write_whole

if TYPE_CHECKING:  # numpy takes longer to import than a warm run may take
    import numpy.typing as npt

_NOT_REPRODUCIBLE = "another machine may export a program of other bytes: it was {}"
# The types of tensors that a runner can be given, by ExecuTorch's names, and the bytes of each.
_RUNNABLE = ("BYTE", "CHAR", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "BOOL")
DTYPES = {kind: SCALAR_TYPES[kind][1] for kind in _RUNNABLE}
DTYPE_BYTES = {dtype: size for size, dtype in map(SCALAR_TYPES.__getitem__, _RUNNABLE)}


@dataclass(frozen=True)
class TensorSpec:
    """One method input or output.

    ``shape`` is logical (NCHW for an image); ``dim_order`` lists dimensions from outermost to
    innermost in memory. ``scale`` and ``zero_point`` are those of the quantiser next to the
    boundary (the model's first quantise, last dequantise), None when there is none; an output's
    ``scale`` is the size of one LSB when it is judged, and not a quantiser's where a program for a
    CPU has none (``lower.output_steps``).
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    dim_order: tuple[int, ...]
    scale: float | None = None
    zero_point: int | None = None

    @property
    def nbytes(self) -> int:
        return self.numel * DTYPE_BYTES[self.dtype]

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    def check_size(self, raw: bytes) -> None:
        """Raise ValueError when ``raw`` is not exactly one such tensor."""
        if len(raw) != self.nbytes:
            raise ValueError(f"{self.name}: expected {self.nbytes} bytes, got {len(raw)}")

    def decode(self, raw: bytes) -> npt.NDArray[Any]:
        """Put raw bytes in memory order into an array in logical order. Raises ValueError."""
        import numpy as np

        self.check_size(raw)
        physical = np.frombuffer(raw, np.dtype(self.dtype)).reshape(
            [self.shape[d] for d in self.dim_order]
        )
        return physical.transpose(np.argsort(self.dim_order)) if self.shape else physical


@dataclass(frozen=True)
class InputSet:
    """File names relative to the Program's directory."""

    inputs: tuple[str, ...]
    expected: tuple[str, ...]
    by_design: tuple[str, ...] = ()  # as ``expected``, by the other arithmetic


@dataclass(frozen=True)
class RawSet:
    """One input set and what the oracle made of it, as bytes in method layout."""

    inputs: tuple[bytes, ...]
    expected: tuple[bytes, ...]
    by_design: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class WorstDifference:
    """The element of one output that two oracles agree on least, and in which input set."""

    lsb: float
    set: int
    element: tuple[int, ...]


@dataclass(frozen=True)
class OracleAgreement:
    """How far another oracle is from the expected outputs, over all input sets."""

    name: str
    worst: tuple[WorstDifference, ...]  # one per output


@dataclass(frozen=True)
class OutputAccuracy:
    """An output of the program against the float model's, over ``samples``.

    SQNR in dB (200 for equal ones), the share of samples whose largest element is the same (None:
    not a row of classes), and the share of elements that its type cannot hold (None: not
    quantised)."""

    output: str
    samples: int
    sqnr_db: float
    top1: float | None
    clipped: float | None


class LeftBy(Word):
    """The step that left an operator to a kernel on the CPU, as the exporter's graphs show it."""

    MODEL = "model"
    QUANTISER = "quantiser"
    PARTITIONER = "partitioner"
    PASSES = "passes"


_LEFT_BY = {
    LeftBy.MODEL: "the model computes it so",
    LeftBy.QUANTISER: "ExecuTorch's quantiser leaves it in floats",
    LeftBy.PARTITIONER: "ExecuTorch's partitioner does not give it to the NPU",
    LeftBy.PASSES: "it is quantised, and ExecuTorch's passes make no integer operator of it",
}


@dataclass(frozen=True)
class OperatorOrigin:
    """Where an operator of the program comes from.

    It has the path and class of its layer, the user's line, and the type that it computes.
    ``made_of``: the operator that it is a decomposition of, "" for itself; ``rule``: the
    partitioner's reason."""

    layer: str
    file: str | None
    line: int | None
    dtype: str
    left_by: LeftBy
    made_of: str = ""
    rule: str = ""

    def __str__(self) -> str:
        place = f", {self.file}:{self.line}" if self.file else ""
        dtype = f", on {self.dtype}" if self.dtype else ""
        made = f"ExecuTorch makes it of {self.made_of}, and " if self.made_of else ""
        rule = f" ({self.rule})" if self.rule else ""
        return f"{self.layer}{place}{dtype}: {made}{_LEFT_BY[self.left_by]}{rule}"


@dataclass(frozen=True)
class Witnessed:
    """A comparison of the quantised model with the program.

    It computes ``values``; ``paired`` of them were found in the program, and differ by ``worst``
    steps at most. Outputs are compared in any case."""

    values: int
    paired: int
    worst: int


@dataclass(frozen=True)
class CpuOperator:
    """An operator of the model that the NPU does not run.

    ``operator``: as PyTorch calls it; ``layer``: the path of its module, "" for the model's own
    forward; ``file`` and ``line`` call it. ``why``: the partitioner's reason, "" if it gave none.
    ``instructions`` of the program run it, ``conversions`` quantise and dequantise for it."""

    operator: str
    layer: str
    file: str | None
    line: int | None
    why: str = ""
    instructions: tuple[int, ...] = ()
    conversions: tuple[int, ...] = ()

    def __str__(self) -> str:
        """ "avg_pool2d (layer pool, ds_cnn.py:74)"."""
        places = [f"layer {self.layer}"] if self.layer else []
        places += [f"{self.file}:{self.line}"] if self.file else []
        return f"{self.operator} ({', '.join(places)})" if places else self.operator

    @property
    def reason(self) -> str:
        return f"{self}: {self.why or 'ExecuTorch gives no reason'}"


@dataclass(frozen=True)
class Delegation:
    """Operators on the NPU and, in order, on the CPU, without quantising and dequantising."""

    npu: int
    cpu: tuple[CpuOperator, ...]

    @property
    def total(self) -> int:
        return self.npu + len(self.cpu)


@dataclass(frozen=True)
class Delegate:
    """A part of the program that an NPU executes; file names as in ``InputSet``.

    Delegates are in the order of execution, which is not that of the file. The tensors are as
    the NPU's driver passes them: without gaps, outermost dimension first. Their names are those
    of the TOSA graph.
    """

    position: int  # among the Vela streams of the .pte, in the order of the file
    blob: str
    tosa: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    sets: tuple[InputSet, ...]  # one per input set of the program
    estimate: Estimate | None = None  # None: Vela gave none that can be read


@dataclass(frozen=True)
class Program(Data):
    directory: Path
    model: str
    compile_target: str  # the exporter's name: "cortex-m55", "ethos-u55-128"
    pte: str  # file name in the directory
    pte_sha256: str
    oracle: str  # who computed the expected outputs; see ``oracle_name``
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    sets: tuple[InputSet, ...]
    operators: tuple[str, ...]  # "namespace::name.overload"
    versions: dict[str, str]
    system_config: str = ""  # of an Ethos-U, as passed to Vela
    memory_mode: str = ""
    direct_drive: bool = False
    origins: dict[str, OperatorOrigin] = field(default_factory=dict)  # by operator without overload
    layers: tuple[str, ...] = ()  # of the model, by instruction; "" where none is known
    oracles: tuple[OracleAgreement, ...] = ()
    witness: Witnessed | None = None  # None: the program is not quantised
    accuracy: tuple[OutputAccuracy, ...] = ()
    delegates: tuple[Delegate, ...] = ()
    delegation: Delegation | None = None  # None: for no NPU
    by_design: tuple[str, ...] = ()  # named differences that this program and its inputs meet
    exporter: ExporterFacts | None = None  # a checkout; None: the installed wheel
    arithmetic: Arithmetic = Arithmetic.CMSIS_NN  # of the expected outputs
    not_reproducible: str = ""  # why another machine may export other bytes, "" if none does
    values: str = ""  # the file of the exported graph's (``graph_values``), "" if it was not run
    remarks: tuple[str, ...] = ()  # on the model, for every report
    notes: tuple[str, ...] = ()  # on how it came here this time; not kept

    @property
    def oracle_name(self) -> str:
        """The oracle, and whose arithmetic the CPU's operators follow where that is a choice."""
        if self.compile_target in LOWERINGS:
            return self.oracle
        whose = "CMSIS-NN" if self.arithmetic is Arithmetic.CMSIS_NN else "Python"
        return f"{self.oracle}, CPU operators as {whose} defines them"

    @property
    def npu(self) -> NpuOptions:
        """The options of a program for an Ethos-U."""
        return NpuOptions(
            self.compile_target, self.system_config, self.memory_mode, self.direct_drive
        )

    @property
    def npu_cost(self) -> NpuCost | None:
        """None without an NPU, and where a delegate has no estimate."""
        estimates = [d.estimate for d in self.delegates if d.estimate is not None]
        if not estimates or len(estimates) < len(self.delegates):
            return None
        versions = {n: v for n, v in self.versions.items() if n in ETHOS_U_EXPORTERS}
        return NpuCost(versions, tuple(estimates))

    @property
    def pte_path(self) -> Path:
        return self.directory / self.pte

    def following(self, arithmetic: Arithmetic) -> Program:
        """Return a copy that expects the outputs that this arithmetic gives."""
        if arithmetic is self.arithmetic:
            return self
        swapped = tuple(
            replace(one, expected=one.by_design, by_design=one.expected) if one.by_design else one
            for one in self.sets
        )
        return replace(self, sets=swapped, arithmetic=arithmetic)

    def without_named_differences(self) -> Program:
        """For a runner that is known to follow the arithmetic of the expected outputs."""
        plain = tuple(replace(one, by_design=()) for one in self.sets)
        return replace(self, sets=plain, by_design=())

    @property
    def expected_files(self) -> list[str]:
        """The files that outputs are compared with."""
        return [name for s in self.sets for name in (*s.expected, *s.by_design)]

    def input_digests(self) -> tuple[tuple[str, ...], ...]:
        """Return the sha256 of every input of every set. Raises OSError."""
        return tuple(
            tuple(sha256_of(self.directory / name) for name in one.inputs) for one in self.sets
        )

    def file_names(self) -> set[str]:
        """Every file that the description names."""
        sets = [*self.sets, *(s for d in self.delegates for s in d.sets)]
        return {
            self.pte,
            *filter(None, [self.values]),
            *(n for d in self.delegates for n in (d.blob, d.tosa)),
            *(n for s in sets for n in (*s.inputs, *s.expected, *s.by_design)),
        }

    def save(self) -> None:
        """Write ``program.json`` atomically; everything it names must already be there."""
        fields = asdict(self)
        del fields["directory"], fields["notes"]
        text = json.dumps(fields, indent=1, sort_keys=True) + "\n"
        write_whole(self.directory / "program.json", text)


def load_program(directory: Path) -> Program | None:
    """Return the Program in a directory, if complete. Raises OSError, or one of MALFORMED."""
    try:
        fields = read_json(directory / "program.json", finite=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    why = fields["not_reproducible"]
    notes = (*([_NOT_REPRODUCIBLE.format(why)] if why else []), *fields.get("remarks", ()))
    return checked(Program, {**fields, "directory": directory, "notes": notes})
