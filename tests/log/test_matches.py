"""What failures say: ExecuTorch's error codes, which stand in C++ and in Python, and facts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.core.tables import read_table
from harness.log import matches
from harness.log.events import Kind
from harness.log.matches import named_code, npu_status
from harness.log.parser import parse_console
from tests.log.lines import log

CORE = Path(__file__).parents[2] / "targets" / "runner" / "core"


def test_the_runner_and_the_reader_have_the_same_error_codes() -> None:
    """Name by name and number by number; the runner prints what the reader looks up."""
    header = (CORE / "error.h").read_text()
    found = re.search(r"enum class (?:\[\[\w+\]\] )?Error\b[^{]*\{(.*?)\};", header, re.S)
    assert found is not None
    body = found[1]
    codes = {int(n, 16): name for name, n in re.findall(r"(\w+) = (0x[0-9a-fA-F]+)", body)}
    assert len(codes) == body.count("="), "a code of the header was not read"
    assert codes == read_table(matches.__file__)["errors"]


def test_the_runner_names_every_code_as_the_reader_does() -> None:
    source = (CORE / "error.cpp").read_text()
    cases = re.findall(r'case Error::(\w+):\s*return "(\w+)";', source)
    assert [name for name, _ in cases] == list(read_table(matches.__file__)["errors"].values())
    assert all(name == said for name, said in cases)


def test_every_code_is_read_in_both_notations_and_by_name() -> None:
    for code, name in read_table(matches.__file__)["errors"].items():
        for said in (f"failed with status 0x{code:x}", f"error code {code}", f"answered {name}"):
            assert named_code(said.encode()) == code, said


@pytest.mark.parametrize(
    ("path", "outside"),
    [
        ("/etc/passwd", True),
        ("../model.pte", True),
        ("a/../../b", True),
        ("model.pte", False),
        ("a/..b", False),
        ("/dev/ethosu0", False),
    ],
)
def test_a_file_outside_of_its_directory_is_said_to_be_outside(path: str, outside: bool) -> None:
    said = f"Could not open file {path} (errno: 2) for reading, exiting!"
    (failure,) = parse_console(log("mid 2025", said, level="E")).failures
    assert (failure.kind, failure.facts["path"]) == (Kind.FILE_NOT_OPENED, path)
    assert ("outside" in failure.facts) == outside


def test_a_cpu_that_has_no_description_is_not_a_failure() -> None:
    """What ExecuTorch's thread pool says of most machines, at level I."""
    said = "Failed to open midr file /sys/devices/soc0/image_version"
    assert parse_console(log("mid 2025", said)).failures == ()
    (failure,) = parse_console(log("mid 2025", said.replace("midr ", ""))).failures
    assert failure.kind is Kind.FILE_NOT_OPENED


def test_an_npu_s_status_of_zero_is_not_a_failure() -> None:
    said = "NPU status=0x{}, qread=12, cmd_end_reached=1"
    assert parse_console(log("mid 2025", said.format("00000000"))).failures == ()
    (failure,) = parse_console(log("mid 2025", said.format("00000104"))).failures
    assert (failure.kind, failure.facts["qread"]) == (Kind.NPU_ERROR, "12")


@pytest.mark.parametrize(
    ("status", "meaning"),
    [
        (0x00000020, ""),  # the end of the commands was reached
        (0x00000804, "a bus abort on its AXI interface M1 while reading a command"),
        (0x00002004, "a bus abort on its AXI interface M0 while reading weights"),
        (0x00008004, "a bus abort on its AXI interface M0 while writing an output"),
        (0x0000F004, "a bus abort on its AXI interface M0 while using its channel 15"),
        (
            0xFFFF0180,
            "weights that cannot be decompressed and an ECC fault of its memory",
        ),
        (0x00000210, "a command that it does not know and a branch that leads out of the commands"),
    ],
)
def test_the_status_of_an_npu_in_words(status: int, meaning: str) -> None:
    said = f"E: NPU status=0x{status:08x}, qread=0, cmd_end_reached=0 (ethosu_device_u85.c:177)"
    (failure,) = parse_console(f"{said}\n".encode()).failures
    assert failure.facts.get("meaning", "") == meaning == npu_status(status)
