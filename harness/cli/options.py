"""Options of more than one verb. Those of firmware and exporter give the verb one object each."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from harness.cli.verb import PATH
from harness.config.known import require_known_defect
from harness.config.loading import limit_factor
from harness.core.errors import UsageError
from harness.export.exporter import ExporterSource, choose_exporter
from harness.firmware.choice import choose
from harness.firmware.names import firmware_words
from harness.sim.simulator import AUTO

_Verb = TypeVar("_Verb", bound=Callable[..., Any])


def read_by(read: Callable[[Any], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Return the callback of an option whose value ``read`` takes or refuses."""

    def callback(_context: click.Context, _option: click.Parameter, value: Any) -> Any:
        try:
            return None if value is None else read(value)
        except (ValueError, UsageError) as error:
            raise click.BadParameter(str(error)) from error

    return callback


limit_factor_option = click.option(
    "--limit-factor",
    callback=read_by(limit_factor),
    metavar="FACTOR",
    help="Multiply all time limits, for a slow machine, by up to 1000 (default: limit_factor of "
    "the settings).",
)
tolerance_option = click.option(
    "--tolerance",
    "tolerance_lsb",
    type=float,
    metavar="LSB",
    help="Accept outputs that are off by up to this many steps of their scale, 16 at most; every "
    "report says so. Default: tolerance_lsb of the budgets in the model's or the target's YAML "
    "file, else 0. In CI only those count: the option may be stricter, not laxer.",
)


known_defect_option = click.option(
    "--accept-known-defect",
    "accept_known_defects",
    multiple=True,
    metavar="NAME",
    callback=read_by(lambda names: tuple(map(require_known_defect, names))),
    help="Let outputs that are right pass, though ExecuTorch's own are known to be wrong, or "
    "refused; the report says so. May be repeated, also as accept_known_defects of the budgets.",
)
allow_new_option = click.option(
    "--allow-new",
    multiple=True,
    metavar="NAME",
    help="A model or TARGET/MODEL that may have no reference yet; * stands for anything.",
)
simulator_option = click.option(
    "--simulator",
    default=AUTO,
    show_default=True,
    help="One of the target's simulators; auto takes an installed FVP first. Two, as board+qemu, "
    "are compared: which outputs differ, and at which operator first (`hil run`).",
)
executorch_option = click.option(
    "--executorch",
    type=PATH,
    metavar="DIR",
    help="A checkout of ExecuTorch whose own runner, kernels and drivers are built and put "
    "under test. $EXECUTORCH_ROOT and `executorch` of [tool.hil] in pyproject.toml also "
    "name one, for --firmware.",
)
part_option = click.option(
    "--part",
    "parts",
    multiple=True,
    metavar="NAME=DIR",
    help="A local folder for what the checkout's build would download; may be repeated, "
    "also as `parts` of the settings.",
)
_firmware_option = click.option(
    "--firmware",
    "word",
    type=click.Choice(firmware_words()),
    help="The firmware to test (default: bundled; executorch with --executorch). wheel: the "
    "runtime and kernels of ExecuTorch's AArch64 wheel, for targets with Linux; both: bundled and "
    "executorch.",
)


def firmware_options(function: _Verb) -> _Verb:
    """Give a command the options of the firmware, as ``firmware``, a FirmwareChoice."""

    @functools.wraps(function)
    def wrapped(
        *args: Any, executorch: Path | None, word: str | None, parts: tuple[str, ...], **kwargs: Any
    ) -> Any:
        return function(*args, firmware=choose(word, executorch, parts), **kwargs)

    return executorch_option(_firmware_option(part_option(wrapped)))  # type: ignore[return-value]


def exporter_option(function: _Verb) -> _Verb:
    """Give a command the option of the exporter, as ``exporter``, an ExporterChoice.

    Stands above ``firmware_options``, whose ``--executorch`` it looks at."""

    @click.option(
        "--exporter",
        type=click.Choice([source.value for source in ExporterSource]),
        help="The exporter: the installed wheel, or the Python of the checkout that --executorch "
        "names. Default: the wheel; of a program that the checkout under test does not fit, the "
        "checkout.",
    )
    @functools.wraps(function)
    def wrapped(*args: Any, exporter: str | None, executorch: Path | None, **kwargs: Any) -> Any:
        choice = choose_exporter(exporter, executorch)
        return function(*args, exporter=choice, executorch=executorch, **kwargs)

    return wrapped  # type: ignore[return-value]
