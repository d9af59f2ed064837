"""The driver's checks of a payload, in its own words."""

from __future__ import annotations

import struct

import pytest

from harness.formats.ethosu import CONFIG_WORDS, ID_WORDS
from harness.sim.gdbstub.driver import DriverError, first_command_stream, verify_config
from tests.npu.assembling import U55_128, cop1, cop2

PAYLOAD = cop1(U55_128, [1, 2])


def test_the_stream_and_its_configuration() -> None:
    found = first_command_stream(PAYLOAD)
    assert (found.npu, found.size) == ((U55_128, 0), 8)
    assert PAYLOAD[found.start :] == struct.pack("<2I", 1, 2)


def test_every_truncation_is_refused() -> None:
    for size in range(len(PAYLOAD)):
        with pytest.raises(DriverError):
            first_command_stream(PAYLOAD[:size])


@pytest.mark.parametrize(
    ("payload", "line"),
    [
        (cop2(U55_128, [1, 2]), "844123971 is not correct, expected 31504f43"),
        (PAYLOAD + b"\0", "custom_data_size=0x29 not a multiple of 4"),
        (PAYLOAD[:-4], "the action at byte 28 is cut off"),
        (PAYLOAD[:12], "the action at byte 4 is cut off"),
        (PAYLOAD[:28], "there is no command stream in it"),
        (b"COP1\x09\0\0\0", "UNSUPPORTED driver_action_command: 9"),
    ],
)
def test_what_the_driver_says(payload: bytes, line: str) -> None:
    with pytest.raises(DriverError, match=line):
        first_command_stream(payload)


def words(product: str, macs: int) -> tuple[int, int]:
    return CONFIG_WORDS[product, macs], ID_WORDS[product]


@pytest.mark.parametrize(("product", "macs"), CONFIG_WORDS)
def test_an_npu_runs_what_was_compiled_for_it(product: str, macs: int) -> None:
    verify_config(words(product, macs), words(product, macs))


@pytest.mark.parametrize(
    ("npu", "optimizer", "lines"),
    [
        (words("u55", 128), words("u55", 256), ["macs_per_cc=7, optimizer.macs_per_cc=8"]),
        (
            words("u85", 512),
            words("u85", 1024),
            ["macs_per_cc=9, optimizer", "num_axi_ext=0, optimizer.num_axi_ext=1"],
        ),
        (
            words("u55", 256),
            words("u85", 256),
            ["product=0, optimizer.product=2", "cmd_stream_version=0", "npu.arch=1.0.6"],
        ),
    ],
)
def test_each_difference_is_a_line(
    npu: tuple[int, int], optimizer: tuple[int, int], lines: list[str]
) -> None:
    """AXI ports are compared between two U85 only: on the others the bits say something else."""
    with pytest.raises(DriverError) as caught:
        verify_config(npu, optimizer)
    assert len(caught.value.args) == len(lines)
    for said, line in zip(caught.value.args, lines, strict=True):
        assert line in said
