"""What an FVP lists is asked once, and a name that it does not list never reaches it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.config.loading import load_target, target_directories
from harness.config.target import Target
from harness.core.errors import InfraError
from harness.sim.fvp import argv, parameters
from harness.sim.fvp_parameters import check_parameters, close_names, describe, version_note
from harness.sim.simulator import GuestJob, pick
from harness.suites.standin.command_line import load_fvp_model
from tools.doubles import install_double

NAME = "FVP_Corstone_SSE-320"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A double, with the parameters that public sources name."""
    monkeypatch.setenv("HIL_HOME", str(tmp_path / ".hil"))
    monkeypatch.setenv("HIL_FVP_DIR", str(tmp_path / "fvp"))
    return install_double(tmp_path / "fvp", NAME, "passes", load_fvp_model(NAME).parameters)


def load(folder: Path, parameter: str) -> Target:
    (folder / "mine.yaml").write_text(
        "extends: corstone-320-u85-256\n"
        "simulators:\n  auto: [fvp]\n  fvp:\n    model: sse-320\n    parameters:\n"
        f"      {parameter}: 1\n"
    )
    return load_target("mine", (*target_directories({}), folder))


def check(target: Target) -> None:
    assert target.simulators.fvp is not None
    job = GuestJob(Path("/e"), ("r",), Path("/w"), target.limits)
    words = argv("/f", target.simulators.fvp, job)
    chosen = pick(target, "fvp")
    check_parameters(target, chosen.require(), {}, parameters(words))


def test_an_unknown_name_is_reported_with_its_line_and_close_names(
    installed: Path, tmp_path: Path
) -> None:
    with pytest.raises(InfraError) as caught:
        check(load(tmp_path, "mps4_board.subsystem.ethosu.num_mac"))
    error = caught.value
    assert (error.kind, error.exit_code) == ("fvp_parameter", 3)
    assert f"num_mac ({tmp_path / 'mine.yaml'}:7; it has mps4_board.subsystem" in error.message
    assert "11.27.42 has no parameter" in error.message
    assert "--list-params" in str(error.hint)


@pytest.mark.parametrize(
    ("dropped", "place"),
    [
        ("vis_hdlcd.disable_visualisation", "models.yaml"),
        ("mps4_board.subsystem.cpu0.semihosting-cwd", "models.yaml"),
        ("mps4_board.subsystem.cpu0.MPU_S", "corstone-320-u85-256.yaml"),
    ],
)
def test_each_layer_that_sets_a_name_is_found(installed: Path, dropped: str, place: str) -> None:
    """A release without one of our own names."""
    known = installed.with_name("parameters")
    known.write_text(known.read_text().replace(f"{dropped}\n", ""))
    with pytest.raises(InfraError) as caught:
        check(load_target("corstone-320-u85-256", target_directories({})))
    assert f"{dropped} (" in caught.value.message
    assert f"{place}:" in caught.value.message


def test_every_name_of_a_target_is_known(installed: Path) -> None:
    check(load_target("corstone-320-u85-256", target_directories({})))


def test_it_is_asked_once_for_each_binary(installed: Path, tmp_path: Path) -> None:
    first = describe(installed, {})
    (kept,) = (tmp_path / ".hil" / "cache" / "fvp").rglob("entry.json")
    content = kept.read_text()
    assert json.loads(content)["facts"]["parameters"] == list(first.parameters)
    for damaged in ("{", content.replace("num_macs", "num_mabs")):  # cut, or a bit flipped
        kept.write_text(damaged)
        assert describe(installed, {}) == first
        assert kept.read_text() == content
    installed.write_text(installed.read_text() + "\n")  # and another binary
    again = describe(installed, {})
    assert (again.parameters, again.version) == (first.parameters, first.version)
    assert again.sha256 != first.sha256


def test_an_fvp_that_lists_nothing_is_not_refused(installed: Path, tmp_path: Path) -> None:
    """Its run shows what is wrong with it."""
    installed.write_text("#!/bin/sh\necho 'no such option' >&2\nexit 1\n")
    check(load(tmp_path, "mps4_board.nothing"))


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("ethosu.num_macs", "mps4_board.subsystem.ethosu.num_macs"),
        ("mps4_board.uart0.shutdown_on_eof", "mps4_board.uart0.shutdown_on_eot"),
    ],
)
def test_close_names(name: str, close: str) -> None:
    assert close in close_names(name, load_fvp_model(NAME).parameters)


def test_a_version_without_facts_is_noted(installed: Path) -> None:
    target = load_target("corstone-320-u85-256", target_directories({}))
    tool, settings = pick(target, "fvp").require(), target.simulators.fvp
    assert settings is not None
    assert version_note(settings, tool) == ()
    installed.write_text(installed.read_text().replace("11.27.42", "11.270.1"))
    (note,) = version_note(settings, pick(target, "fvp").require())
    assert note == "this FVP is version 11.270.1; the versions with known parameters: 11.27"
