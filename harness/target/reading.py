"""targets/*.yaml read and checked. What is wrong is a TargetError, "file:line: message"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from harness.errors import TargetError
from harness.system import strict_yaml
from harness.target import npu
from harness.target.checking import checked, errors_of, is_unknown_key
from harness.target.fvp import load_model, models_file, models_path
from harness.target.model import Target


def read_target(
    path: Path, files: Mapping[str, Path], mode: str | None = None
) -> tuple[Target, dict[Path, str]]:
    """The target, and the sha256 of every file that was read to know it. ``files``: every
    target's, by name.

    Raises TargetError; UsageError for a mode that it does not have.
    """
    document = _with_model(_layered(_read(path), files))
    for reserved in ("name", "file", "settings"):
        if reserved in document.data:
            raise document.place((reserved,)).error(
                f"unknown key {reserved!r}: a target is named after its file"
            )
    lowering = mode if "npu" not in document.data and document.data.get("lowerings") else None
    mode = None if lowering else mode
    data = npu.resolve(document.data, path.stem, mode)
    name = path.stem if mode is None or mode == _default_mode(data) else f"{path.stem}@{mode}"
    try:
        target = target_from({**data, "name": name, "file": str(path.absolute())})
    except ValidationError as error:
        raise explain(error, document) from error
    target = target if lowering is None else target.lowered(lowering)
    read = {file: _read(file).sha256 for file in _chain(path, files)}
    if target.npu is not None:
        read[npu.products_path()] = npu.products_file().sha256
    if target.settings.fvp is not None and target.settings.fvp.model is not None:
        read[models_path()] = models_file().sha256
    return target, read


def target_from(said: Mapping[str, Any]) -> Target:
    """From plain data, as ``Target.to_fields`` has it. Raises ValidationError."""
    fields = {"settings" if name == "simulators" else name: value for name, value in said.items()}
    return checked(Target, fields)


def _chain(path: Path, files: Mapping[str, Path]) -> Iterator[Path]:
    """The file and those that it extends."""
    while True:
        yield path
        name = _read(path).data.get("extends")
        if name is None:
            return
        path = files[name]


def _read(path: Path) -> strict_yaml.Document:
    try:
        now = path.stat()
    except OSError:
        return strict_yaml.read(path)  # says why
    return _remembered(path, now.st_mtime_ns, now.st_size)


@lru_cache(maxsize=64)
def _remembered(path: Path, _time: int, _size: int) -> strict_yaml.Document:
    """Many targets extend one file, and nothing changes a Document."""
    return strict_yaml.read(path)


def _default_mode(data: Mapping[str, Any]) -> str:
    return str(data["npu"]["default_memory_mode"])


def _layered(
    own: strict_yaml.Document, files: Mapping[str, Path], above: tuple[Path, ...] = ()
) -> strict_yaml.Document:
    """The file over what its NPU brings, over the file that it extends, which is layered itself.
    ``above``: the files that extend this one."""
    base = _base(own, files, above) if "extends" in own.data else None
    document = own if base is None else strict_yaml.merge(base, own)
    product = npu.layer(document) if base is None or "npu" in own.data else None
    if product is not None:
        under = product if base is None else strict_yaml.merge(base, product)
        document = strict_yaml.merge(under, own)
    data = {key: value for key, value in document.data.items() if key != "extends"}
    return strict_yaml.Document(data, document.places)


def _base(
    child: strict_yaml.Document, files: Mapping[str, Path], above: tuple[Path, ...]
) -> strict_yaml.Document:
    name = child.data["extends"]
    place = child.place(("extends",))
    above = (*above, place.file.absolute())
    if not isinstance(name, str) or name not in files or files[name].absolute() == above[-1]:
        raise place.error(f"extends {name!r}, which is not another target")
    if files[name].absolute() in above:
        raise place.error(f"extends {name!r}, which extends this one")
    return _layered(_read(files[name]), files, above)


def _with_model(document: strict_yaml.Document) -> strict_yaml.Document:
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
    return strict_yaml.Document({**document.data, "simulators": simulators}, document.places)


def _macs(document: strict_yaml.Document, model: Mapping[str, Any]) -> dict[str, int]:
    """The model's NPU has the target's MACs."""
    section = document.data.get("npu")
    return {} if section is None else {model["macs"]: section["macs"]}


def explain(error: ValidationError, document: strict_yaml.Document) -> TargetError:
    """The first of the errors, by line, in the words of the file."""
    found = []
    for item in errors_of(error):
        place = document.place(_in_the_file(item))
        found.append((place, _sentence(item, document)))
    found.sort(key=lambda pair: (str(pair[0].file), pair[0].line))
    place, message = found[0]
    every = [f"{where.file}:{where.line}: {text}" for where, text in found]
    more = f" (and {len(every) - 1} more)" if len(every) > 1 else ""
    return place.error(message + more, hint="\n".join(every[1:]) or None, errors=every)


def _in_the_file(item: ErrorDetails) -> tuple[int | str, ...]:
    first, *rest = item["loc"] or ("",)
    return () if not item["loc"] else ("simulators" if first == "settings" else first, *rest)


def _sentence(item: ErrorDetails, document: strict_yaml.Document) -> str:
    location = _in_the_file(item)
    key = location[-1] if location else ""
    if item["type"] == "missing":
        return f"required key {'.'.join(map(str, location))!r} is missing"
    if is_unknown_key(item):
        return f"unknown key {'.'.join(map(str, location))!r}"
    shown = ".".join(str(part) for part in location if part != "[key]")
    if key == "[key]":
        return f"{shown}: this name is not allowed here ({item['msg']})"
    text = document.place(location).text if location in document.places else None
    if item["type"] == "string_type" and text is not None:
        return f'{shown}: a string is wanted and {text} is not one; write it in quotes: "{text}"'
    said = f" (it is {text})" if text is not None else ""
    message = str(item["msg"]).removeprefix("Value error, ")
    return f"{shown}: {message}{said}" if shown else message
