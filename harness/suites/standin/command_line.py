"""The models' command line: the options of public scripts and of the models' own help, the models
and their parameters (``models.json``), and the parameters' values in a run."""

from __future__ import annotations

import argparse
import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from harness.formats.ethosu import MACS
from harness.sim.gdbstub.host_calls import HeapInfo
from harness.suites.standin import StandinError
from harness.system.files import read_regular

_DATA = Path(__file__).with_name("models.json")
_TRUE, _FALSE = ("1", "true"), ("0", "false")
_FLAGS = (
    ("-q", "--quiet", "no informational lines"),
    ("-l", "--list-params", "list the parameters, into FILE with -o FILE"),
    ("-V", "--version", "what this is"),
    ("--stat", "times at the end"),
    ("-K", "--keep-console", "no effect"),
    ("-R", "--run", "no effect"),
)
_LIMITS = {
    "--timelimit": "seconds of wall time",
    "--cpulimit": "seconds of host CPU time",
    "--simlimit": "seconds of simulated time (1 instruction takes 32 ns)",
    "--cyclelimit": "instructions, in steps of 10 ms of simulated time",
}


@dataclass(frozen=True)
class LoadedData:
    file: Path
    address: int


@dataclass(frozen=True)
class Request:
    """A parsed command line; parameter names are not checked yet."""

    applications: tuple[Path, ...]
    data: tuple[LoadedData, ...]
    parameters: dict[str, str]
    limits: dict[str, float]  # by option, in its unit
    output: Path | None
    flags: frozenset[str]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise StandinError(f"{message}; --help lists the options")


def parse(argv: Sequence[str], name: str, cpu: str) -> Request:
    """``name``: the model's. ``cpu``: its core's instance name, which ``-a`` and ``--data`` may
    name. Raises StandinError; SystemExit after ``--help``."""
    given = vars(_parser(name, cpu).parse_intermixed_args(argv))
    flags = (words[-2] for words in _FLAGS)
    return Request(
        applications=(*given["application"], *given["APPLICATION"]),
        data=tuple(given["data"]),
        parameters=dict(pair for pairs in given["parameters"] for pair in pairs),
        limits={limit: given[limit] for limit in _LIMITS if given[limit] is not None},
        output=given["output"],
        flags=frozenset(flag for flag in flags if given[flag]),
    )


def _parser(name: str, cpu: str) -> _Parser:
    parser = _Parser(name, allow_abbrev=False)
    add = parser.add_argument
    elf, data = lambda word: Path(_for_core(word, cpu)), partial(_loaded_data, cpu=cpu)
    several: Any = {"action": "append", "default": []}
    parameters: Any = {**several, "dest": "parameters"}
    add("APPLICATION", nargs="*", type=elf, help="the program to run")
    add("-a", "--application", metavar="[INST=]ELF", type=elf, **several)
    text, one = "set a parameter; -l lists them", lambda word: [_assignment(word)]
    add("-C", "--parameter", metavar="NAME=VALUE", type=one, help=text, **parameters)
    text = "a file of NAME=VALUE lines"
    add("-f", "--config-file", metavar="FILE", type=_config_file, help=text, **parameters)
    text = "raw bytes into memory"
    add("--data", metavar="[INST=]FILE@ADDR", type=data, help=text, **several)
    add("-o", "--output", metavar="FILE", type=Path)
    for limit, text in _LIMITS.items():
        add(limit, dest=limit, metavar="N", type=partial(_amount, limit), help=text)
    for *names, text in _FLAGS:
        add(*names, dest=names[-1], action="store_true", help=text)
    return parser


def _for_core(value: str, cpu: str) -> str:
    """The file in ``cpu0=FILE``, ``cpu0*=FILE`` or ``FILE``."""
    instance, equals, file = value.partition("=")
    if not equals or "/" in instance:
        return value
    if not fnmatchcase(cpu, instance):
        raise StandinError(f"there is no core '{instance}' in this model; it has {cpu}")
    return file


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise StandinError(f"a parameter is set as NAME=VALUE, not '{text}'")
    return name.strip(), _unquoted(value.strip())


def _unquoted(value: str) -> str:
    """Models drop quotes around a value; scripts without a shell rely on it."""
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1]
    return value


def _config_file(path: str) -> list[tuple[str, str]]:
    lines = read_regular(Path(path)).decode("utf-8", "replace").splitlines()
    assignments = []
    for number, line in enumerate(lines, 1):
        if text := re.sub(r"(^|\s)#.*", "", line).strip():
            try:
                assignments.append(_assignment(text))
            except StandinError as error:
                raise StandinError(f"{path}:{number}: {error}") from error
    return assignments


def _loaded_data(value: str, cpu: str) -> LoadedData:
    file, at, address = _for_core(value, cpu).rpartition("@")
    memory_space, _, number = address.rpartition(":")
    if not at or not file or memory_space not in ("", "S", "NS", "Secure", "Normal"):
        raise StandinError(f"--data takes FILE@ADDRESS, not '{value}'")
    try:
        return LoadedData(Path(file.strip('"')), int(number, 0))
    except ValueError as error:
        raise StandinError(f"--data {value}: '{number}' is not an address") from error


def _amount(option: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = -1
    if not 0 <= number < 1e12:
        raise StandinError(f"{option} takes a number that is not negative, not '{value}'")
    return number


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: str  # bool, int, string
    default: str
    effect: str  # the effect of setting it here
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


def load_fvp_model(name: str) -> Model:
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
        npu_name=own["npu_name"],
        npu_product=product,
        macs=MACS[product],
        parameters={p.name: p for p in rows},
        **{n: words[n] for n in ("board", "cpu", "npu", "core", "vector_parameter")},
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


class FvpParameters:
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
        """Parameters with a requested value that this machine does not have."""
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
