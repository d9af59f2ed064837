"""Before torch decomposes operators it looks for all that could be, and gives each of some 700 a
new kernel for each of 22 dispatch keys, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

from harness.shortcuts.patch import Patch, is_the_source

# of torch.export.exported_program._override_composite_implicit_decomp (torch 2.13.0)
_OVERRIDES = "4422dc79d0792af728dd8eacf0a2fadcf00195c8802ceca15632b737d9d5c9bd"
# of torch._export.utils._materialize_cpp_cia_ops (torch 2.13.0)
_MATERIALISES = "51472f6b4e2c37824078c061741bf2861dcc0da2f439e19ab099ce5d0711b033"


def patches() -> Iterator[Patch]:
    import torch
    from torch._export import utils
    from torch.export import exported_program

    original = getattr(exported_program, "_override_composite_implicit_decomp", None)
    if is_the_source(original, _OVERRIDES):
        name = "_override_composite_implicit_decomp"
        yield Patch(exported_program, name, overriding(exported_program, original))
    # Looks at every operator of the dispatcher, for each of 43 namespaces, five times in an export.
    if is_the_source(getattr(utils, "_materialize_cpp_cia_ops", None), _MATERIALISES):
        once = Once(utils._materialize_cpp_cia_ops)
        yield Patch(utils, "_materialize_cpp_cia_ops", once)
        library: Any = torch.library.Library
        for owner, name in (  # what adds to the dispatcher
            *((library, name) for name in ("define", "impl", "fallback")),
            (type(torch.ops), "load_library"),
        ):
            yield Patch(owner, name, after(getattr(owner, name), once.outdated))


class Once:
    """Calls ``work`` again only after ``outdated``."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._current = False

    def __call__(self) -> None:
        if not self._current:
            self._current = True
            self._work()

    def outdated(self) -> None:
        self._current = False


def after(function: Callable[..., Any], then: Callable[[], None]) -> Callable[..., Any]:
    @wraps(function)
    def both(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        finally:
            then()

    return both


def overriding(module: Any, original: Any) -> Any:
    """What ``_override_composite_implicit_decomp`` of ``module`` does, a table at a time.

    torch's way, operator by operator: a kernel that refuses autograd for each backend's autograd
    key that has none; the caller's decomposition for CompositeImplicitAutograd; the operator's own
    decomposition for each backend's key that has none, and for fake tensors where no other rule
    is. Afterwards every operator has the kernels again that it had.
    """
    import torch

    keeps_kernels = torch._ops.OperatorBase.py_impl
    by_name = torch._C.DispatchKey.CompositeImplicitAutograd
    refusing = partial(dict.fromkeys, module._AUTOGRAD_ALIAS_BACKEND_KEYS_TO_OVERRIDE)
    backends = partial(dict.fromkeys, module._BACKEND_KEYS_TO_OVERRIDE)

    @contextmanager
    def override(wanted: dict[Any, Callable[..., Any]]) -> Iterator[None]:
        if any(type(operator).py_impl is not keeps_kernels for operator in wanted):
            with original(wanted):
                yield
            return
        kept = {}
        for operator, decomposition in wanted.items():
            kernels = operator.py_kernels
            kept[operator] = kernels.copy()
            own = module._get_decomp_for_cia(operator)
            without = {key: one for key, one in kernels.items() if key != by_name}
            refuse = module.autograd_not_implemented(operator, deferred_error=True)
            kernels.clear()
            kernels.update({**refusing(refuse), **backends(own), **without, by_name: decomposition})
            operator._dispatch_cache.clear()
            if not module._is_op_registered_to_fake_rule(operator):
                module.register_op_impl(operator)(partial(_in_fake_mode, own))
        try:
            yield
        finally:
            for operator, kernels in kept.items():
                operator.py_kernels.clear()
                operator.py_kernels.update(kernels)
                operator._dispatch_cache.clear()
                module._deregister_op_impl(operator)

    return override


def _in_fake_mode(
    own: Callable[..., Any], mode: Any, _operator: Any, *arguments: Any, **named: Any
) -> Any:
    with mode:
        return own(*arguments, **named)
