"""The harness's own tables of facts: YAML files next to the modules that use them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any


@cache
def read_table(module: str) -> Any:
    """Return the table ``x.yaml`` next to ``x.py``, whose ``__file__`` is ``module``.

    It is read once, when it is first needed."""
    import yaml  # most commands need no table, and it takes 10 ms

    return yaml.load(Path(module).with_suffix(".yaml").read_bytes(), Loader=yaml.CSafeLoader)
