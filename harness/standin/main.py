"""A model's command line: what it asks for besides a simulation, and what it says to errors."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.errors import HarnessError
from harness.standin.failure import OWN_FAULT, StandinError
from harness.standin.grammar import HELP, parse
from harness.standin.job import qemu_executable, simulate
from harness.standin.parameters import Model, Settings, load_model


def main(name: str, argv: Sequence[str], packages: Path | None = None) -> int:
    """The exit status. ``packages``: where numpy is, when Python would not find it."""
    try:
        model = load_model(name)
        request = parse(argv, model.cpu)
        if "--help" in request.flags:
            _say(f"Usage: {name} [OPTION]... [APPLICATION]\n{HELP}")
            return 0
        if "--version" in request.flags:
            _say(version(model))
            return 0
        settings = Settings(model, request.parameters)
        if "--list-params" in request.flags:
            return _list_parameters(model, request.output)
        return simulate(model, request, settings, packages)
    except (StandinError, HarnessError) as error:
        print(f"Error: {name}: {error}", file=sys.stderr)
        return OWN_FAULT
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OWN_FAULT


def version(model: Model) -> str:
    return (
        f"Stand-in for {model.name} on top of QEMU {_qemu_version()} (machine mps3-an547, "
        f"Cortex-M55) and a functional model of the {model.npu_name}.\n"
        "This is not an Arm model: it has its command line and nothing of its inside.\n"
    )


def _qemu_version() -> str:
    said = subprocess.run(
        [qemu_executable(), "--version"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    found = re.search(r"version (\S+)", said)
    return found[1] if found else "of an unknown version"


def _list_parameters(model: Model, output: Path | None) -> int:
    text = "".join(f"{parameter.listed()}\n" for parameter in model.parameters.values())
    if output is None:
        _say(text)
        return 0
    try:
        output.write_text(text)
    except OSError as error:
        raise StandinError(f"cannot write {output}: {error.strerror}") from error
    return 0


def _say(text: str) -> None:
    print(text, end="", flush=True)
