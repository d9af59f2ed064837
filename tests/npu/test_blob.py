"""Blob and driver actions: what is right is read, each fault is named with its place."""

from __future__ import annotations

import struct

import pytest

from harness.npu.blob import find_blobs, read_actions, read_blob
from harness.npu.errors import BlobError, Unsupported
from tests.npu.assembling import (
    INPUT,
    U55_128,
    blob,
    block,
    cop1,
    cop2,
    copying,
    pool,
    run,
    tensors,
    words,
)


@pytest.mark.parametrize("container", [cop1, cop2])
def test_both_containers_run(container: object) -> None:
    stream = words("u55", *pool())
    outputs, stats = run(blob(container(U55_128, stream)), [INPUT])  # type: ignore[operator]
    assert outputs == [INPUT]
    assert stats.config.name == "ethos-u55-128"


def test_external_block_comes_from_named_data() -> None:
    """The payload of an external block is a key, not the data."""
    data = copying()
    weights = block("weight_data", b"")
    external = data.replace(weights, block("weight_data", b"key", 1))
    assert read_blob(external, {"key": b"W" * 7}).weights == b"W" * 7
    with pytest.raises(BlobError, match="named data 'key'"):
        read_blob(external)
    with pytest.raises(BlobError, match="external flag 2"):
        read_blob(data.replace(weights, block("weight_data", b"key", 2)))


def test_blobs_are_found_inside_a_program() -> None:
    one = copying()
    assert find_blobs(b"junk" + one + b"more" + one) == [one, one]
    with pytest.raises(BlobError, match="before 'vela_end_stream'"):
        find_blobs(one[:-32])


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (b"", "ends inside a block header"),
        (block("cmd_data", b""), "the first block is 'cmd_data'"),
        (block("vela_bin_stream", b"") + block("what", b""), "unknown block 'what'"),
        (block("vela_bin_stream", b"") * 2, "appears twice"),
        (block("vela_bin_stream", b"") + block("vela_end_stream", b""), "no block 'cmd_data'"),
        (copying()[:-32], "ends inside a block header"),
        (struct.pack("<16sIB11s", b"vela_bin_stream", 99, 0, bytes(11)), "says 99 bytes"),
        (blob(b"COP9"), "not COP1 or COP2"),
        (blob(b"COP1"), "no command stream"),
        (blob(b"COP1\x09\0\0\0"), "unknown driver action 9"),
        (blob(b"COP1\x02\0\x01\0" + bytes(4)), "without a configuration"),
        (blob(b"COP1\x01\0\0"), "inside a word"),
        (blob(cop1(U55_128, [1, 2])[:-4]), "says 2 words, 1 remain"),
        (blob(b"COP2"), "header is cut short"),
        (blob(cop2(U55_128, [0]) + b"\0\0\0\0"), "COP2 says"),
        (blob(cop2(U55_128, [0]).replace(b"VEUM", b"VEUX")), "not VEUM"),
        (blob(cop1(U55_128, [0]), io=b"\0"), "too short for its count"),
        (blob(cop1(U55_128, [0]), io=struct.pack("<i", 3)), "counts 3 tensors"),
        (blob(cop1(U55_128, [0]), io=struct.pack("<i", 0) + bytes(40)), "counts 0 tensors"),
        (
            blob(cop1(U55_128, [0]), io=tensors(((1, 1, 1, 0, 1, 1), 1, 0, 1))),
            "has an impossible shape or place",
        ),
    ],
)
def test_malformed_container(broken: bytes, message: str) -> None:
    with pytest.raises(BlobError, match=message) as caught:
        run(broken, [INPUT])
    assert 0 <= caught.value.offset <= len(broken)


def test_unknown_npu_sizes() -> None:
    with pytest.raises(Unsupported, match="no u55 has that many MACs"):
        read_actions(cop1(0 << 28 | 9, [0]))
    with pytest.raises(Unsupported, match=r"CONFIG\.product"):
        read_actions(cop1(7 << 28 | 8, [0]))


@pytest.mark.parametrize("container", [cop1, cop2])
def test_every_truncation_is_an_error_of_this_room(container: object) -> None:
    """Never a struct.error or an IndexError; of the blob, and of the commands in a sound blob."""
    commands = container(U55_128, words("u55", *pool()))  # type: ignore[operator]
    whole = blob(commands)
    for size in range(len(whole)):
        with pytest.raises(BlobError):
            read_blob(whole[:size])
    for size in range(len(commands)):
        with pytest.raises(BlobError):
            read_actions(commands[:size])
