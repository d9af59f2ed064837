"""The models one can ask for by name, and user files that define one. Imports no torch.

The names are those of the ExecuTorch wheel: ``executorch.examples.models.MODEL_NAME_TO_MODEL``
and ``MODELS`` of ``executorch.backends.arm.scripts.aot_arm_compiler`` (version 1.5.1). Each was
exported for cortex-m55; ``tests/export/test_catalogue.py`` repeats that and notices new names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.config.case import is_user_file
from harness.core.errors import BadModel, Unknown, UsageError
from harness.core.verdict import Word
from harness.system.paths import data_root

# What a user's file has to define, as for ExecuTorch's aot_arm_compiler; and words in a file that
# may define a name without saying it.
CONVENTION = ("ModelUnderTest", "ModelInputs")
_UNSAID = re.compile(r"\bimport\s*\(?\s*\*|\b(?:exec|globals|locals|vars|setattr)\b")
_EXAMPLES = "executorch.examples.models"
_AOT = "executorch.backends.arm.scripts.aot_arm_compiler"


class Calibration(Word):
    """The type that a model is computed in while the scales of its tensors are found.

    In double precision they are the same on every machine. In single precision they are what
    ExecuTorch's own tools find on this one.
    """

    FLOAT64 = "float64"
    FLOAT32 = "float32"


@dataclass(frozen=True)
class ModelSource:
    """Where a model comes from.

    ``attribute`` names a class of ``module``, of ExecuTorch's wheel, or a function of the file
    ``definitions``, of the harness; or ``file`` is a user's Python file. A model that is shipped is
    untrained and therefore given *live* weights, a user's model is exported as it is.
    """

    name: str
    description: str = ""
    module: str = ""
    attribute: str = ""
    definitions: Path | None = None
    file: Path | None = None

    @property
    def is_user_file(self) -> bool:
        return self.file is not None


class UnknownModel(Unknown):
    """The names are too many for a hint, unless some are close."""

    def __init__(self, model: str, known: Iterable[str]) -> None:
        super().__init__(f"unknown model '{model}'", model, known)
        if not self.close:
            self.hint = "`hil models` lists the names; a user's model is a path ending in .py"


class NamesMissing(BadModel):
    """A user's file without the names that the convention asks for."""

    def __init__(self, path: Path, missing: Iterable[str]) -> None:
        self.missing = list(missing)
        super().__init__(
            f"{path.name} does not define {' and '.join(self.missing)}",
            hint="ModelUnderTest is a torch.nn.Module, ModelInputs a tuple of its inputs",
            path=path,
        )


def catalogue() -> dict[str, ModelSource]:
    """The small models that export, by name."""
    tiny, toy = f"{_EXAMPLES}.mlperf_tiny", f"{_EXAMPLES}.toy_model"
    sources = (
        ModelSource(
            "ds_cnn", "MLPerf Tiny keyword spotting, 1x1x49x10", f"{tiny}.ds_cnn", "DSCNNKWSModel"
        ),
        ModelSource(
            "resnet8",
            "MLPerf Tiny image classification, 1x3x32x32",
            f"{tiny}.resnet8",
            "ResNet8Model",
        ),
        ModelSource(
            "mobilenet_v1_025",
            "MLPerf Tiny visual wake words, 1x3x96x96",
            f"{tiny}.mobilenet_v1_025",
            "MobileNetV1025Model",
        ),
        ModelSource(
            "deep_autoencoder",
            "MLPerf Tiny anomaly detection, 1x640",
            f"{tiny}.deep_autoencoder",
            "DeepAutoEncoderModel",
        ),
        ModelSource("add", "two scalars", toy, "AddModule"),
        ModelSource("mul", "two 3x2 tensors", toy, "MulModule"),
        ModelSource("linear", "fully connected 3 to 3", toy, "LinearModule"),
        ModelSource("softmax", "softmax of 2x2", toy, "SoftmaxModule"),
        ModelSource("qadd", "a tensor added to itself", _AOT, "QuantAddTest"),
        ModelSource("qadd2", "three sums, three outputs", _AOT, "QuantAddTest2"),
        ModelSource("qlinear", "fully connected 61 to 37, batch of 8", _AOT, "QuantLinearTest"),
    )
    return {source.name: source for source in sources}


def full_tier() -> dict[str, ModelSource]:
    """Networks that people deploy, by name: run when they are named, for one takes a minute."""
    descriptions = {
        "mobilenet_v2": "MobileNetV2, 1x3x224x224",
        "mobilenet_v3_small": "MobileNetV3-small, 1x3x224x224",
        "resnet18": "ResNet18, 1x3x224x224",
        "resnet50": "ResNet50, 1x3x224x224",
        "efficientnet_b0": "EfficientNet-B0, 1x3x224x224",
        "squeezenet": "SqueezeNet 1.1, 1x3x224x224",
        "shufflenet_v2": "ShuffleNetV2 0.5, 1x3x224x224",
        "mnasnet": "MnasNet-B1, 1x3x224x224",
        "unet": "U-Net of three levels, 1x3x96x96",
        "kws_gru": "keyword spotting with a GRU, 1x49x10",
        "kws_lstm": "keyword spotting with an LSTM, 1x49x10",
        "tcn": "temporal convolutions, 1x10x100",
        "transformer_layer": "a transformer's encoder layer, 1x16x64",
        "wav2letter": "wav2letter, 1x39x296",
        "audio_autoencoder": "autoencoder of spectrograms, 1x1x64x64",
    }
    file = data_root() / "models" / "networks.py"
    return {
        name: ModelSource(name, said, attribute=name, definitions=file)
        for name, said in descriptions.items()
    }


def known_models() -> dict[str, ModelSource]:
    """Both tiers."""
    return catalogue() | full_tier()


def unavailable() -> dict[str, str]:
    """The wheel's other names, each with the reason why it does not end in an int8 Cortex-M program
    here."""
    reasons = {
        "needs the package torchvision": (
            "dl3 ic3 llava mv2 mv2_untrained mv3 resnet18 resnet50 vit"
        ),
        "needs the package torchaudio": "emformer_join emformer_predict emformer_transcribe w2l",
        "needs the package timm": "deit_tiny ic4",
        "needs the package torchsr": "edsr",
        "needs the package torchtune": "llama3_2_vision_encoder phi_4_mini smollm2",
        "needs the package transformers": "mobilebert whisper",
        "needs the package safetensors": "qwen2_5_1_5b qwen3 smolvlm",
        "needs the package ultralytics": "yolo26",
        "needs a download": "efficient_sam",
        "needs a checkpoint: without one its activations are NaN and cannot be calibrated": (
            "llama llama2"
        ),
        "keeps the float operator aten::mm.out": "add_mul",
        "keeps the float operator aten::convolution.out": "conv1d",
        "keeps the float operators aten::add.out and aten::sub.out": "qops",
        "takes nested inputs (a tensor and a pair of states)": "lstm",
        "computes in bfloat16, which the Cortex-M passes do not lower": "sdpa",
    }
    return {name: reason for reason, names in reasons.items() for name in names.split()}


def find_model(name: str) -> ModelSource:
    """The source for a catalogue name or the path of a ``.py`` file.

    Raises UnknownModel (close names in the hint), UsageError for one that does not export and
    for a file that is not there.
    """
    if is_user_file(name):
        path = Path(name)
        if not path.is_file():
            beside = sorted(other.name for other in path.parent.glob(f"*{path.suffix}"))
            raise UsageError(
                f"no such model file: {name}",
                hint=f"{path.parent.absolute()} has {', '.join(beside) or 'no .py file'}",
                path=path,
            )
        return ModelSource(path.stem, f"user file {path.name}", file=path.resolve())
    known = known_models()
    if name in known:
        return known[name]
    if name in unavailable():
        reason = unavailable()[name]
        raise UsageError(
            f"model '{name}' cannot be exported: it {reason}",
            hint="`hil models` lists the ones that can",
            model=name,
            reason=reason,
        )
    raise UnknownModel(name, [*known, *unavailable()])


def require_names(file: Path) -> None:
    """Raises NamesMissing for a user's file that cannot define what the convention asks for, as
    far as that is to be seen without running it; UsageError where it cannot be read."""
    try:
        text = file.read_text("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}", path=file) from error
    missing = [name for name in CONVENTION if name not in text]
    if missing and not _UNSAID.search(text):
        raise NamesMissing(file, missing)


def source_files(file: Path) -> tuple[Path, ...]:
    """A user's file and the files beside it that it imports, found without running anything.

    Raises BadModel with the line, UsageError for a file that cannot be read.
    """
    found: dict[Path, None] = {}
    pending = [file]
    while pending:
        path = pending.pop()
        if path in found:
            continue
        found[path] = None
        pending += [
            beside
            for module in _imported_modules(path)
            for beside in (
                file.parent.joinpath(*module).with_suffix(".py"),
                file.parent.joinpath(*module, "__init__.py"),
            )
            if beside.is_file()
        ]
    return tuple(sorted(found))


def _imported_modules(path: Path) -> list[tuple[str, ...]]:
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", path=path) from error
    except (SyntaxError, ValueError) as error:
        line: int | None = getattr(error, "lineno", None)
        raise BadModel(
            f"{path.name}{f':{line}' if line else ''} is not valid Python: "
            f"{getattr(error, 'msg', error)}",
            hint=f"`python {path}` says the same",
            path=path,
            line=line,
            cause=type(error).__name__,
        ) from error
    names: list[tuple[str, ...]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            module = tuple(node.module.split("."))
            names += [module, *((*module, alias.name) for alias in node.names)]
    return names
