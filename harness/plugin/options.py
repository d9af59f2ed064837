"""What a session is asked for: command line, ini file, environment; and when we take part in it.

Every option is there twice, as ``--hil-NAME`` and as ``hil_NAME`` of the ini file. Nothing but
their names costs an unrelated session anything: what they ask for is read when a test asks for a
case, or before, in a session that names one of them or in a repository that has settings of ours.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from harness.core.errors import HarnessError, Unknown, UsageError
from harness.firmware.source import firmware_words

if TYPE_CHECKING:
    from harness.config.matrix import Extent
    from harness.export.exporter import ExporterChoice
    from harness.firmware.source import FirmwareChoice

_ACTIVE: pytest.StashKey[bool] = pytest.StashKey()
_TOLD: pytest.StashKey[bool] = pytest.StashKey()
_CLOSE = 0.75  # difflib's measure of two names of which one is the other's typo


class _Option(NamedTuple):
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
    _Option(
        "simulator",
        "simulator to run on, one of the target's; auto (default) takes an installed FVP first",
        metavar="NAME",
    ),
    _Option(
        "fvp-missing",
        "what a case is whose FVP is not installed; fail when $CI is set, else skip",
        choices=("fail", "skip"),
    ),
    _Option(
        "unproven",
        "what a program or a size is that no accepted reference stands behind; fail when $CI is "
        "set, else note",
        choices=("fail", "note"),
    ),
    _Option(
        "allow-new",
        "a model or TARGET/MODEL whose size may have no reference yet; * stands for anything",
        metavar="NAME",
        several=True,
    ),
    _Option(
        "limit-factor",
        "multiply all time limits, for a slow machine (default: the settings' limit_factor)",
        metavar="FACTOR",
    ),
    _Option(
        "executorch",
        "a checkout of ExecuTorch, whose own runner is built and put under test",
        metavar="DIR",
    ),
    _Option(
        "firmware",
        "whose firmware (default: bundled; executorch with --hil-executorch)",
        choices=firmware_words(),
    ),
    _Option(
        "part",
        "a local folder for what the checkout's build would download; may be repeated",
        metavar="NAME=DIR",
        several=True,
    ),
    _Option(
        "exporter",
        "who exports: the installed wheel (default), or the checkout of --hil-executorch",
        choices=("wheel", "checkout"),
    ),
    _Option(
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
        if option.name == "limit-factor":
            more["type"] = _factor
        if option.metavar is not None:
            more["metavar"] = option.metavar
        action = "append" if option.several else "store"
        group.addoption(option.flag, action=action, default=None, help=option.help, **more)
        kind: Any = "args" if option.several else "string"
        parser.addini(option.ini, f"{option.flag} of every session", type=kind, default=None)


def _factor(text: str) -> float:
    from harness.config.loading import limit_factor

    try:
        return limit_factor(text)
    except HarnessError as error:
        raise argparse.ArgumentTypeError(error.message) from error


def asked(config: pytest.Config, name: str) -> Any:
    """The value of ``--hil-NAME``, or of its twin in the ini file; None when neither is there.

    Raises UsageError and Unknown for a value in the ini file that is none.
    """
    option = _BY_NAME[name]
    value = config.getoption(option.flag)
    if value is not None:
        return value
    value = config.getini(option.ini) or None
    if value is not None and option.choices and value not in option.choices:
        raise Unknown(f"{option.ini} of the ini file is {value!r}", str(value), option.choices)
    if value is not None and name == "limit-factor":
        from harness.config.loading import limit_factor

        return limit_factor(value, f"{option.ini} of the ini file")
    return value


@contextmanager
def _usage_errors() -> Iterator[None]:
    """What the user wrote wrong ends the session before it begins."""
    try:
        yield
    except HarnessError as error:
        hint = f"; {error.hint}" if error.hint else ""
        raise pytest.UsageError(error.message + hint) from error


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
    with _usage_errors():
        file = _settings_of(config)
        if file is not None or _asked_for_us(config):
            activate(config)


def _settings_of(config: pytest.Config) -> Path | None:
    """The settings that hold at the session's rootdir, which then hold for all of the session: an
    IDE calls pytest from a folder of its choice."""
    from harness.system.settings import VARIABLE, settings_file

    file = settings_file(config.rootpath)
    if file is not None and file != settings_file():
        os.environ[VARIABLE] = str(file)
        config.add_cleanup(_forget)
    return file


def _forget() -> None:
    from harness.system.settings import VARIABLE

    os.environ.pop(VARIABLE, None)


def _asked_for_us(config: pytest.Config) -> bool:
    """Whether the command line says before the first test that the session is for us."""
    return bool(config.getoption("markers")) or any(
        config.getoption(option.flag) is not None for option in OPTIONS
    )


def activate(config: pytest.Config) -> None:
    """Once: the targets' markers exist, and what the session was asked for makes sense.

    Raises HarnessError for a target file, an option or a marker in ``-m`` that does not.
    """
    if config.stash.get(_ACTIVE, False):
        return
    from harness.config.loading import load_targets

    targets = load_targets()
    for marker in sorted({t.marker for t in targets}):
        register(config, marker, ", ".join(t.name for t in targets if t.marker == marker))
    _refuse_misspelt(config, {t.marker for t in targets})
    for option in OPTIONS:
        asked(config, option.name)
    firmware_choice(config)
    exporter_choice(config)
    config.stash[_ACTIVE] = True


def register(config: pytest.Config, marker: str, names: str) -> None:
    """A target's marker, unless there is one of its name."""
    if marker not in _markers(config):
        config.addinivalue_line("markers", f"{marker}: cases on {names}")


def _markers(config: pytest.Config) -> set[str]:
    return {re.split(r"[:(]", line)[0].strip() for line in config.getini("markers")}


def _refuse_misspelt(config: pytest.Config, markers: set[str]) -> None:
    """A typo in ``-m`` selects nothing, and a run of nothing looks green in many a script. A name
    that is like none of ours is somebody else's."""
    expression = re.sub(r"\([^()]*=[^()]*\)", "", config.option.markexpr or "")
    used = set(re.findall(r"[A-Za-z_]\w*", expression)) - {"and", "or", "not", "True", "False"}
    for name in sorted(used - _markers(config)):
        close = difflib.get_close_matches(name, markers, n=1, cutoff=_CLOSE)
        if close:
            raise UsageError(
                f"-m: no marker is named {name!r}; did you mean {close[0]}?",
                hint="pytest --markers lists them",
            )


def npu_cases(config: pytest.Config) -> Extent:
    """How many of the Ethos-U cases there are in this session."""
    from harness.formats.cop import PRODUCTS

    said: Extent | None = asked(config, "npu-cases")
    products = "|".join(PRODUCTS)
    named = re.search(rf"(?<!not )\b({products})\b", config.option.markexpr or "")
    return said or ("all" if named else "sample")


def is_strict(config: pytest.Config) -> bool:
    """Whether what no accepted reference stands behind fails."""
    from harness.system.settings import is_strict as by_default

    said = asked(config, "unproven")
    return by_default() if said is None else said == "fail"


def simulator_of(config: pytest.Config) -> str:
    return str(asked(config, "simulator") or "auto")


def firmware_choice(config: pytest.Config) -> FirmwareChoice:
    """Whose firmware this session puts under test. Raises as ``choose`` does."""
    from harness.firmware.source import choose

    root = asked(config, "executorch")
    parts = asked(config, "part") or []
    return choose(asked(config, "firmware"), Path(root) if root else None, parts)


def exporter_choice(config: pytest.Config) -> ExporterChoice:
    """Who exports in this session. Raises as ``choose_exporter`` does."""
    from harness.export.exporter import choose_exporter

    root = asked(config, "executorch")
    return choose_exporter(asked(config, "exporter"), Path(root) if root else None)


def pytest_report_header(config: pytest.Config) -> list[str]:
    return _told_once(config)


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    return _told_once(config)


def _told_once(config: pytest.Config) -> list[str]:
    """Whose firmware, unless it is ours; and what is left out, with how to get it. As soon as the
    session is known to be for us."""
    if not config.stash.get(_ACTIVE, False) or config.stash.get(_TOLD, False):
        return []
    config.stash[_TOLD] = True
    choice = firmware_choice(config)
    said = []
    if choice.root is not None:
        sources = " and ".join(map(str, choice.sources))
        said.append(f"hil: firmware: {sources}; ExecuTorch in {choice.root}")
    if (exporter := exporter_choice(config).root) is not None:
        said.append(f"hil: exporter: the checkout in {exporter}")
    if npu_cases(config) != "all":
        said.append(_SAMPLE)
    return said


_SAMPLE = (
    "hil: Ethos-U cases are a sample: all models in the default memory mode, one in one mode "
    "of each other placement and on each other MAC count; all with --hil-npu-cases=all or -m u85"
)
