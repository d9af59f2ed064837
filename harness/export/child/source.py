"""Loads a ModelSource as a torch module, and records what Python opens for it.

The record is by audit events (PEP 578; their names are those of "Audit events table" in Python's
documentation). Not seen: files that native code opens by itself, what other processes read, and
that a file was looked for without opening it (``os.path.exists``)."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from harness.config.models import CONVENTION, ModelSource, NamesMissing
from harness.core.errors import BadModel
from harness.export.cache import state_of
from harness.export.child.samples import Sample
from harness.export.failures import InputChanged
from harness.export.program import DTYPE_BYTES
from harness.system.paths import data_root, import_root


@dataclass(frozen=True)
class LoadedModel:
    """A model with example and calibration inputs.

    ``calibration`` is empty unless the user's file has ``CalibrationInputs``, and so is
    ``evaluation`` without ``EvaluationInputs``; ``declared``: the files that its ``InputFiles``
    names; ``opened``: those that it opens, None of a shipped one."""

    module: torch.nn.Module
    examples: Sample
    calibration: tuple[Sample, ...] = ()
    declared: tuple[Path, ...] = ()
    opened: OpenedFiles | None = None
    evaluation: tuple[Sample, ...] = ()
    constant: tuple[int, ...] = ()  # outputs that are so, its ``ConstantOutputs``
    trained: bool = False  # it was in training mode

    def remarks(self, constant: Sequence[int]) -> tuple[str, ...]:
        """Return notes for every report. Raises BadModel if one declared ``constant`` is not."""
        if wrong := sorted(set(self.constant) - set(constant)):
            raise BadModel(
                f"ConstantOutputs of the model names output {wrong[0]}, which is not constant",
                hint="take it out: then a wrong output shows",
            )
        found = [f"output {n} is constant, as ConstantOutputs says" for n in constant]
        if self.trained:
            found.append("the model was in training mode, and is exported in evaluation mode")
        return tuple(found)


def load_model(source: ModelSource) -> LoadedModel:
    """Load a model. Call with seeded random generators: definitions may draw their weights."""
    if source.file is not None:
        return _load_user_file(source.file)
    if source.definitions is not None:
        definitions = _executed(source.definitions)
    else:
        definitions = importlib.import_module(source.module)
    shipped = getattr(definitions, source.attribute)()
    if hasattr(shipped, "get_eager_model"):  # executorch.examples.models
        module, examples = shipped.get_eager_model(), shipped.get_example_inputs()
    else:  # MODELS of aot_arm_compiler, and models/networks.py
        module, examples = shipped, shipped.example_input
    _check_sample(examples, f"example inputs of {source.name}")
    return LoadedModel(module.eval().requires_grad_(False), examples)


def _load_user_file(file: Path) -> LoadedModel:
    """Return the convention of aot_arm_compiler.py: ``ModelUnderTest`` and ``ModelInputs``."""
    opened = OpenedFiles()
    user = _executed(file)
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
    for name in vars(user):
        if name.replace("_", "").lower() == "dynamicshapes":
            raise BadModel(
                f"{file.name} defines {name}, and a program is exported for the shapes of "
                "ModelInputs alone",
                hint=f"take {name} out; a file for each size that matters tests these sizes",
                path=file,
            )
    examples = _as_tuple(user.ModelInputs)
    _check_sample(examples, f"ModelInputs of {file.name}")
    calibration, evaluation = (
        _samples(user, name, file, examples) for name in ("CalibrationInputs", "EvaluationInputs")
    )
    files = _declared_files(user, file)
    constant = tuple(_list_of(user, "ConstantOutputs", int, "output numbers", "[1]"))
    trained = any(part.training for part in module.modules())
    evaluated = module.eval().requires_grad_(False)
    return LoadedModel(
        evaluated, examples, calibration, files, opened, evaluation, constant, trained
    )


def _samples(user: ModuleType, name: str, file: Path, examples: Sample) -> tuple[Sample, ...]:
    samples = tuple(_as_tuple(s) for s in getattr(user, name, ()))
    for index, sample in enumerate(samples):
        _check_sample(sample, f"{name}[{index}] of {file.name}", like=examples)
    return samples


def _list_of(user: ModuleType, name: str, kind: Any, what: str, example: str) -> tuple[Any, ...]:
    """Return a list that the user's file may define. Raises BadModel."""
    value = getattr(user, name, ())
    if isinstance(value, list | tuple) and all(isinstance(item, kind) for item in value):
        return tuple(value)
    file = Path(str(user.__file__))
    text = f"{name} of {file.name} must be a list of {what}"
    raise BadModel(text, hint=f"{name} = {example}", path=file)


def _declared_files(user: ModuleType, file: Path) -> tuple[Path, ...]:
    declared = _list_of(user, "InputFiles", (str, Path), "file names", '["weights.bin"]')
    files = tuple(file.parent / name for name in declared)
    for path in files:
        if not path.is_file():
            raise BadModel(
                f"InputFiles of {file.name}: there is no file {path}",
                hint="names start at the folder of the model's file",
                path=file,
            )
    return files


def input_files(file: Path, model: LoadedModel, started: int, own: Path) -> dict[str, str]:
    """Return the files and folders that a model was made of besides ``file``, with their state.

    They are those that it opened, listed or declared, and the user's modules that are imported now.
    Names are relative to its folder within its repository, begin with ``./`` where the model opened
    them relative to the current directory, and are absolute elsewhere. ``own``: the folder of the
    export's result. Raises InputChanged for a file that was written after ``started``
    (``time.time_ns``)."""
    # The folder with ``.git`` that the file is in, or else the file's own folder.
    root = next((f for f in file.parents if (f / ".git").exists()), file.parent)
    opened = model.opened
    assert opened is not None
    paths = (*model.declared, *_imported(own))
    states = {}
    for path, name in sorted({*((path, "") for path in paths), *opened.inputs(root, own)}):
        if path == file:
            continue
        by_the_model = path.is_dir() or str(path) in opened.written
        if path.exists() and not by_the_model and path.stat().st_mtime_ns > started:
            raise InputChanged(path)
        inside = path.is_relative_to(root)
        place = os.path.relpath(path, file.parent) if inside else str(path)
        states[name or place] = state_of(path)
    return states


def _imported(own: Path) -> Iterator[Path]:
    for module in list(sys.modules.values()):
        origin = getattr(module, "__file__", None)
        if not isinstance(origin, str) or not os.path.isfile(origin):  # torch makes some up
            continue
        path = os.path.abspath(origin)
        if not is_installed(path, own):
            yield Path(path)


def _as_tuple(value: object) -> Sample:
    if isinstance(value, torch.Tensor):
        return (value,)
    return tuple(value) if isinstance(value, list) else value  # type: ignore[return-value]


def _executed(file: Path) -> ModuleType:
    """Run a file as a module that may import its neighbours.

    Each file has a process of its own (``main._fork``), so the fixed module name is unique."""
    spec = importlib.util.spec_from_file_location("hil_user_model", file)
    assert spec is not None
    assert spec.loader is not None
    user = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = user
    sys.path.insert(0, str(file.parent))
    torchvision_schemas()
    spec.loader.exec_module(user)
    return user


@lru_cache(maxsize=1)  # the operators are there as long as the library object
def torchvision_schemas() -> torch.library.Library | None:
    """Define the schemas that torchvision needs next to a torch for the CPU alone.

    Without them its import fails ("operator torchvision::nms does not exist", 0.28): the package
    index has it compiled for torch with CUDA, so its operators do not load. Only a detector's last
    step calls them. Returns None where torchvision is not installed, or loads."""
    found = importlib.util.find_spec("torchvision")
    if found is None or found.origin is None:
        return None
    with suppress(OSError):
        torch.ops.load_library(str(Path(found.origin).with_name("_C.so")))
        return None
    operators = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return operators


def _check_sample(value: object, name: str, like: Sequence[torch.Tensor] | None = None) -> None:
    """Raise BadModel unless ``value`` is a tuple of tensors that the runner accepts."""
    if not isinstance(value, tuple) or not all(isinstance(t, torch.Tensor) for t in value):
        kinds = [type(item).__name__ for item in value] if isinstance(value, tuple) else []
        of = f" of {', '.join(kinds)}" if kinds else ""
        raise BadModel(f"{name} must be a tuple of tensors, got {type(value).__name__}{of}")
    for index, tensor in enumerate(value):
        if str(tensor.dtype).removeprefix("torch.") not in DTYPE_BYTES:
            what = f"{name}[{index}] has dtype {tensor.dtype}"
            raise BadModel(f"{what}, which the runner cannot take")
    both = value, value if like is None else like
    given, wanted = ([(tuple(t.shape), t.dtype) for t in each] for each in both)
    if given != wanted:
        ours, theirs = ([shape for shape, _ in each] for each in (given, wanted))
        what = "does not have the shapes and dtypes of ModelInputs"
        raise BadModel(f"{name} {what}: {ours} against {theirs}")


_OPENS = {"open", "sqlite3.connect", "ctypes.dlopen"}
_LISTS = {"os.listdir", "os.scandir"}
_TEMPORARY = {"tempfile.mkdtemp", "tempfile.mkstemp"}
_PACKAGES = {"site-packages", "dist-packages"}
_KERNELS = ("/proc/", "/sys/", "/dev/")


class OpenedFiles:
    """Records from now on.

    A hook cannot be removed: the process has to be a fork for one model (``main._fork``)."""

    def __init__(self) -> None:
        self._start = os.getcwd()
        self._seen: dict[tuple[str, str], None] = {}  # absolute path, and name for the cache
        self._temporary: set[str] = set()
        self.written: set[str] = set()
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in _OPENS and event not in _LISTS and event not in _TEMPORARY:
            return
        given = "." if arguments[0] is None and event in _LISTS else arguments[0]
        if not isinstance(given, (str, bytes, os.PathLike)):  # a descriptor
            return
        name = os.fsdecode(given)
        with suppress(OSError):  # a current directory that is gone
            if event in _TEMPORARY:
                self._temporary.add(os.path.abspath(name))
            elif event in _LISTS:
                # an import looks into every folder of sys.path
                if "importlib" not in sys._getframe(1).f_code.co_filename:
                    self._add(name, os.O_RDONLY)
            elif event != "ctypes.dlopen" or os.sep in name:
                self._add(name, arguments[2] if event == "open" else os.O_RDONLY)

    def _add(self, name: str, flags: int) -> None:
        path = os.path.abspath(name)
        if flags & (os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
            self.written.add(path)
        if not flags & os.O_WRONLY:
            relative = not os.path.isabs(name) and os.getcwd() == self._start
            self._seen[path, f"./{os.path.normpath(name)}" if relative else ""] = None

    def inputs(self, root: Path, own: Path) -> Iterator[tuple[Path, str]]:
        """Return every file that was opened for reading, and every folder that was listed.

        A file may have been absent; folders are below ``root``. Each has its name if that is
        relative to the directory in which the export began, else "". It leaves out files of
        installed packages, Python, the exporter and the kernel, temporary ones, those that the
        model wrote and removed, and those below ``own``."""
        for path, name in [*self._seen]:
            if os.path.isdir(path):
                counts = Path(path).is_relative_to(root)
            else:
                counts = os.path.exists(path) or path not in self.written
            temporary = any(path == made or path.startswith(f"{made}/") for made in self._temporary)
            if counts and not temporary and not is_installed(path, own):
                yield Path(path), name


def is_installed(path: str, *own: Path) -> bool:
    """Return whether it is of a package, Python, the harness or kernel, or below ``own``."""
    parts = Path(path).parts
    if not _PACKAGES.isdisjoint(parts) or "__pycache__" in parts or path.startswith(_KERNELS):
        return True
    exporter = [Path(place).parent for place in importlib.import_module("executorch").__path__]
    library = Path(sysconfig.get_path("stdlib"))
    places = [library, import_root() / "harness", data_root() / "targets", *exporter]
    return any(Path(path).is_relative_to(place) for place in (*places, *own))
