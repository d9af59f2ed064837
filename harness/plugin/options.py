"""What a session is asked for: command line, markers, and the header that repeats it."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.errors import HarnessError

if TYPE_CHECKING:
    from harness.build.choice import FirmwareChoice
    from harness.case.matrix import Extent
    from harness.export.checkout.choice import ExporterChoice


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("hil", "ExecuTorch on Arm")
    group.addoption(
        "--simulator",
        default="auto",
        help="simulator to run on, one of the target's; auto takes an installed FVP first",
    )
    group.addoption(
        "--fvp-missing",
        choices=("fail", "skip"),
        help="what a case is whose FVP is not installed; fail when $CI is set, else skip",
    )
    group.addoption(
        "--limit-factor",
        type=_factor,
        help="multiply all time limits, for a slow machine (default: $HIL_LIMIT_FACTOR or 1)",
    )
    group.addoption(
        "--executorch",
        metavar="DIR",
        help="a checkout of ExecuTorch, whose own runner is built and put under test",
    )
    group.addoption(
        "--firmware",
        choices=("bundled", "executorch", "both"),
        help="whose firmware (default: bundled; executorch with --executorch)",
    )
    group.addoption(
        "--part",
        action="append",
        default=[],
        metavar="NAME=DIR",
        help="a local folder for what the checkout's build would download; may be repeated",
    )
    group.addoption(
        "--exporter",
        choices=("wheel", "checkout"),
        help="who exports: the installed wheel (default), or the checkout of --executorch",
    )
    group.addoption(
        "--npu-cases",
        choices=("all", "sample"),
        help="Ethos-U: every model in every memory mode, or a sample of them "
        "(default: all when -m names an Ethos-U, else sample)",
    )


def _factor(said: str) -> float:
    from harness.target.loading import limit_factor

    try:
        return limit_factor(said)
    except HarnessError as error:
        raise argparse.ArgumentTypeError(error.message) from error


@contextmanager
def _usage_errors() -> Iterator[None]:
    """What the user wrote wrong ends the session before it begins."""
    try:
        yield
    except HarnessError as error:
        hint = f"; {error.hint}" if error.hint else ""
        raise pytest.UsageError(error.message + hint) from error


def pytest_configure(config: pytest.Config) -> None:
    from harness.target.loading import global_factor, load_targets

    with _usage_errors():
        global_factor()
        targets = load_targets()
    config.addinivalue_line(
        "markers",
        "hil_cases(targets=None, models=None, npu=None): the cases a test runs for; "
        "npu: only those with one, or only those without; a selection of none is an error",
    )
    config.addinivalue_line(
        "markers",
        "hil_expect(*verdicts): the verdicts, such as MISMATCH, that the `run` of a test may have; "
        "without it only PASS",
    )
    config.addinivalue_line("markers", "size: sizes held against budgets and accepted references")
    for marker in sorted({t.marker for t in targets}):
        names = ", ".join(t.name for t in targets if t.marker == marker)
        config.addinivalue_line("markers", f"{marker}: cases on {names}")
    _refuse_unknown_markers(config)
    with _usage_errors():
        firmware_choice(config)
        exporter_choice(config)


def _refuse_unknown_markers(config: pytest.Config) -> None:
    """A typo in ``-m`` selects nothing, and a run of nothing looks green in many a script."""
    expression = re.sub(r"\([^()]*=[^()]*\)", "", config.option.markexpr or "")
    used = set(re.findall(r"[A-Za-z_]\w*", expression)) - {"and", "or", "not", "True", "False"}
    known = {re.split(r"[:(]", line)[0].strip() for line in config.getini("markers")}
    for name in sorted(used - known):
        close = difflib.get_close_matches(name, known, n=1)
        meant = f"; did you mean {close[0]}?" if close else ""
        raise pytest.UsageError(f"-m: no marker is named {name!r}{meant} (pytest --markers)")


def npu_cases(config: pytest.Config) -> Extent:
    """How many of the Ethos-U cases there are in this session."""
    from harness.formats.cop import PRODUCTS

    said: Extent | None = config.getoption("--npu-cases")
    products = "|".join(PRODUCTS)
    named = re.search(rf"(?<!not )\b({products})\b", config.option.markexpr or "")
    return said or ("all" if named else "sample")


def firmware_choice(config: pytest.Config) -> FirmwareChoice:
    """Whose firmware this session puts under test. Raises as ``choose`` does."""
    from harness.build.choice import choose

    option = config.getoption
    root = option("--executorch")
    return choose(option("--firmware"), Path(root) if root else None, option("--part"))


def exporter_choice(config: pytest.Config) -> ExporterChoice:
    """Who exports in this session. Raises as ``choose_exporter`` does."""
    from harness.export.checkout.choice import choose_exporter

    root = config.getoption("--executorch")
    return choose_exporter(config.getoption("--exporter"), Path(root) if root else None)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Whose firmware, unless it is ours; and what is left out, with how to get it."""
    choice = firmware_choice(config)
    said = []
    if choice.root is not None:
        sources = " and ".join(choice.sources)
        said.append(f"hil: firmware: {sources}; ExecuTorch in {choice.root}")
    if (exporter := exporter_choice(config).root) is not None:
        said.append(f"hil: exporter: the checkout in {exporter}")
    if npu_cases(config) != "all":
        said.append(_SAMPLE)
    return said


_SAMPLE = (
    "hil: Ethos-U cases are a sample: all models in the default memory mode, one in one mode "
    "of each other placement and on each other MAC count; all with --npu-cases=all or -m u85"
)
