"""Known parameters are known, all others are errors, as in a model."""

from __future__ import annotations

import pytest

from harness.suites.standin import StandinError
from harness.suites.standin.command_line import FvpParameters, load_fvp_model, model_names

U55 = "FVP_Corstone_SSE-300_Ethos-U55"


def test_every_parameter_that_executorch_and_zephyr_set_is_known() -> None:
    """Protects the three clients: an unknown name would stop them at the start."""
    executorch = {
        "ethosu.num_macs": "128",
        "mps3_board.visualisation.disable-visualisation": "1",
        "mps3_board.telnetterminal0.start_telnet": "0",
        "mps3_board.uart0.out_file": "-",
        "mps3_board.uart0.shutdown_on_eot": "1",
        "cpu0.semihosting-enable": "1",
        "cpu0.semihosting-stack_base": "0",
        "cpu0.semihosting-heap_limit": "0",
        "cpu0.semihosting-cwd": "/x",
        "ethosu.extra_args": "--fast",
        "cpu0.semihosting-cmd_line": "runner",
    }
    zephyr = {
        f"mps3_board.{name}": value
        for n in range(3)
        for name, value in (
            (f"uart{n}.out_file", "-"),
            (f"uart{n}.unbuffered_output", "1"),
            (f"telnetterminal{n}.start_telnet", "0"),
        )
    }
    FvpParameters(load_fvp_model(U55), {**executorch, **zephyr})


def test_the_names_of_the_other_board_are_errors() -> None:
    """run_fvp.sh passes MPS3 names to the SSE-320 model for a Cortex-M85; a model refuses them."""
    with pytest.raises(StandinError, match=r"unknown parameter 'mps3_board\.uart0\.out_file'"):
        FvpParameters(load_fvp_model("FVP_Corstone_SSE-320"), {"mps3_board.uart0.out_file": "-"})
    with pytest.raises(StandinError, match=r"unknown parameter 'cpu0\.semihosting-enable'"):
        FvpParameters(load_fvp_model("FVP_Corstone_SSE-320"), {"cpu0.semihosting-enable": "1"})
    with pytest.raises(StandinError, match="unknown parameter 'vis_hdlcd"):
        FvpParameters(load_fvp_model(U55), {"vis_hdlcd.disable_visualisation": "1"})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("mps3_board.uart0.out_fil", "-", "did you mean mps3_board.uart0.out_file?"),
        ("nothing.like.it", "1", "--list-params lists the parameters"),
        ("cpu0.semihosting-enable", "yes", "takes 0 or 1, not 'yes'"),
        ("cpu0.CFGITCMSZ", "big", "takes a number, not 'big'"),
        ("cpu0.CFGITCMSZ", "010", "takes a number, not '010'"),
        ("ethosu.num_macs", "512", "an Ethos-U55 has 32, 64, 128, 256"),
    ],
)
def test_wrong_parameters(name: str, value: str, message: str) -> None:
    with pytest.raises(StandinError) as caught:
        FvpParameters(load_fvp_model(U55), {name: value})
    assert message in str(caught.value)


def test_an_unknown_model() -> None:
    with pytest.raises(StandinError, match="there is no stand-in for FVP_Other"):
        load_fvp_model("FVP_Other")


@pytest.mark.parametrize("name", model_names())
def test_every_default_is_a_value_of_its_kind(name: str) -> None:
    model = load_fvp_model(name)
    defaults = {p.name: p.default for p in model.parameters.values()}
    assert len(defaults) > 40
    FvpParameters(model, defaults)


def test_what_cannot_be_honoured_is_reported() -> None:
    settings = FvpParameters(
        load_fvp_model(U55), {"cpu0.CFGITCMSZ": "15", "cpu0.semihosting-heap_limit": "0"}
    )
    assert [p.name for p in settings.ineffective()] == ["cpu0.CFGITCMSZ"]
