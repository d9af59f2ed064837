"""torchao looks for the range of a 16-bit activation in 100,000 steps; most of them move nothing.

It is most of what a test with such an activation costs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import lru_cache, wraps
from typing import Any

from harness.shortcuts.patch import Patch, is_the_source

OBSERVERS = "torchao.quantization.pt2e.observer"
# of HistogramObserver._non_linear_param_search (torchao 0.18.0)
_SEARCH = "9306a687ba73a3044c555e58d19ad69b11ee000779a3088e55da08b954b472eb"
_STEP = 1e-5  # of quantiles, in that function


def patches() -> Iterator[Patch]:
    """Where nobody has imported torchao, nobody quantises with it."""
    observer = getattr(sys.modules.get(OBSERVERS), "HistogramObserver", None)
    original = getattr(observer, "_non_linear_param_search", None)
    if original is None or not is_the_source(original, _SEARCH):
        return

    @wraps(original)
    def quick(self: Any) -> Any:
        found = range_of_histogram(self)
        return original(self) if found is None else found

    yield Patch(observer, "_non_linear_param_search", quick)


def range_of_histogram(observer: Any) -> tuple[Any, Any] | None:
    """What ``HistogramObserver._non_linear_param_search`` finds; None where that must be asked.

    There two quantiles come together in 100,000 steps, and for each the bins are compared one by
    one, each a tensor. The quantiles are always the same and the sums only grow, so the bin of
    every quantile is found at once, and steps that move nothing are passed over.
    """
    import numpy as np
    import torch

    if observer.histogram.dtype != torch.float32:
        return None
    bin_width = (observer.max_val - observer.min_val) / observer.bins
    total = torch.sum(observer.histogram).item()
    sums = torch.cumsum(observer.histogram, dim=0).numpy()
    if not (0 < total < np.inf and len(sums) == observer.bins and bool(np.all(np.diff(sums) >= 0))):
        return None
    alphas, betas = _quantiles()
    # torch compares a float32 tensor with a Python number in float32
    left = np.searchsorted(sums, (alphas[1:] * total).astype(np.float32), "left")
    right = np.searchsorted(sums, (betas[1:] * total).astype(np.float32), "right") - 1
    down = -right
    up, low, norm_min = 0, 0, float("inf")
    start, end = 0, observer.bins - 1
    while alphas[up] < betas[low]:
        first = min(end, max(start, int(left[up])))
        last = max(start, min(end, int(right[low])))
        next_start, next_end = start, end
        if first - start > end - last:
            next_start = first
            up += 1
        else:
            next_end = last
            low += 1
        if (next_start, next_end) == (start, end):
            if first == start:  # nothing moves until the upper quantile is below the last bin
                low = max(low, int(np.searchsorted(down, -end, "right")))
                low = min(low, len(down) - 1)
            continue
        norm = observer._compute_quantization_error(next_start, next_end)
        if norm > norm_min:
            break
        norm_min = norm
        start, end = next_start, next_end
    low_value = observer.min_val + bin_width * start
    return low_value, observer.min_val + bin_width * (end + 1)


@lru_cache(maxsize=1)
def _quantiles() -> tuple[Any, Any]:
    """The lower ones going up from 0 and the upper ones going down from 1, each step added."""
    import numpy as np

    steps = np.full(round(1 / _STEP) + 2, _STEP)
    return (
        np.add.accumulate(np.concatenate(([0.0], steps))),
        np.add.accumulate(np.concatenate(([1.0], -steps))),
    )
