"""A user's model of one max-pool on random data, for ``hil bench mutants``: the suite's own data
rise along the rows, so that it cannot see all of what may be wrong in a window."""

from __future__ import annotations

import torch

ModelUnderTest = torch.nn.MaxPool2d(3, stride=2, padding=1)
ModelInputs = (torch.rand(1, 20, 9, 7, generator=torch.Generator().manual_seed(0)) * 4 - 2,)
