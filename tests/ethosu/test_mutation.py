"""Each rule, broken on purpose, is noticed: a recorded case of its family no longer agrees.

A rule whose break goes unnoticed is a rule that the recorded cases do not pin down. It is numpy's
that is broken: the compiled arithmetic has to agree with it, which other tests hold it to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.ethosu import accumulate, common, featuremap, model, output_stage
from harness.ethosu.compiled import NUMPY
from harness.ethosu.errors import EthosUError
from harness.ethosu.model import Network
from harness.ethosu.u55 import elementwise as elementwise_u55
from harness.ethosu.u55 import engine as engine_u55
from harness.ethosu.u55 import stages as stages_u55
from harness.ethosu.u55 import weights as weights_u55
from harness.ethosu.u85 import elementwise as elementwise_u85
from harness.ethosu.u85 import engine as engine_u85
from harness.ethosu.u85 import resize as resize_u85
from harness.ethosu.u85 import stages as stages_u85
from harness.ethosu.u85 import weights as weights_u85
from tests.ethosu.recorded import recorded_cases

Patch = pytest.MonkeyPatch
Break = Callable[[Patch], None]


def half_dropped(patch: Patch) -> None:
    original = output_stage.Scale.half
    patch.setattr(output_stage.Scale, "half", property(lambda s: original.fget(s) * 0))


def ofm_zero_point_dropped(patch: Patch) -> None:
    original = output_stage.Finish.apply
    patch.setattr(
        output_stage.Finish, "apply", lambda s, a, n: original(replace(s, zero_point=0), a, n)
    )


def bias_dropped(patch: Patch) -> None:
    original = output_stage.Finish.apply
    patch.setattr(
        output_stage.Finish, "apply", lambda s, a, n: original(replace(s, bias=None), a, n)
    )


def ifm_zero_point_dropped(patch: Patch) -> None:
    patch.setattr(accumulate, "centred", lambda values, _, dtype: values.astype(dtype))


def clamp_ignored(module: Any) -> Break:
    def apply(patch: Patch) -> None:
        if module is stages_u55:
            patch.setattr(module, "_clamp", lambda dtype, clamp: (-128, 127))
        else:
            patch.setattr(module, "_clamp", lambda registers, dtype: (-128, 127))

    return apply


def constant(module: Any, name: str, value: Any) -> Break:
    return lambda patch: patch.setattr(module, name, value)


def layout(cls: type, name: str, value: Any) -> Break:
    return lambda patch: patch.setattr(cls, name, property(lambda self: value))


def ofm_ublock_changed(patch: Patch) -> None:
    original = weights_u55.reorder
    patch.setattr(
        weights_u55,
        "reorder",
        lambda s, shape, at: original(s, replace(shape, ofm_ublock=12 - shape.ofm_ublock), at),
    )


def part_kernel_swapped(patch: Patch) -> None:
    original = weights_u55.reorder
    patch.setattr(
        weights_u55,
        "reorder",
        lambda s, shape, at: original(s, replace(shape, part_kernel=not shape.part_kernel), at),
    )


def no_serpentine(patch: Patch) -> None:
    original = weights_u85.element_order
    patch.setattr(weights_u85, "element_order", lambda size, shape: sorted(original(size, shape)))


def bricks_wider(patch: Patch) -> None:
    patch.setattr(featuremap, "_BRICK", 8)


def padding_one(patch: Patch) -> None:
    original = accumulate.padded
    patch.setattr(
        accumulate, "padded", lambda values, window, fill=0: original(values, window, fill or 1)
    )


def counts_with_padding(module: Any) -> Break:
    def apply(patch: Patch) -> None:
        patch.setattr(
            accumulate,
            "valid_counts",
            lambda w: np.full(w.output, w.kernel[0] * w.kernel[1], np.int64),
        )

    return apply


def stride_ignored(patch: Patch) -> None:
    original = common.kernel_window

    def window(registers: Any) -> Any:
        found = original(registers)
        return replace(found, stride=(1, 1))

    patch.setattr(engine_u55, "kernel_window", window)
    patch.setattr(engine_u85, "kernel_window", window)


def dilation_ignored(patch: Patch) -> None:
    original = accumulate.Window._run

    def run_without(self: Any, element: int, axis: int) -> slice:
        return original(replace(self, dilation=(1, 1)), element, axis)

    patch.setattr(accumulate.Window, "_run", run_without)


def upscale_nearest_only(patch: Patch) -> None:
    original = common.upscale
    for engine in (engine_u55, engine_u85):
        patch.setattr(engine, "upscale", lambda v, m, n: original(v, min(m, 1), n))


def interpolation_dropped(patch: Patch) -> None:
    original = output_stage.look_up_16bit
    for stage in (stages_u55, stages_u85):
        patch.setattr(stage, "look_up_16bit", lambda v, t, d: original(v & ~127, t, d))


def table_shifted(patch: Patch) -> None:
    original = output_stage.look_up_8bit
    for stage in (stages_u55, stages_u85):
        patch.setattr(stage, "look_up_8bit", lambda i, t, d: original(i, np.roll(t, 1), d))


def operands_swapped(patch: Patch) -> None:
    for module in (elementwise_u55, elementwise_u85):
        original = module._combiner

        def swapped(*args: Any, original: Any = original) -> Any:
            inner = original(*args)
            return lambda a, b: inner(b, a)

        patch.setattr(module, "_combiner", swapped)


def transpose_ignored(patch: Patch) -> None:
    patch.setattr(stages_u85, "_TRANSPOSES", dict.fromkeys((0, 1, 2, 3, 6, 7), (0, 1, 2)))


def comparisons_positive(patch: Patch) -> None:
    simple = dict(elementwise_u85._SIMPLE)
    for name in ("CMP_EQ", "CMP_NE", "CMP_GE", "CMP_GT"):
        simple[name] = lambda a, b, f=simple[name]: -f(a, b)
    patch.setattr(elementwise_u85, "_SIMPLE", simple)


def bilinear_like_nearest(patch: Patch) -> None:
    def one(values: Any, rows: Any, columns: Any) -> Any:
        return resize_u85._nearest(values, rows, columns) * rows[2] * columns[2]

    patch.setattr(resize_u85, "_bilinear", one)


def division_floors(patch: Patch) -> None:
    patch.setattr(elementwise_u85, "_division", lambda registers: lambda a, b: a // b)


def branch_always(patch: Patch) -> None:
    patch.setattr(
        model.DecodedStream, "_branch", lambda self, item, after, context: item.target // 4
    )


def branch_never(patch: Patch) -> None:
    patch.setattr(model.DecodedStream, "_branch", lambda self, item, after, context: after)


def indices_reversed(patch: Patch) -> None:
    original = engine_u85._indices
    patch.setattr(engine_u85, "_indices", lambda *args: original(*args)[::-1])


def fraction_dropped(patch: Patch) -> None:
    original = output_stage.look_up_16bit

    def look_up(values: Any, table: Any, dtype: Any) -> Any:
        found = original(values, table, dtype)
        return found & ~127 if dtype.itemsize == 4 else found

    patch.setattr(stages_u85, "look_up_16bit", look_up)


def operand_shift_changed(patch: Patch) -> None:
    original = elementwise_u55._sum_combiner
    patch.setattr(
        elementwise_u55,
        "_sum_combiner",
        lambda mode, registers, dtype: original(
            mode, registers, common.INT16 if dtype == common.INT8 else common.INT8
        ),
    )


def input_scales_dropped(patch: Patch) -> None:
    patch.setattr(
        elementwise_u85, "_input_scales", lambda *args: (output_stage.UNIT, output_stage.UNIT)
    )


def shift_truncates(patch: Patch) -> None:
    for module in (elementwise_u55, elementwise_u85):
        original = module.scale_exactly
        patch.setattr(
            module,
            "scale_exactly",
            lambda v, s, original=original: original(
                v, replace(s, halves=s.halves and not (s.multiplier == 1).all())
            ),
        )


BREAKS: dict[str, Break] = {
    "rounding half": half_dropped,
    "OFM zero point": ofm_zero_point_dropped,
    "IFM zero point": ifm_zero_point_dropped,
    "bias": bias_dropped,
    "clamp, U55": clamp_ignored(stages_u55),
    "clamp, U85": clamp_ignored(stages_u85),
    "OFM microblock": ofm_ublock_changed,
    "part-kernel traversal": part_kernel_swapped,
    "U85 serpentine": no_serpentine,
    "U85 IFM block depth": layout(weights_u85.WeightLayoutU85, "ifm_block", 16),
    "U85 kernel rounding": layout(weights_u85.WeightLayoutU85, "rounding", 1),
    "U85 streams": constant(weights_u85, "_GROUP", 8),
    "brick width": bricks_wider,
    "padding is zero": padding_one,
    "average counts valid": counts_with_padding(accumulate),
    "stride": stride_ignored,
    "dilation": dilation_ignored,
    "zero-insertion upscale": upscale_nearest_only,
    "16-bit interpolation": interpolation_dropped,
    "8-bit table start": table_shifted,
    "operand order": operands_swapped,
    "U85 transpose": transpose_ignored,
    "U85 comparison values": comparisons_positive,
    "U85 bilinear weights": bilinear_like_nearest,
    "U85 division toward zero": division_floors,
    "U85 branch on a condition": branch_always,
    "U85 branch at all": branch_never,
    "U85 gather and scatter order": indices_reversed,
    "U85 table fraction of 32 bits": fraction_dropped,
    "U85 input scales": input_scales_dropped,
    "U55 operand shift": operand_shift_changed,
    "rounding of right shifts": shift_truncates,
}


def disagreements() -> list[str]:
    found = []
    for case in recorded_cases():
        try:
            network = Network(case.blob, arithmetic=NUMPY)
            outputs = tuple(network.run(case.inputs)[0])
        except (EthosUError, ValueError, IndexError, AssertionError):
            found.append(case.name)
            continue
        if outputs != case.expected:
            found.append(case.name)
        if found:
            break
    return found


@pytest.mark.parametrize("rule", BREAKS)
def test_a_broken_rule_is_noticed(rule: str, monkeypatch: Patch) -> None:
    BREAKS[rule](monkeypatch)
    assert disagreements(), f"nothing notices that '{rule}' is broken"
