"""The models and their parameters (``models.json``), and the values of a run."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.formats.cop import MACS
from harness.sim.gdbstub.program import HeapInfo
from harness.suites.standin import StandinError

_DATA = Path(__file__).with_name("models.json")
_TRUE, _FALSE = ("1", "true"), ("0", "false")


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: str  # bool, int, string
    default: str
    effect: str  # what setting it does here
    help: str

    def listed(self) -> str:
        """A line of ``--list-params``, which ``--config-file`` reads back."""
        default = f'"{self.default}"' if self.kind == "string" else self.default
        return f"{self.name}={default}  # ({self.kind}, init-time) {self.help}; here: {self.effect}"


@dataclass(frozen=True)
class Model:
    name: str
    board: str  # prefixes of parameter names
    cpu: str
    npu: str
    npu_name: str
    npu_product: str  # u55, u65, u85
    macs: tuple[int, ...]
    core: str
    vector_parameter: str
    parameters: Mapping[str, Parameter]


def model_names() -> tuple[str, ...]:
    return tuple(_data()["models"])


def load_model(name: str) -> Model:
    data = _data()
    if name not in data["models"]:
        known = ", ".join(data["models"])
        raise StandinError(f"there is no stand-in for {name}; there are {known}")
    own = data["models"][name]
    heap = {f"semihosting_{name}": f"0x{value:x}" for name, value in asdict(HeapInfo()).items()}
    words = {**data["families"][own["family"]], **heap, "macs": own["default_macs"]}
    rows = (p for row in data["parameters"] for p in _expand(row, words, own["family"]))
    product = own["npu_name"].rpartition("-")[2].lower()
    return Model(
        name=name,
        board=words["board"],
        cpu=words["cpu"],
        npu=words["npu"],
        npu_name=own["npu_name"],
        npu_product=product,
        macs=MACS[product],
        core=words["core"],
        vector_parameter=words["vector_parameter"],
        parameters={p.name: p for p in rows},
    )


def _data() -> Any:
    return json.loads(_DATA.read_text())


def _expand(row: list[str], words: Mapping[str, Any], family: str) -> Iterator[Parameter]:
    """One row stands for several parameters: ``uart{0,1}``; a last column names its family."""
    pattern, kind, default, effect, text, *only = row
    if only and family not in only:
        return
    name = re.sub(r"\{([a-z_]+)\}", lambda m: str(words[m[1]]), pattern)
    default = re.sub(r"\{([a-z_]+)\}", lambda m: str(words[m[1]]), default)
    choice = re.search(r"\{([^}]*)\}", name)
    for part in choice[1].split(",") if choice else [""]:
        full = name[: choice.start()] + part + name[choice.end() :] if choice else name
        yield Parameter(full, kind, default, effect, text)


class Settings:
    """The parameters of a run: the given values, and defaults for the rest."""

    def __init__(self, model: Model, given: Mapping[str, str]) -> None:
        self._model = model
        self._given = {name: _checked(model, name, value) for name, value in given.items()}
        self.macs = self.number(f"{model.npu}.num_macs")
        if self.macs not in model.macs:
            allowed = ", ".join(map(str, model.macs))
            raise StandinError(
                f"{model.npu}.num_macs={self.macs}: an {model.npu_name} has {allowed}"
            )

    def text(self, name: str) -> str:
        return self._given.get(name, self._model.parameters[name].default)

    def number(self, name: str) -> int:
        return int(self.text(name), 0)

    def flag(self, name: str) -> bool:
        return self.text(name).lower() in _TRUE

    def ineffective(self) -> Iterator[Parameter]:
        """Parameters that were given a value which this machine does not have."""
        for name, value in self._given.items():
            known = self._model.parameters[name]
            if known.effect == "fixed by the machine" and int(value, 0) != int(known.default, 0):
                yield known


def _checked(model: Model, name: str, value: str) -> str:
    known = model.parameters.get(name)
    if known is None:
        near = difflib.get_close_matches(name, model.parameters, n=1, cutoff=0.7)
        hint = f"; did you mean {near[0]}?" if near else "; --list-params lists the parameters"
        raise StandinError(f"unknown parameter '{name}'{hint}")
    if known.kind == "bool" and value.lower() not in _TRUE + _FALSE:
        raise StandinError(f"parameter '{name}' takes 0 or 1, not '{value}'")
    if known.kind == "int" and not re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|0|[1-9][0-9]*)", value):
        raise StandinError(f"parameter '{name}' takes a number, not '{value}'")
    return value
