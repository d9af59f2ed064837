"""Something else in a library's place, for a while, where the library is the one looked at."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Patch:
    """``instead`` takes the place of ``name`` in ``owner``, a module or a class."""

    owner: Any
    name: str
    instead: Any


@contextmanager
def put(patch: Patch) -> Iterator[None]:
    missing = object()
    before = vars(patch.owner).get(patch.name, missing)
    setattr(patch.owner, patch.name, patch.instead)
    try:
        yield
    finally:
        if before is missing:
            delattr(patch.owner, patch.name)
        else:
            setattr(patch.owner, patch.name, before)


def is_the_source(function: Any, sha256: str) -> bool:
    """Whether the text of ``function`` is the one that was looked at."""
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        return False
    return hashlib.sha256(source.encode()).hexdigest() == sha256
