"""Outputs and counters that a runner prints: as text, as files. What is in base64 is skipped."""

from __future__ import annotations

import pytest

from harness.log.parser import parse_console
from tests.log.lines import log

OUTPUTS = {
    "2024": ("Output[0][{i}]: {v}", "", [0.5, -1.25]),
    "float": ("Output[0][{i}]: (float) {v}", "float", [0.5, 2e-05]),
    "int": ("Output[0][{i}]: (int) {v}", "int", [7, -8]),
    "char": ("Output[0][{i}]: (char) {v}", "char", [-128, 127]),
    "bool": ("Output[0][{i}]: (bool) {v}", "bool", ["true  (0x1)", "false (0x0)"]),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_printed_as_text(name: str) -> None:
    form, dtype, values = OUTPUTS[name]
    lines = "".join(form.format(i=i, v=v) + "\n" for i, v in enumerate(values))
    (tensor,) = parse_console(lines.encode() + b"Output[1]: Not Tensor\n").tensors
    assert (tensor.dtype, tensor.elements, tensor.whole) == (dtype, 2, True)


@pytest.mark.parametrize("word", ["two", "0x2", "2E", "...", "--1", "1e"])
def test_what_is_not_a_number_is_not_an_element(word: str) -> None:
    (tensor,) = parse_console(f"Output 0: tensor(sizes=[2], [1., {word}])\n".encode()).tensors
    assert (tensor.elements, tensor.whole) == (1, False)


@pytest.mark.parametrize("words", ["nan, 1.", "-inf, nan", "true, nan", "nan, -NaN"])
def test_only_nan(words: str) -> None:
    (tensor,) = parse_console(f"Output 0: tensor(sizes=[2], [{words}])\n".encode()).tensors
    assert (tensor.whole, tensor.only_nan) == (True, words == "nan, -NaN")


def test_an_output_with_a_hole_is_not_whole() -> None:
    (tensor,) = parse_console(b"Output[0][0]: (int) 1\nOutput[0][2]: (int) 3\n").tensors
    assert not tensor.whole


def test_outputs_of_the_zephyr_sample() -> None:
    """The sample indents its elements."""
    for indent in ("", "    "):
        elements = [f"{indent}[{n}] = {n}.000000" for n in range(2)]
        (tensor,) = parse_console(log("zephyr sample", *elements)).tensors
        assert (tensor.elements, tensor.whole) == (2, True)


def test_a_failure_that_ran_into_an_element_is_seen() -> None:
    seen = parse_console(
        b"Output[0][0]: (int) 1\nOutput[0][1]: (int) 2E [executorch:a.cpp:1 f()] broken\n"
        b"Output[1][0]: (float) nan\r\nOutput[2][0]: (int) 3xterm: no display\n"
    )
    assert [failure.line for failure in seen.failures] == [2]
    assert [(t.elements, t.whole) for t in seen.tensors] == [(2, True), (1, True)]


def test_output_files() -> None:
    assert parse_console(log("mid 2025", "Writing output to file: out-0.bin")).output_files == (
        "out-0.bin",
    )


def test_pmu_counters_with_and_without_a_readable_index() -> None:
    """newlib-nano prints "%zd" as it stands; the order then tells the counter."""
    garbled = "ethosu_pmu_cntr%zd : {}"
    seen = parse_console(
        log(
            "mid 2025",
            "Ethos-U PMU report:",
            "ethosu_pmu_cycle_cntr : 5920305 (9 per inference)",
            garbled.format(11),
            garbled.format(22),
            "ethosu_pmu_cntr2 : 33",
            "NPU delegations: 3",
            "ethos-u : cycle_cnt : 0 cycles",
        )
    )
    values = seen.pmu
    assert values["ethosu_pmu_cycle_cntr"] == 5920305
    assert [values[f"ethosu_pmu_cntr{i}"] for i in range(3)] == [11, 22, 33]
    assert values["npu_delegations"] == 3
    assert values["ethosu_cycle_cnt"] == 0


def test_what_is_in_base64_is_skipped_and_never_run() -> None:
    """Whatever words it happens to have, also where the log was wrapped and somebody wrote into
    it."""
    rows = ["AAEC" * 19, "failed", "xterm: Xt error: Can't open display: ", "fail", "AAEC" * 19]
    seen = parse_console(
        (
            "#[RUN THIS]\n# Writing debug_buffer.bin [base64]\n"
            'echo "' + "\r\n".join(rows) + '" | base64 -d >debug_buffer.bin\n'
            '# Writing etdump.bin [base64]\necho "$(touch pwned)" | base64 -d >etdump.bin\n#[END]\n'
            "build: 1 failed\n"
        ).encode()
    )
    assert [suspect.text for suspect in seen.suspects] == ["build: 1 failed"]


def test_a_file_that_is_cut_off_ends_at_what_is_not_part_of_it() -> None:
    """Behind too many foreign lines, and at the end of the script."""
    for between in ("no part of it: 1\n" * 20, "#[END]\n"):
        seen = parse_console(f'echo "AAEC\n{between}failed\n'.encode())
        assert [suspect.text for suspect in seen.suspects] == ["failed"], between


def test_a_tensor_that_is_printed_again_counts_anew() -> None:
    lines = b"".join(b"Output[0][%d]: (int) 1\n" % (n % 10) for n in range(40))
    (tensor,) = parse_console(lines).tensors
    assert (tensor.elements, tensor.whole) == (10, True)


@pytest.mark.parametrize(
    "line",
    [
        b"Output[%d][0]: (int) 1",
        b"I [executorch:a.cpp:1 f()] planned_%d: 1",
        b"I [executorch:a.cpp:1 f()] ethosu_pmu_cntr%d : 1",
        b"I [executorch:a.cpp:1 f()] system_counter_ticks: 1 (set %d)",
    ],
)
def test_a_flood_of_names_does_not_fill_the_memory(line: bytes) -> None:
    seen = parse_console(b"".join(line % n + b"\n" for n in range(3000)))
    assert len(seen.tensors) + len(seen.metrics) + len(seen.pmu) == 1000


@pytest.mark.parametrize(
    ("lines", "whole"),
    [
        ("Output 0: tensor(sizes=[2, 2], [1., 2., 3., 4.])\n", True),
        ("Output 0: tensor(sizes=[2, 2], [1., 2., 3.])\n", False),
        ("Output 0: tensor(sizes=[2, 2], [1., 2., 3., 4., 5.])\n", False),
        ("Output 0: tensor(sizes=[2, 2], [\n  1., 2.,\n  3., 4.])\n", True),
        ("Output 0: tensor(sizes=[2, 2], [\n  1., 2.,\n  3., 4.", False),
    ],
)
def test_a_tensor_is_whole_when_it_is_closed_and_has_its_elements(lines: str, whole: bool) -> None:
    """A console that was cut, or lost a part, proves no output."""
    (tensor,) = parse_console(lines.encode()).tensors
    assert tensor.whole == whole
