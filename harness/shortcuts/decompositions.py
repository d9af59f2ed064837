"""Before torch decomposes operators it looks for all that could be, and gives each of some 700 a
new kernel for each of 22 dispatch keys, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial, wraps
from typing import Any

from harness.shortcuts.patch import Patch, is_the_source

# of torch.export.exported_program._override_composite_implicit_decomp (torch 2.13.0)
_OVERRIDES = "4422dc79d0792af728dd8eacf0a2fadcf00195c8802ceca15632b737d9d5c9bd"
# of torch._export.utils._collect_all_valid_cia_ops (torch 2.13.0), whose result nobody changes
_COLLECTS = "1d09a99ea79bd377c8f0acc97247545fc7c769103e4e94cad6e72370598fd615"


def patches() -> Iterator[Patch]:
    import torch
    from torch._export import utils
    from torch.export import decomp_utils, exported_program

    original = getattr(exported_program, "_override_composite_implicit_decomp", None)
    if is_the_source(original, _OVERRIDES):
        name = "_override_composite_implicit_decomp"
        yield Patch(exported_program, name, overriding(exported_program, original))
    # Asks every operator of 43 namespaces, after it looked all up that C++ has for each of them;
    # twice in an export.
    collect: Any = getattr(utils, "_collect_all_valid_cia_ops", None)
    if not is_the_source(collect, _COLLECTS):
        return
    known = Known(collect)
    for module in (utils, exported_program, decomp_utils):
        yield Patch(module, "_collect_all_valid_cia_ops", known)
    for owner, name in (  # what adds to the dispatcher or takes from it
        *((torch.library.Library, name) for name in ("define", "impl", "fallback", "_destroy")),
        (torch._ops.OperatorBase, "py_impl"),
        (type(torch.ops), "load_library"),
    ):
        yield Patch(owner, name, after(getattr(owner, name), known.outdated))


class Known:
    """What ``ask`` said the last time, until ``outdated``."""

    def __init__(self, ask: Callable[[], set[Any]]) -> None:
        self.ask = ask
        self._known: set[Any] | None = None

    def __call__(self) -> set[Any]:
        if self._known is None:
            self._known = self.ask()
        return self._known

    def outdated(self) -> None:
        self._known = None


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

    base = torch._ops.OperatorBase
    by_name = torch._C.DispatchKey.CompositeImplicitAutograd
    backends = partial(dict.fromkeys, module._BACKEND_KEYS_TO_OVERRIDE)

    @cache
    def refusing(operator: Any) -> dict[Any, Any]:
        refuse = module.autograd_not_implemented(operator, deferred_error=True)
        return dict.fromkeys(module._AUTOGRAD_ALIAS_BACKEND_KEYS_TO_OVERRIDE, refuse)

    @contextmanager
    def override(wanted: dict[Any, Callable[..., Any]]) -> Iterator[None]:
        if any(type(operator).py_impl is not base.py_impl for operator in wanted):
            with original(wanted):
                yield
            return
        kept = {}
        for operator, decomposition in wanted.items():
            kernels = operator.py_kernels
            kept[operator] = kernels.copy()
            own = module._get_decomp_for_cia(operator)
            without = {key: one for key, one in kernels.items() if key != by_name}
            kernels.clear()
            kernels.update(
                {**refusing(operator), **backends(own), **without, by_name: decomposition}
            )
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
