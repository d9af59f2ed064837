"""Which kernels torch's operators have while it decomposes, and that they get their own back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from harness.shortcuts.decompositions import Known, after, overriding, patches
from harness.shortcuts.patch import put
from tests.late import Late

torch = Late("torch")
exported_program = Late("torch.export.exported_program")
fake_impls = Late("torch._subclasses.fake_impls")


def test_what_is_known_is_asked_again_when_it_is_outdated() -> None:
    asked: list[set[int]] = []

    def ask() -> set[int]:
        asked.append({len(asked)})
        return asked[-1]

    known = Known(ask)
    assert known() is known() is asked[0]
    known.outdated()
    assert known() == {1}


def test_an_operator_that_comes_or_goes_is_seen() -> None:
    """One that decomposes, in a library of its own, as a user's import may bring it."""
    utils = pytest.importorskip("torch._export.utils")
    with ExitStack() as stack:
        for patch in patches():
            stack.enter_context(put(patch))
        collect = utils._collect_all_valid_cia_ops
        before = collect()
        assert collect() is before
        library = torch.library.Library("hil_test_shortcuts", "DEF")
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
        assert collect() - before == {torch.ops.hil_test_shortcuts.twice.default}
        library._destroy()
        assert collect() == before == collect.ask()


def test_decomposing_outdates_nothing(wanted: dict[Any, Callable[..., Any]]) -> None:
    """Both shortcuts together: that kernels are given at once is no operator that comes."""
    utils = pytest.importorskip("torch._export.utils")
    with ExitStack() as stack:
        for patch in patches():
            stack.enter_context(put(patch))
        before = utils._collect_all_valid_cia_ops()
        with exported_program._override_composite_implicit_decomp(wanted):
            assert utils._collect_all_valid_cia_ops() is before
        assert utils._collect_all_valid_cia_ops() is before


def test_what_registers_operators_outdates_it_even_when_it_fails() -> None:
    done = []

    def define(schema: str) -> str:
        return {"known": "result"}[schema]

    watched = after(define, lambda: done.append(1))
    assert watched("known") == "result"
    try:
        watched("unknown")
    except KeyError:
        done.append(2)
    assert done == [1, 1, 2]


@pytest.fixture
def wanted() -> dict[Any, Callable[..., Any]]:
    """Operators that have Python kernels of their own, that have none, and of a foreign kind."""
    aten = torch.ops.aten

    def decomposed(*arguments: object, **named: object) -> str:
        return "decomposed"

    operators = (aten.linear.default, aten.conv2d.default, aten.silu_backward.default)
    return dict.fromkeys((*operators, aten.matmul.default), decomposed)


def kernels_of(operator: Any) -> dict[Any, Any]:
    return {key: described(kernel) for key, kernel in operator.py_kernels.items()}


def described(kernel: Any) -> Any:
    """What a kernel does, where it is made anew each time."""
    if hasattr(kernel, "keywords"):
        return kernel.func.__qualname__, kernel.keywords
    if kernel.__qualname__.startswith("autograd_not_implemented"):
        return kernel.__qualname__, [cell.cell_contents for cell in kernel.__closure__]
    return kernel


def test_every_kernel_is_the_one_that_torch_gives(wanted: dict[Any, Callable[..., Any]]) -> None:
    original = exported_program._override_composite_implicit_decomp
    before = {one: dict(one.py_kernels) for one in wanted}
    with original(wanted):
        theirs = {one: kernels_of(one) for one in wanted}
        their_rules = {one for one in wanted if one in fake_impls.op_implementations_dict}
    with overriding(exported_program, original)(wanted):
        assert {one: kernels_of(one) for one in wanted} == theirs
        assert (
            {one for one in wanted if one in fake_impls.op_implementations_dict}
            == their_rules
            == set(wanted)
        )
    assert {one: dict(one.py_kernels) for one in wanted} == before
    assert not any(one in fake_impls.op_implementations_dict for one in wanted)


def test_a_fake_tensor_is_decomposed_in_its_mode(wanted: dict[Any, Callable[..., Any]]) -> None:
    """As torch's rule does, which has to see the mode that it is asked in."""
    seen: list[object] = []

    class Mode:
        def __enter__(self) -> None:
            seen.append("in")

        def __exit__(self, *_: object) -> None:
            seen.append("out")

    operator = torch.ops.aten.matmul.default
    with overriding(exported_program, None)(wanted):
        rule = fake_impls.op_implementations_dict[operator]
        a, b = torch.eye(2), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        assert rule(Mode(), operator, a, b).tolist() == b.tolist()
    assert seen == ["in", "out"]


def test_kernels_come_back_when_decomposing_fails(wanted: dict[Any, Callable[..., Any]]) -> None:
    before = {one: dict(one.py_kernels) for one in wanted}
    override = overriding(exported_program, None)
    with pytest.raises(ZeroDivisionError), override(wanted):
        raise ZeroDivisionError
    assert {one: dict(one.py_kernels) for one in wanted} == before


def test_an_operator_with_its_own_way_of_registering_goes_torchs_way() -> None:
    asked = []

    class Another:
        py_impl = None

    class Theirs:
        def __init__(self, wanted: object) -> None:
            asked.append(wanted)

        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None: ...

    wanted = {Another(): print}
    with overriding(exported_program, Theirs)(wanted):
        assert asked == [wanted]


def test_the_installed_torch_is_the_one_that_was_looked_at() -> None:
    """Else every export costs a tenth more, and nobody would notice."""
    names = [(patch.owner.__name__, patch.name) for patch in patches()]
    assert ("torch.export.exported_program", "_override_composite_implicit_decomp") in names
    assert ("torch.export.decomp_utils", "_collect_all_valid_cia_ops") in names
    assert ("_Ops", "load_library") in names
