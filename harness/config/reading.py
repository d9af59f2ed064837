"""Reads one target file: with the file that it extends, its NPU's product and its FVP's model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.config import npu, strict_yaml
from harness.config.fvp import load_model
from harness.config.model import Target
from harness.config.schema import checked_document
from harness.config.strict_yaml import Document


def read_target(path: Path, files: Mapping[str, Path], mode: str | None = None) -> Target:
    """The target of a file. ``files``: every target's file, by name. ``mode``: a memory mode, or a
    lowering of a target without an NPU.

    Raises TargetError with file and line; Unknown and UsageError for a mode that it does not have.
    """
    document = _with_model(_layered(strict_yaml.read(path), files))
    for reserved in ("name", "file"):
        if reserved in document.data:
            raise document.place((reserved,)).error(
                f"unknown key {reserved!r}: a target is named after its file"
            )
    lowering = mode if "npu" not in document.data and document.data.get("lowerings") else None
    mode = None if lowering else mode
    data = npu.resolve(document.data, path.stem, mode)
    name = path.stem if mode is None or mode == _default_mode(data) else f"{path.stem}@{mode}"
    data = {**data, "name": name, "file": path.absolute()}
    target = checked_document(Target, Document(data, document.places))
    return target if lowering is None else target.lowered(lowering)


def _default_mode(data: Mapping[str, Any]) -> str:
    return str(data["npu"]["default_memory_mode"])


def _layered(own: Document, files: Mapping[str, Path], above: tuple[Path, ...] = ()) -> Document:
    """The file over what its NPU brings, over the file that it extends, which is layered itself.
    ``above``: the files that extend this one."""
    base = _base(own, files, above) if "extends" in own.data else None
    document = own if base is None else strict_yaml.merge(base, own)
    product = npu.layer(document) if base is None or "npu" in own.data else None
    if product is not None:
        under = product if base is None else strict_yaml.merge(base, product)
        document = strict_yaml.merge(under, own)
    data = {key: value for key, value in document.data.items() if key != "extends"}
    return Document(data, document.places)


def _base(child: Document, files: Mapping[str, Path], above: tuple[Path, ...]) -> Document:
    name = child.data["extends"]
    place = child.place(("extends",))
    above = (*above, place.file.absolute())
    if not isinstance(name, str) or name not in files or files[name].absolute() == above[-1]:
        raise place.error(f"extends {name!r}, which is not another target")
    if files[name].absolute() in above:
        raise place.error(f"extends {name!r}, which extends this one")
    return _layered(strict_yaml.read(files[name]), files, above)


def _with_model(document: Document) -> Document:
    """``simulators.fvp.model`` takes over what targets/fvp says of that model."""
    where = ("simulators", "fvp", "model")
    if where not in document.places:
        return document
    settings = document.data["simulators"]["fvp"]
    model = load_model(settings["model"], document.place(where))
    filled = {
        **model,
        **settings,
        "parameters": {
            **model.get("parameters", {}),
            **_macs(document, model),
            **settings.get("parameters", {}),
        },
    }
    simulators = {**document.data["simulators"], "fvp": filled}
    return Document({**document.data, "simulators": simulators}, document.places)


def _macs(document: Document, model: Mapping[str, Any]) -> dict[str, int]:
    """The model's NPU has the target's MACs."""
    section = document.data.get("npu")
    return {} if section is None else {model["macs"]: section["macs"]}
