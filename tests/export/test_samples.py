"""Drawn inputs follow the range of each feature where the features differ, else of the input."""

from __future__ import annotations

from tests.late import Late

np = Late("numpy")
samples = Late("harness.export.child.samples")
torch = Late("torch")


def _drawn(given: list[tuple[object, ...]], count: int = 20) -> object:
    generator = np.random.default_rng(1)
    ranges = samples.observed_ranges(given)
    return torch.stack([samples.draw(ranges, generator, whole_range=True)[0] for _ in range(count)])


def _features(scale: list[float], shape: tuple[int, ...], seed: int = 3) -> list[tuple[object]]:
    generator = np.random.default_rng(seed)
    return [
        (torch.from_numpy(generator.uniform(-1, 1, shape) * np.array(scale)).float(),)
        for _ in range(8)
    ]


def test_a_feature_that_is_300_times_the_others_does_not_stretch_them() -> None:
    drawn = _drawn(_features([300.0] + [1.0] * 15, (1, 16)))
    assert drawn[..., 0].abs().max() > 150
    assert drawn[..., 1:].abs().max() <= 1


def test_channels_of_an_image_have_ranges_of_their_own() -> None:
    scale = np.array([1.0, 100.0]).reshape(2, 1, 1)
    drawn = _drawn(_features(scale, (1, 2, 4, 4)))
    assert drawn[:, :, 0].abs().max() <= 1
    assert drawn[:, :, 1].abs().max() > 50


def test_features_that_are_alike_share_one_range() -> None:
    ranges = samples.observed_ranges(_features([1.0] * 16, (1, 16)))
    assert ranges[0].low.shape == ranges[0].high.shape == ()


def test_one_sample_says_nothing_of_its_features() -> None:
    ranges = samples.observed_ranges(_features([300.0] + [1.0] * 15, (1, 16))[:1])
    assert ranges[0].low.shape == ()


def test_a_constant_feature_next_to_a_live_one_stays_constant() -> None:
    drawn = _drawn(_features([0.0, 5.0], (1, 2)))
    assert (drawn[..., 0] == 0).all()
    assert len(set(drawn[..., 1].flatten().tolist())) > 10


def test_a_constant_input_is_widened_around_zero() -> None:
    drawn = _drawn([(torch.full((1, 3), 2.0),)] * 2)
    assert drawn.min() < -1
    assert drawn.max() > 1


def test_whole_numbers_stay_in_the_range_of_their_feature() -> None:
    given = [(torch.tensor([[n % 2, 1000 * n]]),) for n in range(8)]
    drawn = _drawn(given, 50)
    assert set(drawn[..., 0].flatten().tolist()) == {0, 1}
    assert drawn[..., 1].max() > 3000


def test_calibration_spans_a_small_input() -> None:
    """Two scalars: each end of each is met, with both ends of the other, so that no input is
    clipped. A large input is left as it was drawn, and so are integers."""
    given = [(torch.tensor([0.3]), torch.tensor([[0.1, -0.2]]), torch.rand(32), torch.tensor([4]))]
    ranges = samples.shipped_ranges(given[0][:3]) + samples.observed_ranges(given)[3:]
    generator = np.random.default_rng(2)
    drawn = [samples.draw(ranges, generator) for _ in range(16)]
    spanned = samples.spanning(drawn, ranges)
    assert len(spanned) == 16
    corners = {(float(a), *map(float, b.flatten())) for a, b, _, _ in spanned[:8]}
    assert len(corners) == 8
    assert {abs(number) for corner in corners for number in corner} == {1.0}
    for before, after in zip(drawn, spanned, strict=True):
        assert torch.equal(before[2], after[2])
        assert torch.equal(before[3], after[3])
    assert all(torch.equal(a[0], b[0]) for a, b in zip(drawn[8:], spanned[8:], strict=True))
