"""Frozen dataclasses whose methods are made when they are first needed.

``dataclasses.dataclass`` compiles six functions for a class, half a millisecond, and a warm run
imports 180 such classes, most of which it never makes an object of. Here that waits for the first
object, or for the first who asks for the fields. From then on it is ``dataclasses``' own class.
"""

from __future__ import annotations

import dataclasses
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, **how):
        """As ``dataclasses.dataclass``; what is not frozen, or has slots, is made at once."""

        def made(cls):
            if not how.get("frozen") or how.get("slots") or "__init__" in vars(cls):
                return dataclasses.dataclass(cls, **how)
            _Later(cls, how)
            return cls

        return made if cls is None else made(cls)


_FIELDS, _STUBS = "__dataclass_fields__", ("__init__", "__setstate__")
_MAKING = threading.RLock()  # one class may need another one, that it inherits from


class _Later:
    """Stands where the fields will be, and knows how to make the class whole."""

    def __init__(self, cls: type, how: dict[str, Any]) -> None:
        self._cls = cls
        self._how = how

        def __init__(one: Any, /, *args: Any, **kwargs: Any) -> None:
            self._make()
            cls.__init__(one, *args, **kwargs)  # type: ignore[misc]

        def __setstate__(one: Any, state: dict[str, Any], /) -> None:
            """An object that was pickled comes without ``__init__``."""
            self._make()
            one.__dict__.update(state)

        self._stubs = (__init__, __setstate__)
        for name, stub in zip(_STUBS, self._stubs, strict=True):
            if name not in vars(cls):
                setattr(cls, name, stub)
        setattr(cls, _FIELDS, self)

    def __get__(self, _instance: object, owner: type) -> Any:
        self._make()
        return getattr(owner, _FIELDS)

    def _make(self) -> None:
        """At every moment another thread that makes an object finds a ``__init__``: the stub, which
        waits here, or the real one, made for a class below and put into its place in one step."""
        cls = self._cls
        with _MAKING:
            if vars(cls).get(_FIELDS) is not self:
                return
            cls.__doc__ = cls.__doc__ or cls.__name__
            how = {**self._how, "init": False}
            dataclasses.dataclass(cls, **how)
            below: Any = type(cls)(
                cls.__name__, (cls,), {"__doc__": "", "__module__": cls.__module__}
            )
            below.__qualname__ = cls.__qualname__
            dataclasses.dataclass(below, frozen=True, repr=False, eq=False, match_args=False)
            init, setstate = self._stubs
            if vars(cls).get("__setstate__") is setstate:
                del cls.__setstate__  # type: ignore[attr-defined]
            if vars(cls).get("__init__") is init:
                cls.__init__ = vars(below)["__init__"]  # type: ignore[misc]


def make(*classes: type) -> None:
    """Now: there is time, and there will be objects of them."""
    for cls in classes:
        getattr(cls, _FIELDS)
