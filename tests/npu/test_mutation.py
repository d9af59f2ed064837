"""Each rule that is in Python, broken on purpose, is noticed: a recorded case no longer agrees.

A rule whose break goes unnoticed is a rule that the recorded cases do not pin down. Those of the
kernel's C++ are planted by ``tools/bench/own/npu_kernel.yaml``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from harness.npu import job, model, scale, u55, u85, u85_weights
from harness.npu.errors import EthosUError
from harness.npu.model import Network
from tests.npu.recorded import recorded_cases

Patch = pytest.MonkeyPatch
Break = Callable[[Patch], None]


def half_dropped(patch: Patch) -> None:
    original = scale.ScaleWriter.write
    patch.setattr(
        scale.ScaleWriter,
        "write",
        lambda s, factor, bias, n: original(s, replace(factor, halves=False), bias, n),
    )


def bias_dropped(patch: Patch) -> None:
    original = scale.ScaleWriter.write
    patch.setattr(
        scale.ScaleWriter, "write", lambda s, factor, bias, n: original(s, factor, None, n)
    )


def clamp_ignored(module: Any) -> Break:
    return lambda patch: patch.setattr(module, "_clamp", lambda *_: (-128, 127))


def constant(module: Any, name: str, value: Any) -> Break:
    return lambda patch: patch.setattr(module, name, value)


def layout(cls: type, name: str, value: Any) -> Break:
    return lambda patch: patch.setattr(cls, name, property(lambda self: value))


def order_changed(**changes: Callable[[Any], Any]) -> Break:
    """Of the weights of the U55."""

    def apply(patch: Patch) -> None:
        original = u55.ordered_weights

        def changed(decoder: Any, streams: Any, form: Any, offset: int) -> Any:
            values = {name: change(form) for name, change in changes.items()}
            return original(decoder, streams, replace(form, **values), offset)

        patch.setattr(u55, "ordered_weights", changed)

    return apply


def counts_with_padding(patch: Patch) -> None:
    patch.setattr(job.Window, "valid_counts", lambda w: job.np.full(w.output, w.elements))


def window_without(name: str) -> Break:
    def apply(patch: Patch) -> None:
        for module in (u55, u85):
            original = module.kernel_window
            patch.setattr(
                module,
                "kernel_window",
                lambda r, original=original: replace(original(r), **{name: (1, 1)}),
            )

    return apply


def operands_swapped(patch: Patch) -> None:
    for module in (u55, u85):
        original = module.prepare_elementwise

        def swapped(*given: Any, original: Any = original) -> Any:
            found = original(*given)
            return replace(found, first=found.second or found.first, second=found.first)

        patch.setattr(module, "prepare_elementwise", swapped)


def unsigned16(registers: Any, name: str) -> int:
    return int(registers[name] & 0xFFFF)


def shifts_without_halves(patch: Patch) -> None:
    for module in (u55, u85):
        original = module.Job
        patch.setattr(
            module,
            "Job",
            lambda *values, original=original, **given: original(
                *values, **{**given, "halves": False}
            ),
        )


BREAKS: dict[str, Break] = {
    "rounding half": half_dropped,
    "bias": bias_dropped,
    "signs of 16-bit fields": constant(u55.Registers, "signed16", unsigned16),
    "clamp, U55": clamp_ignored(u55),
    "clamp, U85": clamp_ignored(u85),
    "OFM microblock": order_changed(ofm_unit=lambda form: 12 - form.ofm_unit),
    "part-kernel traversal": order_changed(part_kernel=lambda form: not form.part_kernel),
    "U85 IFM block depth": layout(u85_weights.LayoutU85, "ifm_block", 16),
    "U85 kernel rounding": layout(u85_weights.LayoutU85, "rounding", 1),
    "U85 depthwise padding": layout(u85_weights.LayoutU85, "padding", 0),
    "U85 phases of strides": layout(u85_weights.LayoutU85, "phase", (1, 1)),
    "average counts valid": counts_with_padding,
    "stride": window_without("stride"),
    "dilation": window_without("dilation"),
    "operand order": operands_swapped,
    "U85 transpose": constant(u85, "_TRANSPOSES", dict.fromkeys((0, 1, 2, 3, 6, 7), (0, 1, 2))),
    "U85 branch on a condition": constant(model, "_require_known", lambda *_: True),
    "U85 branch at all": constant(model, "_require_known", lambda *_: False),
    "U85 input scales": constant(u85, "_input_scales", lambda *_: (scale.UNIT, scale.UNIT)),
    "U55 operand shift": constant(u55, "INT8", job.INT16),
    "rounding of right shifts": shifts_without_halves,
}


def disagreements() -> list[str]:
    found = []
    for case in recorded_cases():
        try:
            network = Network(case.blob)
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
