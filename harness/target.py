"""targets/*.yaml -> Target: a target is data, checked strictly and without behaviour.

What a file says wrong is a TargetError that starts with ``file:line:``.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from harness import paths, strict_yaml
from harness.errors import TargetError, UsageError
from harness.footprint.budget import Budgets
from harness.fvp_model import Fvp, Text, load_model

Identifier = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
CMakeName = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]
CMakeValue = Annotated[str, Field(pattern=r"^[^\x00-\x1f;]*$")]
RegionName = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]
Address = Annotated[int, Field(ge=0, le=0xFFFF_FFFF)]
Bytes = Annotated[int, Field(gt=0, le=0x1_0000_0000)]
Seconds = Annotated[float, Field(gt=0, lt=1e6)]
SimulatorName = Literal["fvp", "qemu", "host"]


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Region(_Data):
    """A stretch of memory the linker may use, at the address the program uses for it."""

    name: RegionName
    origin: Address
    size: Bytes

    @property
    def end(self) -> int:
        return self.origin + self.size


class Limits(_Data):
    """What bounds a run. ``model`` and ``simulated`` are the simulator's own limits."""

    host: Seconds  # wall time, enforced by the harness
    stall: Seconds  # no console byte and no CPU time used
    model: Seconds | None = None  # wall time, enforced by the FVP (--timelimit)
    simulated: Seconds | None = None  # time inside the model (--simlimit)
    cycles: Annotated[int, Field(gt=0)] | None = None  # of the model (--cyclelimit)
    factor: Annotated[float, Field(gt=0, le=1000)] = 1.0  # this target's own multiplier

    def scaled(self, factor: float) -> Limits:
        """All limits times ``factor`` and the target's own factor, which is then used up."""
        by = factor * self.factor

        def times(value: float | None) -> float | None:
            return None if value is None else value * by

        return Limits(
            host=self.host * by,
            stall=self.stall * by,
            model=times(self.model),
            simulated=times(self.simulated),
            cycles=None if self.cycles is None else max(1, round(self.cycles * by)),
        )


class Variant(_Data):
    """A way to build the same target: CMake options laid over the target's, and the
    environment that a program built so wants at run time."""

    description: Text
    cmake: dict[CMakeName, CMakeValue] = {}
    environment: dict[str, str] = {}


class Qemu(_Data):
    executable: Text
    machine: Text
    arguments: tuple[Text, ...] = ()
    memory: Text | None = None


class Host(_Data):
    """The machine we are on. It has no settings."""


class Zephyr(_Data):
    board: Text  # as `west build -b` takes it


class Simulators(_Data):
    auto: tuple[SimulatorName, ...] = Field(min_length=1)  # the first that is installed
    fvp: Fvp | None = None
    qemu: Qemu | None = None
    host: Host | None = None

    @property
    def names(self) -> tuple[SimulatorName, ...]:
        every: tuple[SimulatorName, ...] = ("fvp", "qemu", "host")
        return tuple(name for name in every if getattr(self, name) is not None)

    @model_validator(mode="after")
    def _auto_names_what_exists(self) -> Simulators:
        missing = [name for name in self.auto if name not in self.names]
        if missing:
            raise ValueError(f"`auto` names {missing[0]!r}, which is not described here")
        return self


class Target(_Data):
    name: str
    file: Path
    description: Text
    marker: Identifier
    compile_target: Text  # the exporter's name
    port: Literal["cortex_m", "host", "zephyr"]
    zephyr: Zephyr | None = None  # for the port of that name
    cpu: Text
    toolchain: Literal["arm-none-eabi-gcc", "gcc"]
    cmake: dict[CMakeName, CMakeValue] = {}
    variants: dict[Identifier, Variant] = Field(min_length=1)  # the first is the default
    memory: tuple[Region, ...] = ()
    pools: dict[Identifier, Bytes] = {}  # bytes the runner reserves, by pool
    budgets: Budgets = Budgets()
    limits: Limits
    settings: Simulators = Field(alias="simulators")

    @model_validator(mode="after")
    def _zephyr_has_a_board(self) -> Target:
        if (self.port == "zephyr") != (self.zephyr is not None):
            raise ValueError("`port: zephyr` and the section `zephyr` go together")
        return self

    @field_validator("memory")
    @classmethod
    def _regions_are_apart(cls, regions: tuple[Region, ...]) -> tuple[Region, ...]:
        names = [region.name for region in regions]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(f"two regions are called {min(twice)}")
        ordered = sorted(regions, key=lambda region: region.origin)
        for low, high in pairwise(ordered):
            if low.end > high.origin:
                raise ValueError(f"{low.name} (ends at 0x{low.end:x}) overlaps {high.name}")
        if ordered and ordered[-1].end > 1 << 32:
            raise ValueError(f"{ordered[-1].name} reaches beyond 32 bits")
        return regions

    @property
    def simulators(self) -> tuple[SimulatorName, ...]:
        """The names of the simulators this target can run on."""
        return self.settings.names

    @property
    def default_variant(self) -> str:
        return next(iter(self.variants))

    def variant(self, name: str | None) -> Variant:
        """Raises UsageError for a variant the target does not have."""
        name = name or self.default_variant
        if name not in self.variants:
            raise UsageError(
                f"target {self.name} has no variant {name!r}",
                hint="it has: " + ", ".join(self.variants),
                variant=name,
                known=list(self.variants),
            )
        return self.variants[name]


def global_factor(environ: Mapping[str, str] = os.environ) -> float:
    """``$HIL_LIMIT_FACTOR``, by which all limits of all targets are multiplied; 1 without."""
    said = environ.get("HIL_LIMIT_FACTOR", "1")
    try:
        factor = float(said)
    except ValueError:
        factor = 0.0
    if not 0 < factor <= 1000:
        raise UsageError(f"HIL_LIMIT_FACTOR is {said!r}, not a number above 0 and up to 1000")
    return factor


def target_directories(environ: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """The project's ``targets`` and the directories in ``$HIL_TARGETS``."""
    extra = environ.get("HIL_TARGETS", "").split(os.pathsep)
    return (paths.project_root() / "targets", *(Path(item).absolute() for item in extra if item))


def target_files(directories: tuple[Path, ...] | None = None) -> dict[str, Path]:
    """Every target file by target name. Two files of one name are a TargetError."""
    found: dict[str, Path] = {}
    for directory in directories or target_directories():
        if not directory.is_dir():
            raise UsageError(f"{directory} is not a directory of targets", path=str(directory))
        for path in sorted(directory.glob("*.yaml")):
            if path.stem in found and found[path.stem] != path:
                raise strict_yaml.Place(path, 1).error(
                    f"there is another target {path.stem!r}: {found[path.stem]}",
                    hint="give it another name; `extends` takes over the rest",
                )
            found[path.stem] = path
    return found


def load_targets(directories: tuple[Path, ...] | None = None) -> tuple[Target, ...]:
    """All targets, in the order of their names."""
    files = target_files(directories)
    return tuple(_load(files[name], files) for name in sorted(files))


def load_target(name: str, directories: tuple[Path, ...] | None = None) -> Target:
    """One target, by name or by the path of its ``.yaml``."""
    files = target_files(directories)
    if name in files:
        return _load(files[name], files)
    path = Path(name)
    if path.suffix == ".yaml":
        if not path.is_file():
            raise UsageError(f"there is no target file {name}", target=name)
        siblings = {p.stem: p for p in path.absolute().parent.glob("*.yaml")}
        return _load(path, {**files, **siblings})
    close = difflib.get_close_matches(name, files, n=3, cutoff=0.5)
    raise UsageError(
        f"unknown target {name!r}",
        hint=f"did you mean {' or '.join(close)}?" if close else "known: " + ", ".join(files),
        target=name,
        close=close,
        known=sorted(files),
    )


def _load(path: Path, files: Mapping[str, Path]) -> Target:
    document = strict_yaml.read(path)
    if "extends" in document.data:
        document = _extended(document, files)
    document = _with_model(document)
    for reserved in ("name", "file"):
        if reserved in document.data:
            raise document.place((reserved,)).error(
                f"unknown key {reserved!r}: a target is named after its file", key=reserved
            )
    try:
        return Target.model_validate({**document.data, "name": path.stem, "file": path.absolute()})
    except ValidationError as error:
        raise _explain(error, document) from error


def _extended(child: strict_yaml.Document, files: Mapping[str, Path]) -> strict_yaml.Document:
    name = child.data["extends"]
    place = child.place(("extends",))
    if name not in files or files[name].absolute() == place.file.absolute():
        raise place.error(f"extends {name!r}, which is not another target", known=sorted(files))
    base = strict_yaml.read(files[name])
    if "extends" in base.data:
        raise place.error(
            f"extends {name!r}, which itself extends {base.data['extends']!r}; "
            "one level is all there is"
        )
    merged = strict_yaml.merge(base, child)
    return strict_yaml.Document(
        {key: value for key, value in merged.data.items() if key != "extends"}, merged.places
    )


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
        "parameters": {**model.get("parameters", {}), **settings.get("parameters", {})},
    }
    simulators = {**document.data["simulators"], "fvp": filled}
    return strict_yaml.Document({**document.data, "simulators": simulators}, document.places)


def _explain(error: ValidationError, document: strict_yaml.Document) -> TargetError:
    """The first of the errors, by line, in the words of the file."""
    found = []
    for item in error.errors(include_url=False):
        place = document.place(tuple(item["loc"]))
        found.append((place, _sentence(item, document)))
    found.sort(key=lambda pair: (str(pair[0].file), pair[0].line))
    place, message = found[0]
    every = [f"{where.file}:{where.line}: {text}" for where, text in found]
    more = f" (and {len(every) - 1} more)" if len(every) > 1 else ""
    return place.error(message + more, hint="\n".join(every[1:]) or None, errors=every)


def _sentence(item: Any, document: strict_yaml.Document) -> str:
    location = tuple(item["loc"])
    key = location[-1] if location else ""
    if item["type"] == "missing":
        return f"required key {'.'.join(map(str, location))!r} is missing"
    if item["type"] == "extra_forbidden":
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
