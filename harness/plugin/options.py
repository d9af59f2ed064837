"""The options of the plugin: on the command line, in the ini file, in the environment.

Every option is there twice, as ``--hil-NAME`` and as ``hil_NAME`` of the ini file. An unrelated
session pays only for registering them: their values are read when a test asks for a case, or
before, in a session that names one of them or in a repository with settings for hil.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from harness.core.errors import HarnessError, Unknown, UsageError
from harness.firmware.names import firmware_words

if TYPE_CHECKING:
    from harness.config.matrix import CaseSelection
    from harness.export.exporter import ExporterChoice
    from harness.firmware.choice import FirmwareChoice

_ACTIVE: pytest.StashKey[bool] = pytest.StashKey()
_HEADER_SHOWN: pytest.StashKey[bool] = pytest.StashKey()
_CLOSE = 0.75  # difflib's measure of two names of which one is the other's typo


class Option(NamedTuple):
    name: str
    help: str
    choices: tuple[str, ...] = ()
    metavar: str | None = None
    several: bool = False

    @property
    def flag(self) -> str:
        return f"--hil-{self.name}"

    @property
    def ini(self) -> str:
        return f"hil_{self.name.replace('-', '_')}"


OPTIONS = (
    Option(
        "simulator",
        "simulator to run on, one of the target's; auto (default) takes an installed FVP first",
        metavar="NAME",
    ),
    Option(
        "fvp-missing",
        "the result of a case whose FVP is not installed; fail when $CI is set, else skip",
        choices=("fail", "skip"),
    ),
    Option(
        "unproven",
        "the result of a program or a size without an accepted reference; fail when $CI is set, "
        "else note",
        choices=("fail", "note"),
    ),
    Option(
        "allow-new",
        "a model or TARGET/MODEL that may have no accepted reference yet; * stands for anything",
        metavar="NAME",
        several=True,
    ),
    Option(
        "limit-factor",
        "multiply all time limits, for a slow machine (default: the settings' limit_factor)",
        metavar="FACTOR",
    ),
    Option(
        "executorch",
        "a checkout of ExecuTorch, whose own runner is built and put under test",
        metavar="DIR",
    ),
    Option(
        "firmware",
        "whose firmware (default: bundled; executorch with --hil-executorch)",
        choices=firmware_words(),
    ),
    Option(
        "part",
        "a local folder for what the checkout's build would download; may be repeated",
        metavar="NAME=DIR",
        several=True,
    ),
    Option(
        "exporter",
        "who exports: the installed wheel (default), or the checkout of --hil-executorch",
        choices=("wheel", "checkout"),
    ),
    Option(
        "npu-cases",
        "Ethos-U: every model in every memory mode, or a sample of them "
        "(default: all when -m names an Ethos-U, else sample)",
        choices=("all", "sample"),
    ),
)
_BY_NAME = {option.name: option for option in OPTIONS}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("hil", "ExecuTorch on Arm")
    for option in OPTIONS:
        more: dict[str, Any] = {"choices": option.choices} if option.choices else {}
        if option.metavar is not None:
            more["metavar"] = option.metavar
        action = "append" if option.several else "store"
        group.addoption(option.flag, action=action, default=None, help=option.help, **more)
        kind: Any = "args" if option.several else "string"
        parser.addini(option.ini, f"{option.flag} of every session", type=kind, default=None)


def option_value(config: pytest.Config, name: str) -> Any:
    """Return the value of ``--hil-NAME``, or of its twin in the ini file, or None.

    Raises UsageError and Unknown for a value that the option does not take."""
    option = _BY_NAME[name]
    value, source = config.getoption(option.flag), option.flag
    if value is None:
        value, source = config.getini(option.ini) or None, f"{option.ini} of the ini file"
    if value is not None and option.choices and value not in option.choices:
        raise Unknown(f"{source} is {value!r}", str(value), option.choices)
    if value is not None and name == "limit-factor":
        from harness.config.loading import limit_factor

        return limit_factor(value, source)
    return value


@contextmanager
def mistakes_are(kind: type[Exception], place: str = "") -> Iterator[None]:
    """Turn a user's mistake into ``kind``, an error of pytest's."""
    try:
        yield
    except HarnessError as error:
        hint = f"; {error.hint}" if error.hint else ""
        raise kind(f"{place}{error.message}{hint}") from error


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "hil_cases(targets=None, models=None, npu=None): the cases a test runs for; "
        "npu: only those with one, or only those without; a selection of none is an error",
    )
    config.addinivalue_line(
        "markers",
        "hil_expect(*verdicts): the verdicts, such as MISMATCH, that the `hil_run` of a test may "
        "have; without it only PASS",
    )
    with mistakes_are(pytest.UsageError):  # ends the session before it begins
        file = _pin_settings_file(config)
        # whether the session says before its first test that it is for us
        named = any(config.getoption(option.flag) is not None for option in OPTIONS)
        if file is not None or named or config.getoption("markers"):
            activate(config)


def _pin_settings_file(config: pytest.Config) -> Path | None:
    """Make the rootdir's settings hold wherever pytest is called from; return their file."""
    from harness.system.settings import VARIABLE, settings_file

    file = settings_file(config.rootpath)
    if file is not None and file != settings_file():
        os.environ[VARIABLE] = str(file)

        def unpin() -> None:
            os.environ.pop(VARIABLE, None)

        config.add_cleanup(unpin)
    return file


def activate(config: pytest.Config) -> None:
    """Once: the targets' markers exist, and what the session was asked for makes sense.

    Raises HarnessError for a target file, an option or a marker in ``-m`` that does not.
    """
    if config.stash.get(_ACTIVE, False):
        return
    from harness.config.loading import load_targets

    targets = load_targets()
    for marker in sorted({t.marker for t in targets}):
        register_marker(config, marker, ", ".join(t.name for t in targets if t.marker == marker))
    _reject_misspelt_markers(config, {t.marker for t in targets})
    for option in OPTIONS:
        option_value(config, option.name)
    firmware_choice(config)
    exporter_choice(config)
    config.stash[_ACTIVE] = True


def register_marker(config: pytest.Config, marker: str, names: str) -> None:
    """Register a target's marker, unless there is one of its name."""
    if marker not in _markers(config):
        config.addinivalue_line("markers", f"{marker}: cases on {names}")


def _markers(config: pytest.Config) -> set[str]:
    return {re.split(r"[:(]", line)[0].strip() for line in config.getini("markers")}


def _reject_misspelt_markers(config: pytest.Config, markers: set[str]) -> None:
    """Raise UsageError for a typo in ``-m``: it would select no test, and look green.

    A name that resembles no marker of the harness belongs to somebody else."""
    expression = re.sub(r"\([^()]*=[^()]*\)", "", config.option.markexpr or "")
    used = set(re.findall(r"[A-Za-z_]\w*", expression)) - {"and", "or", "not", "True", "False"}
    for name in sorted(used - _markers(config)):
        close = difflib.get_close_matches(name, markers, n=1, cutoff=_CLOSE)
        if close:
            raise UsageError(
                f"-m: no marker is named {name!r}; did you mean {close[0]}?",
                hint="pytest --markers lists them",
            )


def npu_case_selection(config: pytest.Config) -> CaseSelection:
    """How many of the Ethos-U cases there are in this session."""
    from harness.formats.ethosu import PRODUCTS

    requested: CaseSelection | None = option_value(config, "npu-cases")
    products = "|".join(PRODUCTS)
    named = re.search(rf"(?<!not )\b({products})\b", config.option.markexpr or "")
    return requested or ("all" if named else "sample")


def is_strict(config: pytest.Config) -> bool:
    """Whether a result without an accepted reference fails."""
    from harness.system.settings import is_strict as by_default

    policy = option_value(config, "unproven")
    return by_default() if policy is None else policy == "fail"


def simulator_of(config: pytest.Config) -> str:
    return str(option_value(config, "simulator") or "auto")


def firmware_choice(config: pytest.Config) -> FirmwareChoice:
    """Return the firmware that this session tests. Raises as ``choose`` does."""
    from harness.firmware.choice import choose

    root = option_value(config, "executorch")
    parts = option_value(config, "part") or []
    return choose(option_value(config, "firmware"), Path(root) if root else None, parts)


def exporter_choice(config: pytest.Config) -> ExporterChoice:
    """Return the exporter of this session. Raises as ``choose_exporter`` does."""
    from harness.export.exporter import choose_exporter

    root = option_value(config, "executorch")
    return choose_exporter(option_value(config, "exporter"), Path(root) if root else None)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Report once whose firmware and exporter, unless bundled and the wheel's."""
    if not config.stash.get(_ACTIVE, False) or config.stash.get(_HEADER_SHOWN, False):
        return []
    config.stash[_HEADER_SHOWN] = True
    choice = firmware_choice(config)
    lines = []
    if choice.root is not None:
        sources = " and ".join(map(str, choice.sources))
        lines.append(f"hil: firmware: {sources}; ExecuTorch in {choice.root}")
    if (exporter := exporter_choice(config).root) is not None:
        lines.append(f"hil: exporter: the checkout in {exporter}")
    return lines


def pytest_report_collectionfinish(
    config: pytest.Config, items: Sequence[pytest.Item]
) -> list[str]:
    """Return the header of a session that a test activates.

    It names the cases for an Ethos-U that are left out, if there are any."""
    lines = pytest_report_header(config)
    markers = {marker.name for item in items for marker in item.iter_markers()}
    sampled = config.stash.get(_ACTIVE, False) and npu_case_selection(config) != "all"
    if sampled and any(map(_ETHOS_U_MARKER.fullmatch, markers)):
        lines.append(_SAMPLE_NOTE)
    return lines


_ETHOS_U_MARKER = re.compile(r"u\d+")
_SAMPLE_NOTE = (
    "hil: Ethos-U cases are a sample: all models in the default memory mode, one in one mode "
    "of each other placement and on each other MAC count; all with --hil-npu-cases=all or -m u85"
)
