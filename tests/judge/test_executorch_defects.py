"""What ExecuTorch computes wrongly or refuses is found in a program, and has a name.

Protects a PASS from meaning only that our runner is right. Each known defect is in the program of
one network here; and of random calls of portable kernels, over layouts and ranks, the wheel's own
runtime refuses or computes wrongly those that the file names, and no others. HIL_RUNTIME_CASES asks
for more of them, HIL_RUNTIME_SEED for others.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from harness.config.known import known_defects, require_known_defect
from harness.config.models import ModelSource
from harness.core.errors import MalformedFile
from harness.export.program import Program
from harness.judge.executorch_defects import VIEW, _Tensor, defects_in
from tests.kernels.kernel_cases import MAKERS
from tests.kernels.kernel_draw import Draw
from tests.kernels.kernel_program import Case, activations_of, build
from tests.late import Late
from tests.thorough import amount

wheel_runtime = Late("tests.judge.wheel_runtime")

DEFECTIVE = """
import torch
torch.manual_seed(0)
class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other = torch.nn.Conv2d(3, 4, 3), torch.nn.Conv2d(3, 3, 3)
        self.last = torch.nn.Conv2d(4, 2, 1)
    def forward(self, x):
        y = self.one(x)
        shuffled = y.view(1, 2, 2, 6, 6).permute(0, 2, 1, 3, 4)
        last = self.last(shuffled.reshape(1, 4, 6, 6))
        return torch.cat((y, self.other(x)), dim=1), y[:, :, 1, :], shuffled, last
ModelUnderTest = Network().eval()
ModelInputs = (torch.randn(1, 3, 8, 8),)
"""
SEED = int(os.environ.get("HIL_RUNTIME_SEED", "20261124"))
CASES = int(os.environ.get("HIL_RUNTIME_CASES", amount(20, 100)))
AT_ONCE = 20
# Not those that round in another way than torch, or take no such sizes.
KEEPING = tuple(
    f"aten.{name}"
    for name in (
        "cat",
        "select_copy",
        "slice_copy",
        "squeeze_copy",
        "unsqueeze_copy",
        "permute_copy",
        "clone",
        "expand_copy",
        "split_with_sizes_copy",
        "index",
        "topk",
        "argmax",
        "mean",
        "where",
        "add",
        "sub",
        "mul",
        "leaky_relu",
        "sigmoid",
        "tanh",
        "max_pool2d_with_indices",
        "_softmax",
        "full_like",
        "convolution",
    )
)


def test_each_known_defect_is_found_where_it_is(
    exported: Callable[..., Program], user_model: Callable[..., ModelSource]
) -> None:
    defects = defects_in(exported(user_model(DEFECTIVE)).pte_path)
    found = {defect.name: defect for defect in defects}
    assert set(found) >= {"view-of-channels-last", "cat-of-channels-last", "mixed-dim-orders"}
    assert found["transpose-rank"].operator == "cortex_m::transpose.out"
    assert found["cat-of-channels-last"].operator == "aten::cat.out"
    assert found["plain-image"].operator == "cortex_m::quantized_conv2d.out"
    select, view = found["mixed-dim-orders"], found["view-of-channels-last"]
    assert select.place.endswith(
        "(aten::select_copy.int_out of [1, 4, 6, 6] in order [0, 2, 3, 1], "
        "[1, 4, 6] in order [0, 1, 2])"
    )
    assert view.operator == VIEW
    assert str(view).startswith(
        "the exported program (ExecuTorch's passes), not your model: known defect `view-of-"
    )
    assert str(select).startswith("ExecuTorch's kernel, which refuses what its exporter makes, not")
    assert metadata.version("executorch") in known_defects().seen_in


def test_a_network_without_such_operators_has_none(exported: Callable[..., Program]) -> None:
    assert defects_in(exported("ds_cnn").pte_path) == ()


def test_a_program_that_cannot_be_searched_is_not_one_without_defects(
    exported: Callable[..., Program], tmp_path: Path
) -> None:
    """Each is an error of its own kind: no program, numbers of what it does not have, two of them
    and half of one."""
    file = tmp_path / "no.pte"
    whole = exported("ds_cnn").pte_path.read_bytes()
    order = bytes((4, 0, 0, 0, 0, 2, 3, 1))  # a vector of four: of a tensor's dimensions
    for content in (b"no program" * 20, whole.replace(order, order[:4] + b"\0\7\3\1"), whole[:999]):
        assert content != whole
        file.write_bytes(content)
        with pytest.raises(MalformedFile):
            defects_in(file)


def test_no_edit_of_a_program_ends_the_search_with_another_error(tmp_path: Path) -> None:
    r = random.Random(SEED)
    whole, file = build(_cases(SEED)).pte, tmp_path / "edited.pte"
    ends: Counter[str] = Counter()
    for _ in range(amount(150, 1000)):
        content = bytearray(whole)
        for _ in range(r.choice([1, 2, 8])):
            content[r.randrange(8, len(content))] = r.choice([0, 1, 127, 255])
        file.write_bytes(content)
        try:
            defects_in(file)
            ends["searched"] += 1
        except MalformedFile as error:
            ends["contradicts itself" if "contradicts" in error.message else "malformed"] += 1
    assert len(ends) == 3, ends


def test_a_view_is_wrong_where_elements_lie_elsewhere() -> None:
    r = random.Random(SEED)
    wrong = 0
    for _ in range(400):
        shape = [r.choice([1, 1, 2, 3, 4]) for _ in range(r.randint(1, 5))]
        other = r.sample(shape, len(shape))
        if r.random() < 0.5:
            other = [*other[:-2], int(np.prod(other[-2:]))]
        one, two = (
            _Tensor(tuple(s), tuple(r.sample(range(len(s)), len(s)))) for s in (shape, other)
        )
        places = [
            np.arange(np.prod(t.sizes)).reshape(t.sizes).transpose(t.order).ravel()
            for t in (one, two)
        ]
        assert two.is_wrong_view_of(one) is not bool((places[0] == places[1]).all()), (one, two)
        wrong += two.is_wrong_view_of(one)
    assert 50 < wrong < 350


def _cases(seed: int) -> list[Case]:
    """Of portable operators on floats that are not all in the plain order."""
    found: list[Case] = []
    groups = sorted(MAKERS)
    r = random.Random(seed)
    while len(found) < AT_ONCE:
        maker, _ = MAKERS[r.choice(groups)]
        try:
            case = maker(Draw(r.randrange(1 << 30)))
        except (RuntimeError, IndexError):  # its groups go through lists
            continue
        given = list(activations_of(case))
        floats = bool(given) and str(given[0].dtype) == "torch.float32"
        otherwise = any(list(tensor.dim_order()) != [*range(tensor.dim())] for tensor in given)
        found += [case] if floats and otherwise and case.operator.startswith(KEEPING) else []
    return found


def test_the_wheels_runtime_does_what_the_file_says(tmp_path: Path) -> None:
    print("seed", SEED)
    seen: Counter[str] = Counter()
    for first in range(0, CASES, AT_ONCE):
        file = tmp_path / f"{first}.pte"
        file.write_bytes(build(_cases(SEED + first)).pte)
        named = {d.instruction: d for d in defects_in(file) if d.operator != VIEW}
        for number, outcome in wheel_runtime.outcomes(file).items():
            defect = named.get(number)
            seen[outcome] += 1
            wanted = "right" if defect is None else str(defect.known.trouble)
            accidental = (outcome, wanted) == ("right", "wrong")  # with such values
            assert accidental or outcome in ("unknown", wanted), (file, number, defect)
    print(dict(seen))
    assert seen["right"]
    assert seen["refused"]


def test_a_name_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="'cat'; there are: view-of-channels-last, cat-of-"):
        require_known_defect("cat")
