"""targets/*.yaml -> Target. What is wrong in a file is a TargetError, "file:line: message".

``NAME@Mode`` is the target NAME with another memory mode of its NPU, or without an NPU with
another lowering of its programs.
"""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.config import npu, strict_yaml
from harness.config.case import is_user_file
from harness.config.fvp import fvp_model, models_file
from harness.config.models import known_models
from harness.config.schema import checked_document
from harness.config.strict_yaml import Document
from harness.config.target import Target
from harness.core.errors import NotThere, TargetError, Unknown, UsageError
from harness.formats.ethosu import PRODUCTS
from harness.system import paths
from harness.system.settings import MOST_FACTOR, is_factor, settings

_LAID_OVER = (
    ("npu",),
    ("cmake",),
    ("default_pools",),
    ("lowerings",),
    ("simulators",),
    ("simulators", "fvp"),
    ("simulators", "fvp", "parameters"),
)


def limit_factor(text: str, source: str = "the limit factor") -> float:
    """Return the factor of all time limits. Raises UsageError, which names ``source``."""
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not is_factor(factor):
        raise UsageError(f"{source} is {text!r}, not a number above 0 and up to {MOST_FACTOR}")
    return factor


def target_directories(environ: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Return the project's ``targets``, and those of the user's settings."""
    ours = paths.data_root() / "targets"
    return tuple(dict.fromkeys((ours, *settings(environ=environ).targets)))


def target_files(directories: tuple[Path, ...] | None = None) -> dict[str, Path]:
    """Every target file by target name. Two files of one name are a TargetError."""
    found: dict[str, Path] = {}
    for directory in directories or target_directories():
        if not directory.is_dir():
            raise UsageError(
                f"{directory} is not a directory of targets",
                hint="`targets` of your settings names it",
                path=directory,
            )
        for path in sorted(directory.glob("*.yaml")):
            if path.stem in found and found[path.stem] != path:
                raise TargetError(
                    path,
                    1,
                    f"there is another target {path.stem!r}: {found[path.stem]}",
                    hint="give it another name; `extends` takes over the rest",
                )
            found[path.stem] = path
    return found


def load_targets(directories: tuple[Path, ...] | None = None) -> tuple[Target, ...]:
    """All targets, in the order of their names."""
    files = target_files(directories)
    return tuple(read_target(files[name], files) for name in sorted(files))


def load_target(name: str, directories: tuple[Path, ...] | None = None) -> Target:
    """Load a target, by name or by the path of its ``.yaml``.

    ``@Mode`` follows it where it has an NPU, or ``@lowering`` where it has several lowerings."""
    files = target_files(directories)
    stem, mode = npu.split_mode(name)
    if stem in files:
        return read_target(files[stem], files, mode)
    path = Path(stem)
    if path.suffix == ".yaml":
        if not path.is_file():
            raise NotThere(stem, "target file", hint="or a name of `hil targets`")
        siblings = {p.stem: p for p in path.absolute().parent.glob("*.yaml")}
        return read_target(path, {**files, **siblings}, mode)
    if is_user_file(stem) or stem in known_models():
        raise UsageError(
            f"{stem} is a model, where a target is wanted",
            hint=f"the target comes first: `hil run TARGET {stem}`; `hil targets` lists them",
        )
    raise Unknown(
        f"unknown target {stem!r}",
        stem,
        sorted(files),
        close=_similar_names(stem, files),
        listing="known: ",
    )


def place_of_fvp_parameter(target: Target, name: str) -> str:
    """FILE:LINE that sets a parameter of the target's FVP."""
    own = _document(target)
    fvp = target.simulators.fvp
    model = None if fvp is None else fvp.model
    found = own.places.get(("simulators", "fvp", "parameters", name))
    if found is None and fvp is not None and name == fvp.macs:
        found = own.places.get(("npu", "macs"))
    if found is None and model is not None:
        found = models_file().place((model, "parameters", name))
    found = found or own.place(("simulators", "fvp"))
    return f"{found.file}:{found.line}"


def _document(target: Target) -> Document:
    siblings = {path.stem: path for path in target.file.parent.glob("*.yaml")}
    return _layered(strict_yaml.read(target.file), {**target_files(), **siblings})


def loadable_name(target: Target, requested: str) -> str:
    """Return what loads ``target`` again, from every directory.

    It is its name, without a default memory mode that ``requested`` may name; or the path of its
    file, where ``requested`` is one."""
    if not npu.split_mode(requested)[0].endswith(".yaml"):
        return target.name
    _, at, mode = target.name.partition("@")
    return f"{target.file}{at}{mode}"


def _similar_names(name: str, known: Iterable[str]) -> list[str]:
    """Return the same board and NPU with other MACs, else the names that look most similar."""
    family = name.rpartition("-")[0]
    if family.rpartition("-")[2] in PRODUCTS:
        kin = [other for other in known if other.rpartition("-")[0] == family]
        if kin:
            return sorted(kin, key=lambda other: (len(other), other))
    return difflib.get_close_matches(name, known, n=3, cutoff=0.5)


def read_target(path: Path, files: Mapping[str, Path], mode: str | None = None) -> Target:
    """Return the target of a file.

    ``files``: every target's file, by name. ``mode``: a memory mode, or a lowering of a target
    without an NPU.

    Raises TargetError with file and line; Unknown and UsageError for a mode that it does not have.
    """
    document = _with_fvp_model(_require_mappings(_layered(strict_yaml.read(path), files)))
    for reserved in ("name", "file"):
        if reserved in document.data:
            raise document.place((reserved,)).error(
                f"unknown key {reserved!r}: a target is named after its file"
            )
    lowering = mode if "npu" not in document.data and document.data.get("lowerings") else None
    mode = None if lowering else mode
    data = npu.resolve(document.data, path.stem, mode)
    default = mode is None or mode == data["npu"]["default_memory_mode"]
    name = path.stem if default else f"{path.stem}@{mode}"
    data = {**data, "name": name, "file": path.absolute()}
    target = checked_document(Target, Document(data, document.places))
    return target if lowering is None else target.lowered(lowering)


def _layered(
    own: Document, files: Mapping[str, Path], extended_by: tuple[Path, ...] = ()
) -> Document:
    """Merge the file that it extends (merged itself), the NPU's defaults, and its own keys.

    The last has the highest priority. ``extended_by``: the files that extend this one."""
    base = _base(own, files, extended_by) if "extends" in own.data else None
    document = own if base is None else strict_yaml.merge(base, own)
    product = npu.layer(document) if base is None or "npu" in own.data else None
    if product is not None:
        under = product if base is None else strict_yaml.merge(base, product)
        document = strict_yaml.merge(under, own)
    data = {key: value for key, value in document.data.items() if key != "extends"}
    return Document(data, document.places)


def _base(child: Document, files: Mapping[str, Path], extended_by: tuple[Path, ...]) -> Document:
    name = child.data["extends"]
    place = child.place(("extends",))
    extended_by = (*extended_by, place.file.absolute())
    if not isinstance(name, str) or name not in files or files[name].absolute() == extended_by[-1]:
        raise place.error(f"extends {name!r}, which is not another target")
    if files[name].absolute() in extended_by:
        raise place.error(f"extends {name!r}, which extends this one")
    return _layered(strict_yaml.read(files[name]), files, extended_by)


def _require_mappings(document: Document) -> Document:
    """Require mappings for sections that are merged before the check. Raises TargetError."""
    for path in _LAID_OVER:
        value: object = document.data
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if path in document.places and not isinstance(value, dict):
            raise document.place(path).error(f"a mapping is wanted for {'.'.join(path)}")
    return document


def _with_fvp_model(document: Document) -> Document:
    """``simulators.fvp.model`` takes over what targets/fvp says of that model."""
    where = ("simulators", "fvp", "model")
    if where not in document.places:
        return document
    settings = document.data["simulators"]["fvp"]
    model, section = fvp_model(settings["model"], document.place(where)), document.data.get("npu")
    filled = {
        **model,
        **settings,
        "parameters": {
            **model.get("parameters", {}),
            **({model["macs"]: section["macs"]} if section else {}),  # the target's
            **settings.get("parameters", {}),
        },
    }
    simulators = {**document.data["simulators"], "fvp": filled}
    return Document({**document.data, "simulators": simulators}, document.places)
