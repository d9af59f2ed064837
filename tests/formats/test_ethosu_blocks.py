"""Blocks of a Vela stream: what is damaged is named with its place, and nothing outside is read."""

from __future__ import annotations

import random
import re
import struct

import pytest

from harness.core.errors import MalformedFile
from harness.formats.ethosu import FIRST, HEADER_BYTES, LAST, find_streams, walk
from tests.npu.assembling import block, copying
from tools.clone import project_root

STREAM = block(FIRST, b"") + block("cmd_data", b"12345") + block("inputs", b"k", 1)
STREAM += block(LAST, b"")


def test_every_block_is_given_with_its_place() -> None:
    found = list(walk(STREAM + b"and more"))
    assert [b.name for b in found] == [FIRST, "cmd_data", "inputs", LAST]
    assert [b.external for b in found] == [False, False, True, False]
    assert [b.padding for b in found] == [0, 11, 15, 0]
    assert STREAM[found[1].data : found[1].data + found[1].length] == b"12345"
    assert [b.start for b in found[1:]] == [b.end for b in found[:-1]]
    assert found[-1].end == len(STREAM)


@pytest.mark.parametrize("stream", [STREAM, copying()], ids=["short", "whole"])
def test_every_truncation_is_named(stream: bytes) -> None:
    for size in range(len(stream)):
        with pytest.raises(MalformedFile) as caught:
            list(walk(memoryview(stream)[:size]))
        assert 0 <= caught.value.offset <= size


@pytest.mark.parametrize(
    ("damaged", "says", "offset"),
    [
        (STREAM[32:], "the first block is 'cmd_data'", 0),
        (STREAM[:48] + struct.pack("<I", 99_999) + STREAM[52:], "says 99999 bytes", 32),
        (STREAM[:52] + b"\2" + STREAM[53:], "external flag 2, not 0 or 1", 32),
        (STREAM[:-HEADER_BYTES], "inside a block header, before 'vela_end_stream'", 128),
        (b"vela_bin_stream?" + STREAM[16:], "the first block is 'vela_bin_stream?'", 0),
    ],
)
def test_what_is_damaged_is_named(damaged: bytes, says: str, offset: int) -> None:
    with pytest.raises(MalformedFile) as caught:
        list(walk(damaged))
    assert says in caught.value.what
    assert caught.value.offset == offset


def test_a_name_is_all_of_its_sixteen_bytes() -> None:
    """As the runner compares them: what stands behind a zero is part of the name."""
    changed = bytearray(STREAM)
    changed[32 + 12] = ord("x")
    assert [b.name for b in walk(bytes(changed))][1] == "cmd_data\0\0\0\0x"


def test_padding_may_be_cut_off_behind_the_last_block() -> None:
    stream = block(FIRST, b"") + block(LAST, b"12345")[: HEADER_BYTES + 7]
    *_, last = walk(stream)
    assert (last.padding, last.end) == (2, len(stream))


def test_no_damage_leads_out_of_the_buffer() -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    draw, whole = random.Random(seed), copying()
    for _ in range(500):
        stream = bytearray(whole)
        for _ in range(draw.randrange(1, 4)):
            stream[draw.randrange(len(stream))] = draw.randrange(256)
        found, offset = [], 0
        try:
            found = list(walk(bytes(stream)))
        except MalformedFile as error:
            offset = error.offset
        assert 0 <= offset <= len(stream)
        assert all(0 <= b.start < b.data <= b.data + b.length <= len(stream) for b in found)


def test_streams_are_found_in_a_larger_file() -> None:
    data = b"junk" + STREAM + b"between" + STREAM
    assert [data[start:end] for start, end in find_streams(data)] == [STREAM, STREAM]
    assert list(find_streams(b"nothing")) == []


def test_an_end_inside_the_data_is_not_the_end() -> None:
    """Weights may hold any bytes."""
    stream = block(FIRST, b"") + block("weight_data", block(LAST, b"")) + block(LAST, b"")
    assert list(find_streams(stream)) == [(0, len(stream))]


def test_damage_of_a_found_stream_is_placed_in_the_file() -> None:
    with pytest.raises(MalformedFile) as caught:
        list(find_streams(b"junk" + STREAM[:-HEADER_BYTES]))
    assert caught.value.offset == 4 + len(STREAM) - HEADER_BYTES


def test_the_runner_knows_the_same_blocks() -> None:
    """Protects the two readers of one format from growing apart."""
    source = (project_root() / "targets/runner/ethosu/vela_stream.cpp").read_text()
    table = re.search(r"kBlockNames\[kCount\] = \{(.*?)\};", source, re.S)
    assert table is not None
    assert re.findall(r'"(\w+)"', table[1]) == [b.name for b in walk(copying())]
    assert f"kHeaderBytes = {HEADER_BYTES};" in source
