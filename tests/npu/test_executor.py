"""Jobs of a stream: weights that change, faults."""

from __future__ import annotations

import numpy as np
import pytest

from harness.npu.blob import Blob, read_actions, read_blob
from harness.npu.errors import AccessError
from harness.npu.executor import Memory
from harness.npu.model import DecodedStream, Network
from tests.npu.assembling import U85_256, cop1, pool, words
from tests.npu.assembling import blob as blob_of
from tests.npu.recorded import Recorded, recorded_cases


def case_of(start: str) -> Recorded:
    return next(case for case in recorded_cases() if case.name.startswith(start))


def bias_of(blob: Blob) -> int | None:
    """The first byte of the weights that is a bias of a convolution."""
    for job in DecodedStream(read_actions(blob.commands))._operations.jobs:
        if job.kind in ("kConvolution", "kDepthwise") and job.parameters is not None:
            region, address, _ = job.parameters.spans[-1]
            return address if region == 0 else None
    return None


@pytest.mark.parametrize("first", [0, 2])
@pytest.mark.parametrize("start", ["convolution", "depthwise", "transposed"])
def test_scales_that_change_between_two_inferences(start: str, first: int) -> None:
    """A job keeps weights in its own order; a guest may load others to the same place."""
    blobs = [read_blob(case.blob) for case in recorded_cases() if case.name.startswith(start)]
    blob, at = next((blob, at) for blob in blobs if (at := bias_of(blob)) is not None)
    actions = read_actions(blob.commands)
    stream = DecodedStream(actions)
    weights = np.frombuffer(blob.weights, np.uint8)
    changed = weights.copy()
    changed[at + first : at + 3] ^= 0x55
    scratch = np.random.default_rng(5).integers(0, 256, blob.scratch_size).astype(np.uint8)
    seen = []
    for content in (weights, changed, weights):
        results = []
        for again in (stream, DecodedStream(actions)):
            regions = {0: content.copy(), 1: scratch.copy(), 2: np.zeros(1 << 20, np.uint8)}
            again.execute(regions)
            results.append(regions[1].tobytes())
        assert results[0] == results[1]
        seen.append(results[0])
    assert seen[0] == seen[2] != seen[1]


@pytest.mark.parametrize("end", [39, 40, 41])
def test_what_ends_behind_its_region_is_not_read(end: int) -> None:
    """Not even when one byte is missing: numpy would give what there is."""
    memory = Memory({0: np.arange(40, dtype=np.uint8)}, np.zeros(0, np.uint8))
    if end <= 40:
        assert memory.content(0, 36, end - 36, "WEIGHT", 0) == bytes(range(36, end))
        return
    with pytest.raises(AccessError, match="WEIGHT reaches 0x24"):
        memory.content(0, 36, end - 36, "WEIGHT", 0)


def test_nothing_is_written_before_an_error() -> None:
    """A region that is too short."""
    blob = read_blob(case_of("pointwise").blob)
    scratch = np.zeros(40, np.uint8)
    regions = {0: np.frombuffer(blob.weights, np.uint8), 1: scratch}
    with pytest.raises(AccessError, match="has 0x28 bytes"):
        DecodedStream(read_actions(blob.commands)).execute(regions)
    assert not scratch.any()


def test_a_region_that_cannot_be_written_to_is_refused() -> None:
    blob = read_blob(case_of("pointwise").blob)
    regions = {1: np.frombuffer(bytes(blob.scratch_size), np.uint8)}
    with pytest.raises(ValueError, match="region 1 is not bytes that can be written to"):
        DecodedStream(read_actions(blob.commands)).execute(regions)


def test_what_a_guest_calls_a_region_is_not_a_chaining_buffer() -> None:
    """Their numbers begin behind those that a stream can have."""
    for region in (7, 8, 9):
        stream = words("u85", *pool(IFM_REGION=region))
        data = blob_of(cop1(U85_256, stream))
        with pytest.raises(AccessError, match=f"IFM uses region {region}, which does not"):
            Network(data).run([bytes(256)])
