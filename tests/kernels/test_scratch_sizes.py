"""kernels/scratch_sizes.h asks for what ExecuTorch's exporter plans (CMSIS-NN's sizes).

Protects the check that refuses programs planned for another core: a wrong formula would refuse
good programs or accept bad ones.
"""

from __future__ import annotations

import ctypes
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.late import Late
from tools.clone import project_root

cmsis_nn = Late("executorch.backends.cortex_m.library.cmsis_nn")

SEED = 20260822
SHAPES = 2500
BACKENDS = {"MVE": 0, "DSP": 1, "SCALAR": 2}


@pytest.fixture(scope="module")
def formulas(tmp_path_factory: pytest.TempPathFactory) -> Any:
    target = tmp_path_factory.mktemp("scratch") / "sizes.so"
    source = Path(__file__).with_name("scratch_sizes.cpp")
    options = ["-std=c++17", "-shared", "-fPIC", f"-I{project_root() / 'targets' / 'runner'}"]
    command = ["c++", *options, str(source), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    library = ctypes.CDLL(str(target))
    for name in (
        "conv_size",
        "depthwise_size",
        "avg_pool_size",
        "matmul_size",
        "transpose_conv_size",
        "transpose_conv_reverse_size",
    ):
        getattr(library, name).restype = ctypes.c_size_t
    return library


def draw_axis(r: random.Random) -> dict[str, int]:
    while True:
        axis = {
            "size": r.choice([1, r.randint(1, 30)]),
            "kernel": r.choice([1, 1, 2, 3, 3, 5]),
            "stride": r.choice([1, 1, 2, 3, 4]),
            "pad": r.choice([0, 0, 1, 2, 3]),
            "dilation": r.choice([1, 1, 1, 1, 2]),
        }
        room = axis["size"] + 2 * axis["pad"] - axis["dilation"] * (axis["kernel"] - 1) - 1
        if room >= 0:
            return {**axis, "out": room // axis["stride"] + 1}


def packed(n: int, c_in: int, c_out: int, h: dict[str, int], w: dict[str, int]) -> Any:
    keys = ("size", "out", "kernel", "stride", "pad", "dilation")
    values = [n, c_in, c_out, *(h[k] for k in keys), *(w[k] for k in keys)]
    return (ctypes.c_int32 * len(values))(*values)


def geometry(n: int, c_in: int, c_out: int, h: dict[str, int], w: dict[str, int]) -> Any:
    return {
        "input_nhwc": [n, h["size"], w["size"], c_in],
        "output_nhwc": [n, h["out"], w["out"], c_out],
        **{
            f"{name}_hw": [h[key], w[key]]
            for name, key in (("padding", "pad"), ("stride", "stride"), ("dilation", "dilation"))
        },
    }


@pytest.mark.parametrize("backend", BACKENDS)
def test_convolution_sizes(backend: str, formulas: Any) -> None:
    print(f"seed {SEED}")
    r = random.Random(SEED)
    for _ in range(SHAPES):
        h, w = draw_axis(r), draw_axis(r)
        groups, depth = r.choice([1, 1, 1, 2, 3]), r.randint(1, 40)
        n, c_in, c_out = r.randint(1, 3), groups * depth, groups * r.randint(1, 40)
        shape = geometry(n, c_in, c_out, h, w)
        wanted = cmsis_nn.convolve_wrapper_buffer_size(
            getattr(cmsis_nn.Backend, backend),
            cmsis_nn.DataType.A8W8,
            filter_nhwc=[c_out, h["kernel"], w["kernel"], depth],
            **shape,
        )
        got = formulas.conv_size(BACKENDS[backend], packed(n, c_in, c_out, h, w), depth)
        assert got == wanted, (shape, depth)


@pytest.mark.parametrize("backend", BACKENDS)
def test_depthwise_sizes(backend: str, formulas: Any) -> None:
    print(f"seed {SEED}")
    r = random.Random(SEED)
    for _ in range(SHAPES):
        h, w = draw_axis(r), draw_axis(r)
        n, c_in = r.choice([1, 1, 2]), r.choice([1, r.randint(1, 150)])
        ratio = r.choice([1, 1, 2, 9])
        shape = geometry(n, c_in, c_in * ratio, h, w)
        wanted = cmsis_nn.depthwise_conv_wrapper_buffer_size(
            getattr(cmsis_nn.Backend, backend),
            cmsis_nn.DataType.A8W8,
            filter_nhwc=[c_in * ratio, h["kernel"], w["kernel"], 1],
            ch_mult=ratio,
            **shape,
        )
        got = formulas.depthwise_size(BACKENDS[backend], packed(n, c_in, c_in * ratio, h, w))
        assert got == wanted, (shape, ratio)


@pytest.mark.parametrize("backend", BACKENDS)
def test_average_pool_sizes(backend: str, formulas: Any) -> None:
    for channels in range(1, SHAPES):
        wanted = cmsis_nn.avgpool_buffer_size(
            getattr(cmsis_nn.Backend, backend),
            cmsis_nn.DataType.A8W8,
            dim_dst_width=channels % 7 + 1,
            ch_src=channels,
        )
        assert formulas.avg_pool_size(BACKENDS[backend], channels) == wanted, channels


@pytest.mark.parametrize("backend", BACKENDS)
def test_matmul_sizes(backend: str, formulas: Any) -> None:
    for columns in range(1, 200):
        wanted = cmsis_nn.fully_connected_buffer_size(
            getattr(cmsis_nn.Backend, backend),
            cmsis_nn.DataType.A8W8,
            filter_nhwc=[columns % 11 + 1, -1, -1, columns],
        )
        assert formulas.matmul_size(BACKENDS[backend], columns) == wanted, columns


@pytest.mark.parametrize("backend", BACKENDS)
def test_transposed_convolution_sizes(backend: str, formulas: Any) -> None:
    print(f"seed {SEED}")
    r = random.Random(SEED)
    for _ in range(SHAPES):
        h, w = draw_axis(r), draw_axis(r)
        for axis in (h, w):
            axis["pad"] = 0
            span = axis["dilation"] * (axis["kernel"] - 1)
            axis["out"] = (axis["size"] - 1) * axis["stride"] + span + 1
        n, c_in, c_out = r.randint(1, 2), r.choice([16, 17, r.randint(1, 40)]), r.randint(1, 40)
        shape = {
            **geometry(n, c_in, c_out, h, w),
            "padding_offsets_hw": [0, 0],
            "filter_nhwc": [c_out, h["kernel"], w["kernel"], c_in],
        }
        for name in ("", "_reverse"):
            probe = getattr(cmsis_nn, f"transpose_conv{name}{'_conv' if name else ''}_buffer_size")
            wants = {**shape}
            if name:
                del wants["output_nhwc"]
            wanted = probe(
                getattr(cmsis_nn.Backend, backend),
                cmsis_nn.DataType.A8W8,
                **wants,
                input_offset=0,
                output_offset=0,
                activation_min=-128,
                activation_max=127,
            )
            ours = getattr(formulas, f"transpose_conv{name}_size")
            assert ours(BACKENDS[backend], packed(n, c_in, c_out, h, w)) == wanted, shape
