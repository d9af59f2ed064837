"""The pytest surface: options, markers, fixtures, summary. The work is done elsewhere.

A test that asks for ``case``, ``target``, ``program``, ``firmware``, ``run`` or ``reference`` is
run once per case it is marked for::

    @pytest.mark.hil_cases(targets=["corstone-300-m55"], models=["ds_cnn", "my_model.py"])
    def test_my_model(run):
        require_pass(run)

Without the marker: every catalogue model on every target. Each case carries its target's
marker, so ``pytest -m cortex_m55`` selects by target. An Ethos-U has many memory modes: all of
its cases are there when ``-m`` names it (``-m u85``), else a sample (``--npu-cases``).

``--executorch DIR`` puts the runner of a checkout of ExecuTorch under test; with ``--firmware
both`` every test that uses firmware is there twice, ``[...-bundled]`` and ``[...-executorch]``.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.case.case import Case
from harness.errors import FvpMissing, HarnessError

if TYPE_CHECKING:
    from harness.build.choice import FirmwareChoice
    from harness.build.executorch.checkout import Checkout
    from harness.build.firmware import Firmware
    from harness.build.source import FirmwareSource
    from harness.case.matrix import Extent
    from harness.export.checkout.choice import ExporterChoice
    from harness.export.program import Program
    from harness.judge.reference import Reference
    from harness.run.record import RunRecord
    from harness.target.loading import Target


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


def pytest_configure(config: pytest.Config) -> None:
    from harness.target.loading import global_factor, load_targets

    with _usage_errors():
        global_factor()
        targets = load_targets()
    config.addinivalue_line(
        "markers",
        "hil_cases(targets=None, models=None, npu=None): the cases a test runs for; "
        "npu: only those with one, or only those without",
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


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("hil_cases")
    chosen = dict(marker.kwargs) if marker else {}
    cases = list(_cases(npu_cases(metafunc.config), **chosen))
    metafunc.parametrize("case", cases, indirect=True)
    sources = firmware_choice(metafunc.config).sources
    if "firmware_source" in metafunc.fixturenames and not _only_ours(sources):
        metafunc.parametrize("firmware_source", sources, ids=str, indirect=True)


def _only_ours(sources: Sequence[FirmwareSource]) -> bool:
    """Then the ids of tests say nothing of firmware."""
    return all(str(source) == "bundled" for source in sources)


def _cases(
    extent: Extent,
    targets: Iterable[str] | None = None,
    models: Iterable[str] | None = None,
    npu: bool | None = None,
) -> Iterator[Any]:
    from harness.case.matrix import default_cases
    from harness.case.models import catalogue, find_model
    from harness.target.loading import load_target, load_targets

    with _usage_errors():
        names = list(catalogue()) if models is None else list(models)
        for name in names:
            find_model(name)
        if targets is None:
            found = list(default_cases(_usable(load_targets()), names, extent))
        else:
            loaded = [load_target(n) for n in targets]
            found = [(Case(t.name, model), t) for t in loaded for model in names]
    for case, target in found:
        if npu is not None and npu != (target.npu is not None):
            continue
        yield pytest.param(case, id=case.id, marks=getattr(pytest.mark, target.marker))


def _usable(targets: Iterable[Target]) -> list[Target]:
    """Without a workspace there is no Zephyr to build, so nobody asked for those targets."""
    return [t for t in targets if t.zephyr is None or "ZEPHYR_BASE" in os.environ]


@pytest.fixture(scope="session")
def case(request: pytest.FixtureRequest) -> Case:
    """The model and target this test runs for."""
    chosen: Case = request.param
    return chosen


@pytest.fixture(scope="session")
def target(case: Case) -> Target:
    """The target's description."""
    from harness.target.loading import load_target

    with _failing():
        return load_target(case.target)


@pytest.fixture(scope="session")
def program(case: Case, request: pytest.FixtureRequest) -> Program:
    """The exported program with inputs and expected outputs.

    The first test that needs one exports those of all collected cases, so that torch is
    imported once, whatever the number of workers.
    """
    from filelock import FileLock

    from harness.run.exports import export_cases
    from harness.system.paths import cache_dir
    from harness.target.loading import load_target

    wanted = [case, *(c for c in _collected(request.session) if c != case)]
    with _failing():
        targets = {name: load_target(name) for name in {c.target for c in wanted}}
        cache_dir("programs").mkdir(parents=True, exist_ok=True)
        exporter = exporter_choice(request.config).find()
        with FileLock(cache_dir("programs") / "batch.lock"):
            exported = export_cases(wanted, targets, exporter=exporter)[0]
        if isinstance(exported, HarnessError):
            raise exported
    return exported


def _collected(session: pytest.Session) -> list[Case]:
    """The cases of all selected tests, without repetition."""
    cases = [
        item.callspec.params["case"]
        for item in session.items
        if hasattr(item, "callspec") and "case" in item.callspec.params
    ]
    return list(dict.fromkeys(c for c in cases if isinstance(c, Case)))


@pytest.fixture(scope="session")
def firmware_source(request: pytest.FixtureRequest) -> FirmwareSource:
    """Whose firmware the test runs: "bundled" or "executorch"."""
    from harness.build.source import FirmwareSource

    return FirmwareSource(getattr(request, "param", FirmwareSource.BUNDLED))


@pytest.fixture(scope="session")
def hil_checkout(request: pytest.FixtureRequest) -> Checkout | None:
    """The checkout of ExecuTorch under test; None when there is none."""
    with _failing():
        return firmware_choice(request.config).checkout()


@pytest.fixture(scope="session")
def firmware(
    target: Target,
    firmware_source: FirmwareSource,
    hil_checkout: Checkout | None,
    request: pytest.FixtureRequest,
) -> Firmware:
    """The runner built for the target; one build per key, whoever comes first."""
    from harness.build.choice import build_for
    from harness.simulate.pick import pick

    with _failing():
        chosen = pick(target, request.config.getoption("--simulator"))
        return build_for(firmware_source, chosen.target, chosen.name, hil_checkout)


@pytest.fixture(scope="session")
def reference(case: Case, firmware_source: FirmwareSource) -> Reference | None:
    """The accepted reference run of the case with this firmware; None when none was accepted."""
    from harness.judge.reference import load_reference
    from harness.system.paths import references_dir

    with _failing():
        return load_reference(references_dir(), case, firmware_source)


@pytest.fixture
def run(
    case: Case,
    target: Target,
    program: Program,
    firmware: Firmware,
    request: pytest.FixtureRequest,
    record_property: Any,
) -> RunRecord:
    """A finished run of the case, with its verdict; JUnit gets it as properties."""
    from harness.run.pipeline import RunOptions, run_case
    from harness.simulate.fvp import missing_policy
    from harness.simulate.pick import pick

    option = request.config.getoption
    options = RunOptions(
        simulator=option("--simulator"),
        limit_factor=option("--limit-factor"),
        fvp_missing=option("--fvp-missing") or missing_policy(),
    )
    try:
        with _failing():
            record = run_case(case, pick(target, options.simulator), program, firmware, options)
    except FvpMissing as error:
        record_property("verdict", error.verdict.value)
        pytest.skip(_explain(error))
    record_property("verdict", record.verdict.value)
    record_property("firmware", record.firmware_label or record.source.value)
    record_property("run_dir", record.run_dir)
    if record.simulator is not None:
        record_property("simulator", record.simulator.name.value)
    for name, value in sorted(record.metrics.items()):
        record_property(name, value)
    return record


def require_pass(record: RunRecord) -> None:
    """Fail the test, with the cause as its whole message, unless the verdict is PASS."""
    if record.verdict.passed:
        return
    cause = record.cause
    what = "" if cause is None else f" {cause.kind}: {cause.text}"
    line = f" (console line {cause.line})" if cause is not None and cause.line else ""
    pytest.fail(
        f"{record.title}: {record.verdict}{what}{line}\nevidence: {record.run_dir}",
        pytrace=False,
    )


@contextmanager
def _usage_errors() -> Iterator[None]:
    """What the user wrote wrong ends the session before it begins."""
    try:
        yield
    except HarnessError as error:
        hint = f"; {error.hint}" if error.hint else ""
        raise pytest.UsageError(error.message + hint) from error


@contextmanager
def _failing() -> Iterator[None]:
    """The boundary of a fixture: whatever goes wrong fails the test in a sentence."""
    from harness.system.boundary import debugging, told

    try:
        yield
    except FvpMissing:
        raise
    except Exception as error:
        pytest.fail(_explain(told(error)), pytrace=debugging())


def _explain(error: HarnessError) -> str:
    hint = f"\n{error.hint}" if error.hint else ""
    return f"{error.verdict} {error.kind}: {error.message}{hint}"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run in which nothing ran is not a success."""
    config = session.config
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput") or config.option.collectonly:
        return
    outcomes = ("passed", "failed", "error", "xfailed", "xpassed")
    ran = sum(len(reporter.stats.get(outcome, ())) for outcome in outcomes)
    if not ran and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
        reporter.write_line("hil: nothing ran, so nothing was proven", red=True)
