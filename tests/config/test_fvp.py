"""FVPs as data: boards are not mixed, NPUs have the MACs they have, a missing one has a policy."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.config.fvp import Fvp, models_file
from harness.config.loading import limit_factor, load_target, target_directories
from harness.config.schema import checked
from harness.config.target import Limits
from harness.core.errors import TargetError, UsageError
from harness.sim import fvp
from harness.sim.simulator import GuestJob, missing_fvp_policy
from harness.suites.standin.command_line import load_fvp_model
from harness.system.settings import SettingsError

MODELS = models_file().data
BOARD = """\
extends: corstone-300-m55
simulators:
  auto: [fvp]
  fvp:
    model: {model}
    parameters:
      {parameter}
"""


def load(folder: Path, model: str, parameter: str) -> Fvp:
    (folder / "mine.yaml").write_text(BOARD.format(model=model, parameter=parameter))
    target = load_target("mine", (*target_directories({}), folder))
    assert target.simulators.fvp is not None
    return target.simulators.fvp


@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_valid_data(name: str) -> None:
    model = checked(Fvp, MODELS[name])
    assert model.executable.startswith("FVP_Corstone")
    assert model.npu is not None


@pytest.mark.parametrize("name", [n for n in MODELS if n.startswith("sse")])
def test_parameters_are_those_of_the_model(name: str) -> None:
    """Against the list of parameter names that the stand-in keeps from public sources."""
    model = checked(Fvp, MODELS[name])
    assert model.semihosting is not None
    names = {
        *model.parameters,
        model.semihosting.enable,
        model.semihosting.cwd,
        model.semihosting.command_line,
    }
    family = model.executable.replace("SSE-315", "SSE-320")  # the same boards' names
    if "SSE-310" in family:
        family = f"FVP_Corstone_SSE-300_{str(model.npu).title()}"
    assert names <= set(load_fvp_model(family).parameters)


def test_a_target_lays_its_parameters_over_the_models(tmp_path: Path) -> None:
    model = load(tmp_path, "sse-300-u65", "ethosu.num_macs: 512")
    assert model.executable == "FVP_Corstone_SSE-300_Ethos-U65"
    assert model.parameters["ethosu.num_macs"] == 512
    assert model.parameters["mps3_board.uart0.shutdown_on_eot"] == 1


WRONG = [
    ("sse-300-u55", "mps4_board.uart0.out_file: x", "belongs to mps4 boards"),
    ("sse-320", "mps3_board.uart0.out_file: x", "belongs to mps3 boards"),
    ("sse-320", "ethosu.num_macs: 256", "belongs to mps3 boards"),
    ("sse-320", "cpu0.semihosting-heap_limit: 0", "belongs to mps3 boards"),
    ("sse-300-u55", "nonsense.x: 1", "no board has it"),
    ("sse-300-u55", "ethosu.num_macs: 512", "an ethos-u55 has 32, 64, 128, 256"),
    ("sse-300-u65", "ethosu.num_macs: 128", "an ethos-u65 has 256, 512"),
    ("sse-320", "mps4_board.subsystem.ethosu.num_macs: 64", "an ethos-u85 has 128, 256"),
    ("corstone-1000-a320", "host.ethosu.num_macs: 32", "an ethos-u85 has 128, 256"),
]


@pytest.mark.parametrize(("model", "parameter", "message"), WRONG)
def test_boards_and_mac_counts_are_never_mixed(
    tmp_path: Path, model: str, parameter: str, message: str
) -> None:
    with pytest.raises(TargetError, match=message):
        load(tmp_path, model, parameter)


def test_an_unknown_model_is_reported_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"mine\.yaml:5: no FVP is called 'sse-999'") as caught:
        load(tmp_path, "sse-999", "core_clk.mul: 1")
    assert "sse-320" in str(caught.value.hint)


def test_names_of_the_mps4_model_on_its_command_line() -> None:
    settings = checked(Fvp, MODELS["sse-320"])
    limits = Limits(host=9, stall=9, cycles=77)
    argv = fvp.argv("/f", settings, GuestJob(Path("/e"), ("r",), Path("/w"), limits))
    assert "mps4_board.subsystem.cpu0.semihosting-cwd=/w" in argv
    assert argv[argv.index("--cyclelimit") + 1] == "77"
    assert not any("mps3" in word or word.startswith(("cpu0", "ethosu")) for word in argv)


@pytest.mark.parametrize(
    ("ci", "policy"), [(None, "skip"), ("", "skip"), ("true", "fail"), ("1", "fail"), ("0", "skip")]
)
def test_a_missing_fvp_fails_in_ci(ci: str | None, policy: str) -> None:
    assert missing_fvp_policy({} if ci is None else {"CI": ci}) == policy


@pytest.mark.parametrize(("ci", "policy"), [("", "fail"), ("true", "skip")])
def test_the_settings_decide_what_a_missing_fvp_means(tmp_path: Path, ci: str, policy: str) -> None:
    (tmp_path / "hil.toml").write_text(f'fvp_missing = "{policy}"\n')
    assert missing_fvp_policy({"CI": ci, "HIL_PROJECT": str(tmp_path)}) == policy


@pytest.mark.parametrize("value", ['"maybe"', "true", '["skip"]'])
def test_a_policy_that_does_not_exist_names_those_that_do(tmp_path: Path, value: str) -> None:
    (tmp_path / "hil.toml").write_text(f"fvp_missing = {value}\n")
    with pytest.raises(SettingsError, match='fvp_missing is not "fail" or "skip"'):
        missing_fvp_policy({"HIL_PROJECT": str(tmp_path)})


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("ARM_FVP_INSTALL_I_AGREE_TO_THE_CONTAINED_EULA", "True", True),
        ("ARM_FVP_INSTALL_I_AGREE_TO_THE_CONTAINED_EULA", "true", False),
        ("ARM_FVP_EULA_ACCEPT", "1", True),
        ("ARM_FVP_EULA_ACCEPT", "no", False),
    ],
)
def test_the_licence_is_accepted_by_the_user_or_not_at_all(
    name: str, value: str, accepted: bool
) -> None:
    assert fvp.eula_accepted({}) is None
    assert (fvp.eula_accepted({name: value}) is not None) is accepted


def test_limit_factors_multiply() -> None:
    limits = Limits(host=10, stall=1, model=5, cycles=100, factor=2).scaled(3)
    assert (limits.host, limits.stall, limits.model, limits.cycles) == (60, 6, 30, 600)
    assert limits.scaled(1) == limits


@pytest.mark.parametrize("text", ["", "0", "-1", "nan", "fast", "1e9"])
def test_a_bad_factor_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a number above 0 and up to 1000"):
        limit_factor(text)
    assert limit_factor("2.5") == 2.5
