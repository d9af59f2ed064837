"""From a ModelSource to a torch module with example and calibration inputs."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import torch

from harness.case.models import CONVENTION, ModelSource, NamesMissing
from harness.errors import BadModel
from harness.export.program import DTYPE_BYTES
from harness.export.samples import Sample


@dataclass(frozen=True)
class LoadedModel:
    """``calibration`` is empty unless the user's file has ``CalibrationInputs``."""

    module: torch.nn.Module
    examples: Sample
    calibration: tuple[Sample, ...] = ()


def load_model(source: ModelSource) -> LoadedModel:
    """The caller has seeded the random generators: definitions may draw their weights."""
    if source.file is not None:
        return _load_user_file(source.file)
    shipped = getattr(importlib.import_module(source.module), source.attribute)()
    if hasattr(shipped, "get_eager_model"):  # executorch.examples.models
        module, examples = shipped.get_eager_model(), shipped.get_example_inputs()
    else:  # MODELS of aot_arm_compiler
        module, examples = shipped, shipped.example_input
    _check_sample(examples, f"example inputs of {source.name}")
    return LoadedModel(module.eval().requires_grad_(False), examples)


def _load_user_file(file: Path) -> LoadedModel:
    """The convention of aot_arm_compiler.py: ``ModelUnderTest`` and ``ModelInputs``."""
    with _executed(file) as user:
        missing = [n for n in CONVENTION if not hasattr(user, n)]
        if missing:
            raise NamesMissing(file, missing)
        module = user.ModelUnderTest
        if not isinstance(module, torch.nn.Module):
            kind = f"the class {module.__name__}" if isinstance(module, type) else type(module)
            raise BadModel(
                f"ModelUnderTest of {file.name} must be a torch.nn.Module instance, got {kind}",
                hint="ModelUnderTest = MyModel().eval()",
                path=file,
            )
        examples = _as_tuple(user.ModelInputs)
        _check_sample(examples, f"ModelInputs of {file.name}")
        calibration = tuple(_as_tuple(s) for s in getattr(user, "CalibrationInputs", ()))
        for index, sample in enumerate(calibration):
            _check_sample(sample, f"CalibrationInputs[{index}] of {file.name}", like=examples)
        return LoadedModel(module.eval().requires_grad_(False), examples, calibration)


def _as_tuple(value: object) -> Sample:
    if isinstance(value, torch.Tensor):
        return (value,)
    return tuple(value) if isinstance(value, list) else value  # type: ignore[return-value]


@contextmanager
def _executed(file: Path) -> Iterator[ModuleType]:
    """Run a file as a module that may import its neighbours; forget all of them afterwards."""
    spec = importlib.util.spec_from_file_location("hil_user_model", file)
    assert spec is not None
    assert spec.loader is not None
    user = importlib.util.module_from_spec(spec)
    before = set(sys.modules)
    sys.modules[spec.name] = user
    sys.path.insert(0, str(file.parent))
    try:
        spec.loader.exec_module(user)
        yield user
    finally:
        sys.path.remove(str(file.parent))
        for name in set(sys.modules) - before:
            origin = getattr(sys.modules[name], "__file__", None)
            if origin and Path(origin).is_relative_to(file.parent):
                del sys.modules[name]
        sys.modules.pop(spec.name, None)


def _check_sample(value: object, what: str, like: Sequence[torch.Tensor] | None = None) -> None:
    """Raise BadModel unless ``value`` is a tuple of tensors the runner can be given."""
    if not isinstance(value, tuple) or not all(isinstance(t, torch.Tensor) for t in value):
        kinds = [type(item).__name__ for item in value] if isinstance(value, tuple) else []
        raise BadModel(
            f"{what} must be a tuple of tensors, got {type(value).__name__}"
            + (f" of {', '.join(kinds)}" if kinds else "")
        )
    for index, tensor in enumerate(value):
        if str(tensor.dtype).removeprefix("torch.") not in DTYPE_BYTES:
            raise BadModel(
                f"{what}[{index}] has dtype {tensor.dtype}, which the runner cannot take"
            )
    if like is not None and [(t.shape, t.dtype) for t in value] != [
        (t.shape, t.dtype) for t in like
    ]:
        raise BadModel(
            f"{what} does not have the shapes and dtypes of ModelInputs: "
            f"{[tuple(t.shape) for t in value]} against {[tuple(t.shape) for t in like]}"
        )
