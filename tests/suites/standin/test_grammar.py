"""The models' command line: every spelling public scripts use, and every way to get it wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.suites.standin import StandinError
from harness.suites.standin.command_line import LoadedData, Request
from harness.suites.standin.command_line import parse as parse_for


def parse(argv: list[str], cpu: str) -> Request:
    return parse_for(argv, "FVP", cpu)


@pytest.mark.parametrize(
    "argv",
    [
        ["-a", "x.elf"],
        ["-a", "cpu0=x.elf"],
        ["-a", "cpu0*=x.elf"],
        ["-acpu0=x.elf"],
        ["--application", "x.elf"],
        ["--application=cpu0=x.elf"],
        ["x.elf"],
    ],
)
def test_an_application_may_be_given_in_each_of_these_ways(argv: list[str]) -> None:
    """Protects ExecuTorch (-a), TF-M (cpu0*=) and Zephyr scripts."""
    assert parse(argv, "cpu0").applications == (Path("x.elf"),)


@pytest.mark.parametrize(
    ("argv", "value"),
    [
        (["-C", "a.b=1"], "1"),
        (["-Ca.b=1"], "1"),
        (["--parameter", "a.b=1"], "1"),
        (["-C", "a.b='-'"], "-"),
        (["-C", 'a.b="x y"'], "x y"),
        (["-C", "a.b=k=v"], "k=v"),
        (["-C", "a.b='"], "'"),
        (["-C", "a.b=1", "-C", "a.b=2"], "2"),
    ],
)
def test_parameter_values(argv: list[str], value: str) -> None:
    """runner_utils.py passes literal quotes, since it uses no shell."""
    assert parse(argv, "cpu0").parameters == {"a.b": value}


def test_a_config_file_has_assignments_and_comments(tmp_path: Path) -> None:
    file = tmp_path / "c.txt"
    file.write_text('# all\n\na.b=1  # (bool) text\nc.d = "x"\n')
    assert parse(["-f", str(file)], "cpu0").parameters == {"a.b": "1", "c.d": "x"}


@pytest.mark.parametrize(
    ("value", "address"),
    [("f@0x70000000", 0x70000000), ("cpu0=f@0x10", 0x10), ("f@S:16", 16), ('"f"@1', 1)],
)
def test_data(value: str, address: int) -> None:
    assert parse(["--data", value], "cpu0").data == (LoadedData(Path("f"), address),)


def test_limits_flags_and_output() -> None:
    request = parse(
        [
            *("--timelimit", "1", "--simlimit=2.5", "--cpulimit", "3"),
            *("--cyclelimit", "4"),
            *("--stat", "-q", "-l", "-o", "f"),
        ],
        "cpu0",
    )
    assert request.limits == {
        "--timelimit": 1,
        "--simlimit": 2.5,
        "--cpulimit": 3,
        "--cyclelimit": 4,
    }
    assert request.flags == {"--stat", "--quiet", "--list-params"}
    assert request.output == Path("f")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--frobnicate"], "unrecognized arguments: --frobnicate; --help lists"),
        (["-x"], "unrecognized arguments: -x"),
        (["--timelimt=3"], "unrecognized arguments: --timelimt=3"),
        (["-C"], "argument -C/--parameter: expected one argument"),
        (["--timelimit"], "argument --timelimit: expected one argument"),
        (["-C", "novalue"], "a parameter is set as NAME=VALUE, not 'novalue'"),
        (["-C", "=1"], "a parameter is set as NAME=VALUE"),
        (["--timelimit", "soon"], "--timelimit takes a number that is not negative, not 'soon'"),
        (["--simlimit", "-1"], "--simlimit takes a number that is not negative, not '-1'"),
        (["--cyclelimit", "nan"], "--cyclelimit takes a number that is not negative"),
        (["--stat=1"], "argument --stat: ignored explicit argument '1'"),
        (["-a", "cpu1=x"], "there is no core 'cpu1' in this model; it has cpu0"),
        (["--data", "file"], "--data takes FILE@ADDRESS"),
        (["--data", "@0x0"], "--data takes FILE@ADDRESS"),
        (["--data", "f@here"], "'here' is not an address"),
        (["-S"], "unrecognized arguments: -S"),
        (["--iris-server"], "unrecognized arguments: --iris-server"),
    ],
)
def test_what_is_wrong_is_said(argv: list[str], message: str) -> None:
    with pytest.raises(StandinError) as caught:
        parse(argv, "cpu0")
    assert message in str(caught.value)


def test_a_config_files_error_has_its_line(tmp_path: Path) -> None:
    file = tmp_path / "c.txt"
    file.write_text("a=1\nwhat\n")
    with pytest.raises(StandinError, match=r"c\.txt:2: a parameter is set as"):
        parse(["-f", str(file)], "cpu0")
