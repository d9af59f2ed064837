"""The models one can ask for by name, and user files that define one. Imports no torch.

models/catalogue.yaml lists those that are shipped.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harness.config.case import is_user_file
from harness.config.strict_yaml import read
from harness.core.errors import BadModel, Unknown, UsageError
from harness.core.verdict import Word
from harness.system.files import read_regular
from harness.system.paths import data_root

# A user's file has to define these, as for ExecuTorch's aot_arm_compiler.
CONVENTION = ("ModelUnderTest", "ModelInputs")


class CalibrationType(Word):
    """The type that a model is computed in while the scales of its tensors are found.

    In double precision they are the same on every machine. In single precision they are what
    ExecuTorch's own tools find on this one.
    """

    FLOAT64 = "float64"
    FLOAT32 = "float32"


class Quantization(Word):
    """Bits of activations and of weights."""

    A8W8 = "a8w8"
    A16W8 = "a16w8"


class Layout(Word):
    """How ExecuTorch lowers images and sequences for a Cortex-M.

    Tensors are channels-last, or operators copy to and from such a layout (its experimental
    pipeline, which alone quantises Conv1d)."""

    CHANNELS_LAST = "channels-last"
    EXPLICIT = "explicit"


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
    layout: Layout = Layout.CHANNELS_LAST  # unless the model's YAML file names another

    @property
    def is_user_file(self) -> bool:
        return self.file is not None


class NamesMissing(BadModel):
    """A user's file without the names that the convention asks for."""

    def __init__(self, path: Path, missing: Iterable[str]) -> None:
        self.missing = tuple(missing)
        super().__init__(
            f"{path.name} does not define {' and '.join(self.missing)}",
            hint="ModelUnderTest is a torch.nn.Module, ModelInputs a tuple of its inputs",
            path=path,
        )


@cache
def _catalogue() -> dict[str, Any]:
    return read(data_root() / "models" / "catalogue.yaml").data


def small_models() -> dict[str, ModelSource]:
    """Return the small models that export, by name."""
    return {name: ModelSource(name, **where) for name, where in _catalogue()["tiny"].items()}


def full_tier() -> dict[str, ModelSource]:
    """Networks that people deploy, by name."""
    file = data_root() / "models" / "networks.py"
    return {
        name: ModelSource(
            name,
            row["description"],
            attribute=name,
            definitions=file,
            layout=Layout(row.get("layout", Layout.CHANNELS_LAST)),
        )
        for name, row in _catalogue()["full"].items()
    }


def known_models() -> dict[str, ModelSource]:
    """Both tiers."""
    return small_models() | full_tier()


def other_names() -> dict[str, str]:
    """ExecuTorch's names of networks that the catalogue defines itself, and the catalogue's."""
    return dict(_catalogue()["also"])


def unavailable() -> dict[str, str]:
    """Return the wheel's other names, each with the reason why it cannot run as int8 here now."""
    found = {name: why for why, names in _catalogue()["unavailable"].items() for name in names}
    for package, names in _catalogue()["optional"].items():
        if find_spec(package) is None:
            found |= dict.fromkeys(names, f"needs the package {package}")
    return found


def optional_models() -> dict[str, ModelSource]:
    """Networks of the wheel whose package is installed, by name."""
    return {
        name: ModelSource(name, module=f"executorch.examples.models.{module}", attribute=kind)
        for package, names in _catalogue()["optional"].items()
        if find_spec(package) is not None
        for name, (module, kind) in names.items()
    }


def _install_command(package: str) -> str:
    """For the Python that runs, with the version that the project names, if it does."""
    try:
        wanted = metadata.requires("executorch-hil") or ()
    except metadata.PackageNotFoundError:
        wanted = ()
    named = (text.partition(";")[0].strip() for text in wanted)
    pinned = next((text for text in named if re.match(rf"{package}\b", text)), package)
    return f"{sys.executable} -m pip install '{pinned}'"


def find_model(name: str) -> ModelSource:
    """Return the source for a catalogue name or the path of a ``.py`` file.

    Raises Unknown (close names in the hint), UsageError for one that does not export and for a file
    that is not there."""
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
    known = known_models() | optional_models()
    chosen = other_names().get(name, name)
    if chosen in known:
        return known[chosen]
    if name in unavailable():
        reason = unavailable()[name]
        package = reason.removeprefix("needs the package ")
        raise UsageError(
            f"model '{name}' cannot be exported: it {reason}",
            hint="`hil models` lists the ones that can"
            if package == reason
            else f"it may be exported after {_install_command(package)}",
            model=name,
            reason=reason,
        )
    file = Path(f"{name}.py")
    close = [str(file)] if os.path.isfile(file) else None  # or the name is too long
    unknown = Unknown(f"unknown model '{name}'", name, known, close=close)
    if not unknown.close:  # the names are too many for a hint
        unknown.hint = "`hil models` lists the names; a user's model is a path ending in .py"
    raise unknown


def source_files(file: Path) -> tuple[Path, ...]:
    """Find a user's file and the files next to it that it imports, without running them.

    Raises BadModel with the line, UsageError for a file that cannot be read."""
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
        tree = ast.parse(read_regular(path), str(path))
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
