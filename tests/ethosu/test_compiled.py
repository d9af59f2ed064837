"""The compiled arithmetic beside numpy where the recorded cases do not go."""

from __future__ import annotations

import numpy as np
import pytest

from harness.ethosu import kernel_library
from harness.ethosu.blob import Blob, read_actions, read_blob
from harness.ethosu.compiled import NUMPY, Arithmetic, compiled_arithmetic
from harness.ethosu.errors import AccessError
from harness.ethosu.model import DecodedStream, Network
from harness.ethosu.plan import ConvolutionPlan
from tests.ethosu.assembling import U85_256, cop1, pool, words
from tests.ethosu.assembling import blob as blob_of
from tests.ethosu.recorded import Recorded, recorded_cases


def case_of(start: str) -> Recorded:
    return next(case for case in recorded_cases() if case.name.startswith(start))


def test_numpy_is_used_when_it_is_asked_for() -> None:
    case = case_of("pointwise")
    assert Network(case.blob, arithmetic=NUMPY).program.arithmetic == "numpy"
    assert Network(case.blob).program.arithmetic == "compiled"


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_do_not_depend_on_the_cores(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.ethosu.compiled._PARTED", 1)
    for case in recorded_cases()[:20]:
        network = Network(case.blob, arithmetic=compiled_arithmetic(threads))
        assert tuple(network.run(case.inputs)[0]) == case.expected


def bias_of(blob: Blob) -> int | None:
    """The first byte of the weights that is a bias of a convolution."""
    for operation in DecodedStream(read_actions(blob.commands))._operations.distinct:
        if isinstance(operation.prepared.plan, ConvolutionPlan):
            region, address, _ = operation.prepared.plan.parameters.spans[-1]
            return address if region == 0 else None
    return None


@pytest.mark.parametrize("first", [0, 2])
@pytest.mark.parametrize("start", ["convolution", "depthwise", "transposed"])
def test_scales_that_change_between_two_inferences(start: str, first: int) -> None:
    """A job keeps weights in its own order; a guest may load others to the same place."""
    blobs = [read_blob(case.blob) for case in recorded_cases() if case.name.startswith(start)]
    blob, at = next((blob, at) for blob in blobs if (at := bias_of(blob)) is not None)
    actions = read_actions(blob.commands)
    streams = [DecodedStream(actions, arithmetic=a) for a in (compiled_arithmetic(), NUMPY)]
    weights = np.frombuffer(blob.weights, np.uint8)
    changed = weights.copy()
    changed[at + first : at + 3] ^= 0x55
    scratch = np.random.default_rng(5).integers(0, 256, blob.scratch_size).astype(np.uint8)
    seen = []
    for content in (weights, changed, weights):
        results = []
        for stream in streams:
            regions = {0: content.copy(), 1: scratch.copy(), 2: np.zeros(1 << 20, np.uint8)}
            stream.execute(regions)
            results.append(regions[1].tobytes())
        assert results[0] == results[1]
        seen.append(results[0])
    assert seen[0] == seen[2] != seen[1]


def test_an_error_is_the_one_of_numpy() -> None:
    """A region that is too short: the same words, and nothing was written before them."""
    case = case_of("pointwise")
    blob = read_blob(case.blob)
    actions = read_actions(blob.commands)
    told = []
    for arithmetic in (compiled_arithmetic(), NUMPY):
        scratch = np.zeros(40, np.uint8)
        regions = {0: np.frombuffer(blob.weights, np.uint8), 1: scratch}
        with pytest.raises(AccessError, match="has 0x28 bytes") as error:
            DecodedStream(actions, arithmetic=arithmetic).execute(regions)
        told.append((str(error.value), scratch.tobytes()))
    assert told[0] == told[1]


def test_what_a_guest_calls_a_region_is_no_chaining_buffer() -> None:
    """Their numbers begin behind those that a stream can have."""
    for region in (7, 8, 9):
        stream = words("u85", *pool(IFM_REGION=region))
        data = blob_of(cop1(U85_256, stream))
        for arithmetic in (compiled_arithmetic(), NUMPY):
            with pytest.raises(AccessError, match=f"IFM uses region {region}, which does not"):
                Network(data, arithmetic=arithmetic).run([bytes(256)])


def test_a_missing_compiler_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of("pointwise")
    monkeypatch.setattr(
        kernel_library, "load", lambda: kernel_library.Kernel(None, "g++ is not installed")
    )
    outputs, stats = Network(case.blob).run(case.inputs)
    assert stats.arithmetic == "numpy (g++ is not installed)"
    assert tuple(outputs) == case.expected
    assert compiled_arithmetic() == Arithmetic("numpy (g++ is not installed)")
