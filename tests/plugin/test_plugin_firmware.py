"""Protects what pytest is told and tells of whose firmware is under test.

The firmware is planted and runs on the real QEMU; the checkout is the small one that other tests
build.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.firmware.executorch.small import small_checkout

needs_qemu = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
TESTS = """
    from dataclasses import replace
    import pytest
    from harness.firmware.source import CheckoutFacts, source_named
    from tools.doubles import double_program, planted_firmware
    from executorch_hil import require_pass

    @pytest.fixture(scope="session")
    def hil_program(tmp_path_factory):
        return double_program(tmp_path_factory.mktemp("p") / "program")

    @pytest.fixture(scope="session")
    def hil_firmware(tmp_path_factory, hil_firmware_source, hil_checkout):
        theirs = hil_firmware_source.needs_checkout
        ending = "WRONG_BY_ONE" if theirs else "PASSES"
        made = planted_firmware(tmp_path_factory.mktemp("f"), ending, hil_firmware_source.name)
        if not theirs:
            return made
        there = hil_checkout.revision
        facts = CheckoutFacts(str(hil_checkout.root), there.commit, "main", False, "", "hil")
        return replace(made, checkout=facts)

    @pytest.mark.hil_cases(targets=["corstone-300-m55"], models=["add"])
    def test_model(hil_run, hil_reference):
        require_pass(hil_run)

    @pytest.mark.hil_cases(targets=["corstone-300-m55"], models=["add"])
    def test_program(hil_program, hil_target):
        pass
"""
CASE = "corstone-300-m55/add"
ALONE_OR_NOT = [
    pytest.param((), id="alone"),
    pytest.param(("-n", "2"), id="xdist", marks=pytest.mark.thorough),
]


@pytest.fixture
def checkout(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HIL_HOME", str(pytester.path / ".hil"))
    monkeypatch.setenv("HIL_REFERENCES", str(pytester.path / "references"))
    monkeypatch.delenv("EXECUTORCH_ROOT", raising=False)
    pytester.makepyfile(TESTS)
    root, parts = small_checkout(pytester.path / "src")
    named = [f"{name}={folder}" for name, folder in parts.items()]
    (pytester.path / "hil.toml").write_text(f"parts = {named}")
    return root


@pytest.mark.parametrize(
    ("arguments", "of_model"),
    [
        pytest.param((), [""], marks=pytest.mark.thorough),
        (("--hil-executorch", "src/checkout"), ["-executorch"]),
        (
            ("--hil-executorch", "src/checkout", "--hil-firmware", "both"),
            ["-bundled", "-executorch"],
        ),
        pytest.param(
            ("--hil-executorch", "src/checkout", "--hil-firmware", "bundled"),
            [""],
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_the_id_says_whose_firmware(
    pytester: pytest.Pytester, checkout: Path, arguments: tuple[str, ...], of_model: list[str]
) -> None:
    """A test that uses no firmware is there once, whatever is asked for."""
    result = pytester.runpytest_inprocess("--collect-only", "-q", *arguments)
    found = [line.partition("::")[2] for line in result.outlines if "::test_" in line]
    assert found == [*(f"test_model[{CASE}{end}]" for end in of_model), f"test_program[{CASE}]"]


@needs_qemu
@pytest.mark.parametrize("workers", ALONE_OR_NOT)
def test_each_is_a_test_of_its_own(
    pytester: pytest.Pytester, checkout: Path, workers: tuple[str, ...]
) -> None:
    arguments = (
        "--hil-executorch",
        "src/checkout",
        "--hil-firmware",
        "both",
        "--hil-simulator",
        "qemu",
    )
    result = pytester.runpytest_inprocess(*arguments, "--junitxml=j.xml", *workers)
    result.assert_outcomes(passed=2, failed=1)
    said = result.stdout.str()
    assert f"hil: firmware: bundled and executorch; ExecuTorch in {checkout}" in said
    assert f"{CASE} [executorch " in said
    assert "MISMATCH outputs_differ" in said
    junit = (pytester.path / "j.xml").read_text()
    assert '<property name="firmware" value="bundled"' in junit
    assert '<property name="firmware" value="executorch ' in junit


def test_the_environment_names_a_checkout_and_asks_for_nothing(
    pytester: pytest.Pytester, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXECUTORCH_ROOT", "src/checkout")
    ours = pytester.runpytest_inprocess("--collect-only", "-q")
    assert "executorch]" not in ours.stdout.str()
    both = pytester.runpytest_inprocess("--collect-only", "-q", "--hil-firmware=both")
    assert f"test_model[{CASE}-executorch]" in both.stdout.str()


@pytest.mark.parametrize("workers", ALONE_OR_NOT)
def test_without_a_checkout_it_is_wrong_usage(
    pytester: pytest.Pytester, checkout: Path, workers: tuple[str, ...]
) -> None:
    result = pytester.runpytest_inprocess("--hil-firmware=executorch", *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--firmware executorch needs a checkout*--hil-executorch DIR*"])


def test_what_is_not_a_checkout_is_named_by_the_test_that_needs_it(
    pytester: pytest.Pytester, checkout: Path
) -> None:
    (checkout / "version.txt").unlink()
    result = pytester.runpytest_inprocess("--hil-executorch=src/checkout")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*is not a checkout of ExecuTorch: it has no version.txt*"])
