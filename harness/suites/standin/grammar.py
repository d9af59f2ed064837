"""Parses the models' command line: the options of public scripts and of the models' own help."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from harness.suites.standin import StandinError

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
            data.append(_data(value, cpu))
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


def _data(value: str, cpu: str) -> LoadedData:
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
        raise StandinError(f"{option} takes a positive number, not '{value}'")
    return number
