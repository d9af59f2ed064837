"""Why a model cannot be exported. No torch here: the errors cross from the export process."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from harness.config.known import find_known, known_lowerings
from harness.config.models import Layout
from harness.core.errors import BadModel, ExportError, InfraError
from harness.core.verdict import ExitCode, Verdict
from harness.export.program import CpuOperator, RawSet
from harness.export.request import ExportRequest
from harness.system.paths import import_root

if TYPE_CHECKING:
    from harness.export.checkout import CheckoutExporter

_MOST_REASONS = 8
_OTHER_WAY = (
    "your model is not the cause; write this operator in another way, or export with a checkout of "
    "ExecuTorch that has a fix (--executorch DIR --exporter checkout)"
)
_OTHER_TIME = (
    "the revision is older or newer than what the harness can export with (ExecuTorch since pull "
    "request 21826, August 2026): export with --exporter wheel"
)
_PASS = re.compile(r"An error occurred when running the '(\w+)' pass after")
_PASSES = re.compile(r"(?<=the following passes: \[)[^\]]*")


def _once(passes: re.Match[str]) -> str:
    return ", ".join(dict.fromkeys(passes[0].split(", ")))


class ImportFailed(InfraError):
    """torch or ExecuTorch cannot be imported.

    ``cause``: the exception's name, ``detail`` its text, ``place``: the innermost file and line.
    ``missing``: the name that the harness wanted of ExecuTorch and that is not there, else ""."""

    def __init__(self, error: BaseException) -> None:
        self.cause = type(error).__name__
        self.detail = str(error)
        frames = traceback.extract_tb(error.__traceback__)
        self.place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        own = bool(frames) and Path(frames[-1].filename).is_relative_to(import_root() / "harness")
        name = error.name or "" if isinstance(error, ImportError) else ""
        self.missing = name if own and name.split(".")[0] == "executorch" else ""
        if isinstance(error, SyntaxError) and error.filename:
            self.place = f"{error.filename}:{error.lineno}"
        super().__init__(
            "torch or ExecuTorch is installed but cannot be imported: "
            f"{self.cause}: {self.detail} ({self.place})",
            hint="reinstall them: delete .venv and run ./hil",
        )


class ExporterUnusable(InfraError):
    """The checkout's ``executorch`` cannot be imported with what is installed here.

    ``cause``, ``detail``, ``place`` and ``missing``: as in ImportFailed; ``log``: what was printed.
    """

    kind = "exporter_unusable"

    def __init__(self, exporter: CheckoutExporter, failed: ImportFailed, log: str) -> None:
        self.cause, self.detail, self.place = failed.cause, failed.detail, failed.place
        self.missing = failed.missing
        self.torch, self.pinned = metadata.version("torch"), exporter.pinned
        self.compiled = exporter.facts.compiled
        self.log = log
        pin = f", pinned to torch {self.pinned}" if self.pinned else ""
        super().__init__(
            f"the exporter of the checkout (version {exporter.facts.version}{pin}) cannot be "
            f"imported with torch {self.torch} and the compiled parts of the wheel "
            f"{self.compiled}: {failed.cause}: {failed.detail} ({failed.place})",
            hint=_OTHER_TIME
            if failed.missing
            else "if it is not an edit of yours: install the torch and the wheel of that time, or "
            "export with --exporter wheel",
            path=exporter.root,
        )


class InputChanged(InfraError):
    """A file that the model is made of was written while it was exported."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} changed while the model was exported", hint="run it again", path=path
        )


class VelaFailed(Exception):
    """Raised from an exception of Vela's.

    ``newest``: the version of a newer Vela that compiles the same graph, "" for none; ``tried``:
    what came of that, for a report."""

    def __init__(self, tried: str, newest: str = "") -> None:
        super().__init__()
        self.tried, self.newest = tried, newest


class StageFailed(ExportError):
    """A stage of an export failed.

    ``cause``: the name of the exception that torch, ExecuTorch or the user's file raised, the first
    of a chain. ``detail``: the text of the whole chain. ``passes``: ExecuTorch's passes that were
    running. ``file`` and ``line``: the place in the user's file. ``operator``: the one that
    ExecuTorch worked on, and its ``layer``. ``newer_vela``: one that compiles the graph, where this
    Vela does not. ``known``: a name of ``known_lowerings``. ``constant``: outputs, by number, that
    are the same for every input."""

    constant: tuple[int, ...] | None = None

    def __init__(
        self,
        request: ExportRequest,
        stage: str,
        error: BaseException,
        culprit: CpuOperator | None = None,
    ) -> None:
        self.model = request.model.name
        self.compile_target = request.compile_target
        self.stage = stage
        chain = [error]
        while (before := chain[-1].__cause__) is not None:
            chain.append(before)
        # ExecuTorch's managers of passes say which pass failed, and only the exception before why.
        texts = [(each, str(each).strip()) for each in chain]
        reasons = [(each, text) for each, text in texts if text and not _PASS.match(text)]
        first, reason = reasons[0] if reasons else (error, "no message")
        self.cause = type(first).__name__
        self.detail = "\n".join(_PASSES.sub(_once, text) for _, text in texts if text)
        self.passes = tuple(found[1] for _, text in texts if (found := _PASS.match(text)))
        self.file, self.line = _user_frame(request, error)
        self.operator = self.layer = None
        if culprit is not None:
            self.operator, self.layer = culprit.operator, culprit.layer or None
            self.file, self.line = self.file or culprit.file, self.line or culprit.line
        where = f" at {self.file}:{self.line}" if self.file else ""
        operators = [self.operator] if self.operator else []
        name = find_known(operators, self.compile_target, self.detail or reason)
        known = known_lowerings()[name] if name else None
        self.known = name or None
        vela = next((each for each in chain if isinstance(each, VelaFailed)), VelaFailed(""))
        self.newer_vela = vela.newest or None
        helps = (
            f"what helps (it was tried): ./hil +vela-{vela.newest} run …" if vela.newest else None
        )
        super().__init__(
            f"model '{self.model}' failed to {stage}{where}: {self.cause}: {reason.splitlines()[0]}"
            f"{self._place()}{f'; {known.sentence}' if known else ''}"
            f"{f'; {vela.tried}' if vela.tried else ''}",
            hint=helps or (known.hint(request.layout) if known else None),
        )

    def _place(self) -> str:
        parts = [f"operator {self.operator}"] if self.operator else []
        parts += [f"layer {self.layer}"] if self.layer else []
        parts += [f"ExecuTorch's pass {self.passes[-1]}"] if self.passes else []
        return f" ({', '.join(parts)})" if parts else ""

    def suspect(self, constant: tuple[int, ...]) -> None:
        """Such outputs may well be why, and the exception seldom says so."""
        if constant and self.hint is None:
            which = " and ".join(f"output {number}" for number in constant)
            self.constant = constant
            self.hint = (
                f"{which} of '{self.model}' is the same for every input, which ExecuTorch may not "
                "expect: leave it out, or let it depend on an input"
            )


class FileRaised(StageFailed, BadModel):
    """A user's file or model raised an exception in PyTorch, before anything was exported."""

    kind = BadModel.kind
    verdict = Verdict.NO_VERDICT
    exit_code = ExitCode.USAGE

    def __init__(self, request: ExportRequest, stage: str, error: BaseException) -> None:
        super().__init__(request, stage, error)
        self.hint = "the file, and then `ModelUnderTest(*ModelInputs)`, has to run by itself"
        if isinstance(error, FileNotFoundError) and request.model.file is not None:
            self.hint = _where_looked(error, request.model.file.parent)


def _where_looked(error: FileNotFoundError, folder: Path) -> str:
    """For a file of a user's that another one, in ``folder``, did not find."""
    here, name = f"the current directory of the export is {os.getcwd()}", error.filename
    if not isinstance(name, str):  # a library in another language raised it
        return f"{here}; start paths at the folder of the model's file, {folder}"
    if os.path.isabs(name):
        return f"{here}; with --isolate-export a model reads only {folder}"
    beside = folder / name
    found = "the folder of the model's file has it" if beside.exists() else f"nor is it {beside}"
    way = f"start paths at the file, as Path(__file__).parent / {name!r}"
    return f"{here}, and there is no {name} in it; {found}: {way}"


class NothingDelegated(ExportError):
    """A run of such a program would pass without an NPU. ``refused``: a line for each operator."""

    def __init__(
        self, model: str, compile_target: str, operators: Sequence[CpuOperator] = ()
    ) -> None:
        self.model = model
        self.compile_target = compile_target
        self.refused = tuple(dict.fromkeys(each.reason for each in operators))
        reasons = f": {'; '.join(self.refused[:_MOST_REASONS])}" if self.refused else ""
        super().__init__(
            f"nothing of model '{model}' is left to the {compile_target}: ExecuTorch keeps all of "
            f"its operators for its own kernels{reasons}"
        )


class LoweringDiffers(ExportError):
    """The lowered program computes an operator otherwise than the quantised model in PyTorch.

    ``operators``: the one, or those of which one does, first to last; those that are computed
    together are one ("conv2d and relu"). ``layer``: the path of its module, ``file`` and ``line``:
    where the model calls it. ``lsb``: the worst difference, in steps of the output's scale,
    ``within`` what rounding explains. ``made_by``: the first stage whose result differs. ``tried``:
    the setting that helps, because it was tried, or "". ``known``: a name of ``known_lowerings``.
    """

    kind = "lowering_differs"

    def __init__(
        self,
        request: ExportRequest,
        operators: Sequence[str],
        layer: str,
        place: tuple[str | None, int | None],
        worst: tuple[float, float, tuple[int, ...], int],
        made_by: str,
        tried: str,
    ) -> None:
        self.model, self.compile_target = request.model.name, request.compile_target
        self.operators, self.layer = tuple(operators), layer
        self.file, self.line = place
        self.lsb, self.within, self.element, self.set = worst
        self.made_by, self.tried = made_by, tried
        single = [word for title in operators for word in title.split(" and ")]
        self.known = find_known(single, self.compile_target)
        name = operators[0]
        if len(operators) > 1:
            name += f", or an operator from there to {operators[-1]},"
        super().__init__(
            f"the program computes {CpuOperator(name, layer, *place)} otherwise than the quantised "
            "model: "
            f"{self.lsb:g} LSB at element {list(self.element)} for input set {self.set}, and "
            f"rounding explains {self.within:g}; the first stage that differs is {made_by}"
            + (f"; {known_lowerings()[self.known].sentence}" if self.known else ""),
            hint=self._hint(request.layout),
        )

    def _hint(self, layout: Layout) -> str:
        if self.tried:
            return f"{self.tried} in the model's YAML file helps: with it every operator agrees"
        if self.known and (hint := known_lowerings()[self.known].hint(layout)):
            return hint
        return _OTHER_WAY


class CaptureDiffers(ExportError):
    """The captured model gives other outputs than the model in its file.

    ``share``: how far off an output is, of its largest element. ``repeats``: the model gave the
    same outputs when it was called again, so that torch.export is at fault, or a branch for it."""

    kind = "capture_differs"

    def __init__(
        self, request: ExportRequest, share: float, input_set: int, *, repeats: bool
    ) -> None:
        self.model, self.compile_target = request.model.name, request.compile_target
        self.share, self.set, self.repeats = share, input_set, repeats
        what, hint = (
            "the graph that torch.export makes of it gives other outputs than the model",
            "look for what `forward` does only while it is exported, such as a branch on "
            "torch.compiler.is_exporting()",
        )
        if not repeats:
            what, hint = (
                "it gives other outputs when it is called again with the same inputs",
                "take random numbers, and Python values that `forward` changes, out of `forward`",
            )
        super().__init__(
            f"model '{request.model.name}': {what}: off by {share:.2%} of the largest element for "
            f"input set {input_set}",
            hint=hint,
        )


class PreparationDiffers(ExportError):
    """The graph that is quantised computes something else than the captured model.

    ``operator``: the first that differs. ``share``: how far off an output is, of its largest
    element. ``made_by``: the first stage whose graph differs. ``known``: a name of
    ``known_lowerings``."""

    kind = "preparation_differs"

    def __init__(
        self, request: ExportRequest, first: CpuOperator, share: float, input_set: int, made_by: str
    ) -> None:
        self.model, self.compile_target = request.model.name, request.compile_target
        self.operator, self.layer, self.file = first.operator, first.layer, first.file
        self.line, self.share, self.set, self.made_by = first.line, share, input_set, made_by
        self.known = find_known([first.operator], self.compile_target, made_by)
        known = known_lowerings()[self.known] if self.known else None
        super().__init__(
            f"before anything is quantised, {made_by} changes what {first} computes: an output is "
            f"off by {share:.2%} of its largest element for input set {input_set}"
            + (f"; {known.sentence}" if known else ""),
            hint=(known and known.hint(request.layout)) or _OTHER_WAY,
        )


class EmissionDiffers(ExportError):
    """An instruction of the program is not what the exported graph has.

    ``part``: "operator", or the argument's name; ``meant``: what the graph has; ``found``: what the
    program has."""

    kind = "emission_differs"

    def __init__(self, instruction: int, operator: str, part: str, meant: str, found: str) -> None:
        self.instruction, self.operator, self.part = instruction, operator, part
        self.meant, self.found = meant, found
        super().__init__(
            f"instruction {instruction} ({operator}) of the program is not what the exported graph "
            f"has: its {part} is {self.found}, and the graph has {self.meant}",
            hint="your model is not the cause; check the changes in ExecuTorch's exir/emit, or "
            "export with the wheel (--exporter wheel)",
        )


class UnsupportedTensor(ExportError):
    """An input or output of the method that no runner can be given."""

    def __init__(self, tensor: str, kind: str) -> None:
        self.tensor = tensor
        self.type = kind
        super().__init__(
            f"the method's '{tensor}' is a {kind}; the runner passes plain tensors only"
        )


class DeadModelError(ExportError):
    """The model's outputs do not depend on its inputs, so a PASS would prove nothing."""

    kind = "dead_model"

    def __init__(self, model: str, sets: Sequence[RawSet]) -> None:
        first_outputs = sets[0].expected if sets else ()
        self.model = model
        self.different_inputs = len({s.inputs for s in sets})
        self.different_outputs = len({s.expected for s in sets})
        self.first_output_bytes = first_outputs[0][:16].hex() if first_outputs else ""
        text = (
            f"is dead: {self.different_inputs} different inputs give the same outputs (first bytes "
            f"{self.first_output_bytes})"
        )
        hint = "check its weights, and that the calibration inputs span what the model sees"
        if self.different_inputs < 2:
            text = "cannot be given two different inputs"
            hint = (
                "a case needs at least two, or it cannot show that an output depends on its input"
            )
        super().__init__(f"model '{model}' {text}", hint=hint)

    def blame_quantisation(self, sqnr_db: Sequence[float]) -> None:
        """Call if the float model is alive, with the accuracy of each of its outputs."""
        self.sqnr_db = tuple(sqnr_db)
        self.hint = (
            "the float model's outputs differ, so the quantisation loses what they depend on "
            f"(SQNR {min(sqnr_db, default=0):g} dB): bring the features of its inputs into one "
            "range, or give calibration inputs that span what the model sees"
        )


class DeadOutputError(DeadModelError):
    """Some outputs, by number, are the same for every input: nothing would show a wrong one."""

    kind = "dead_output"

    def __init__(self, model: str, outputs: Sequence[int], sets: Sequence[RawSet]) -> None:
        self.model, self.outputs = model, tuple(outputs)
        self.different_inputs = len({s.inputs for s in sets})
        which = " and ".join(f"output {number}" for number in outputs)
        empty = all(s.expected[number] == b"" for s in sets for number in outputs)
        ExportError.__init__(
            self,
            f"{which} of model '{model}' {'has no element' if empty else 'is the same'} for "
            f"{self.different_inputs} different inputs, so a wrong one would not show",
            hint="check its weights and its inputs; if it is meant to be constant, write "
            f"ConstantOutputs = {list(outputs)} into the model's file",
        )


def _user_frame(request: ExportRequest, error: BaseException) -> tuple[str | None, int | None]:
    """Return the innermost line of the user's own file in an error's traceback."""
    source = request.model.file
    cause: BaseException | None = error
    while source is not None and cause is not None:
        for frame in reversed(traceback.extract_tb(cause.__traceback__)):
            if Path(frame.filename).is_relative_to(source.parent):
                return Path(frame.filename).name, frame.lineno
        cause = cause.__cause__ or cause.__context__
    return None, None
