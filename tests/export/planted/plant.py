"""Plants a fault into a function of an installed module, in this process alone.

The module's source is compiled again with one text replaced, and each function whose code differs
gets the new code. The file stays as it is, and whoever has imported a function has the fault too.
"""

from __future__ import annotations

import importlib
import inspect
from types import FunctionType, ModuleType


def plant(module: str, find: str, put: str, nth: int = 1) -> None:
    """Replaces the ``nth`` place of ``find``. Raises LookupError if the text or the change is not
    there."""
    original = importlib.import_module(module)
    before, *rest = inspect.getsource(original).split(find)
    if len(rest) < nth:
        raise LookupError(f"{module} has {len(rest)} places with {find!r}")
    source = find.join([before, *rest[: nth - 1]]) + put + find.join(rest[nth - 1 :])
    changed = ModuleType(original.__name__)
    changed.__file__, changed.__package__ = original.__file__, original.__package__
    exec(compile(source, str(original.__file__), "exec"), vars(changed))
    if not _swap(original, changed, str(original.__file__), module):
        raise LookupError(f"{put!r} changes no function of {module}")


def _swap(original: object, changed: object, file: str, module: str) -> int:
    """How many functions were given the code of their namesake."""
    count = 0
    for name, new in vars(changed).items():
        old = vars(original).get(name)
        new, old = (inspect.unwrap(getattr(each, "__func__", each)) for each in (new, old))
        if isinstance(new, FunctionType) and isinstance(old, FunctionType):
            differs = new.__code__.co_filename == file and new.__code__ != old.__code__
            if differs:
                old.__code__ = new.__code__
            count += differs
        elif isinstance(new, type) and isinstance(old, type) and new.__module__ == old.__module__:
            count += _swap(old, new, file, module) if new.__module__ == module else 0
    return count
