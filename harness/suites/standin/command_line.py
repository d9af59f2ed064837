"""The models' command line: the options of public scripts and of the models' own help, the models
and their parameters (``models.json``), and the parameters' values in a run."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from harness.formats.ethosu import MACS
from harness.sim.gdbstub.program import HeapInfo
from harness.suites.standin import StandinError

_DATA = Path(__file__).with_name("models.json")
_TRUE, _FALSE = ("1", "true"), ("0", "false")
_VALUED = {
    "-a": "--application",
    "-C": "--parameter",
    "-f": "--config-file",
    "-o": "--output",
    "--data": "--data",
    "--timelimit": "--timelimit",
    "--simlimit": "--simlimit",
    "--cpulimit": "--cpulimit",
    "--cyclelimit": "--cyclelimit",
}
_FLAGS = {
    "-q": "--quiet",
    "-l": "--list-params",
    "-h": "--help",
    "-V": "--version",
    "--stat": "--stat",
    "-K": "--keep-console",
    "-R": "--run",
}
_LIMITS = ("--timelimit", "--simlimit", "--cpulimit", "--cyclelimit")
_REFUSED = {
    option: f"{option}: there is no debug server"
    for option in ("-S", "--cadi-server", "-I", "--iris-server", "-i", "--iris-log", "-L", "-s")
}

HELP = """\
  [APPLICATION], -a, --application [INST=]ELF   the program to run
  -C, --parameter NAME=VALUE    set a parameter; -l lists them
  -f, --config-file FILE        a file of NAME=VALUE lines
      --data [INST=]FILE@ADDR   raw bytes into memory
      --timelimit N             seconds of wall time
      --cpulimit N              seconds of host CPU time
      --simlimit N              seconds of simulated time (1 instruction takes 32 ns)
      --cyclelimit N            instructions, in steps of 10 ms of simulated time
  -q, --quiet                   no informational lines
      --stat                    times at the end
  -l, --list-params             list the parameters, into FILE with -o FILE
      --version, -h, --help
"""


@dataclass(frozen=True)
class LoadedData:
    file: Path
    address: int


@dataclass(frozen=True)
class Request:
    """A parsed command line; parameter names are not checked yet."""

    applications: tuple[Path, ...] = ()
    data: tuple[LoadedData, ...] = ()
    parameters: dict[str, str] = field(default_factory=dict)
    limits: dict[str, float] = field(default_factory=dict)
    output: Path | None = None
    flags: frozenset[str] = frozenset()


def parse(argv: Sequence[str], cpu: str) -> Request:
    """``cpu`` is the core's instance name, which ``-a`` and ``--data`` may name."""
    applications, data, flags = [], [], set()
    parameters: dict[str, str] = {}
    limits: dict[str, float] = {}
    output = None
    for option, value in _options(argv):
        if option == "--application":
            applications.append(Path(_for_core(value, cpu)))
        elif option == "--parameter":
            parameters.update([_assignment(value)])
        elif option == "--config-file":
            parameters.update(_config_file(Path(value)))
        elif option == "--data":
            data.append(_loaded_data(value, cpu))
        elif option in _LIMITS:
            limits[option] = _seconds(option, value)
        elif option == "--output":
            output = Path(value)
        else:
            flags.add(option)
    return Request(tuple(applications), tuple(data), parameters, limits, output, frozenset(flags))


def _options(argv: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs of long option and value: ``-C x``, ``-Cx``, ``--data x``, ``--data=x``."""
    words = iter(argv)
    for word in words:
        name, equals, attached = word.partition("=")
        if not word.startswith("-") or word == "-":
            yield "--application", word
            continue
        if not word.startswith("--"):
            name, attached, equals = word[:2], word[2:].removeprefix("="), word[2:]
        if name in _REFUSED:
            raise StandinError(_REFUSED[name])
        if (flag := _FLAGS.get(name, name)) in _FLAGS.values():
            if equals:
                raise StandinError(f"option {name} takes no value: {word}")
            yield flag, ""
            continue
        option = _VALUED.get(name, name)
        if option not in _VALUED.values():
            raise StandinError(f"unrecognised option '{word}'; --help lists the options")
        value = attached if equals else next(words, None)
        if value is None:
            raise StandinError(f"option {name} needs a value")
        yield option, value


def _for_core(value: str, cpu: str) -> str:
    """The file of ``cpu0=FILE``, ``cpu0*=FILE`` or ``FILE``."""
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


def _config_file(path: Path) -> Iterator[tuple[str, str]]:
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError as error:
        raise StandinError(f"cannot read config file {path}: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        text = re.sub(r"(^|\s)#.*", "", line).strip()
        if text:
            try:
                yield _assignment(text)
            except StandinError as error:
                raise StandinError(f"{path}:{number}: {error}") from error


def _loaded_data(value: str, cpu: str) -> LoadedData:
    file, at, address = _for_core(value, cpu).rpartition("@")
    memory_space, _, number = address.rpartition(":")
    if not at or not file or memory_space not in ("", "S", "NS", "Secure", "Normal"):
        raise StandinError(f"--data takes FILE@ADDRESS, not '{value}'")
    try:
        return LoadedData(Path(file.strip('"')), int(number, 0))
    except ValueError as error:
        raise StandinError(f"--data {value}: '{number}' is not an address") from error


def _seconds(option: str, value: str) -> float:
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
