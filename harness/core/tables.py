"""The harness's own tables of facts: YAML files beside the modules that use them."""

from functools import cache
from pathlib import Path
from typing import Any


@cache
def read_table(module: str) -> Any:
    """The table of a module, whose ``__file__`` this is: ``x.yaml`` beside ``x.py``. It is read
    once, when it is first needed."""
    import yaml  # most commands need no table, and it takes 10 ms

    return yaml.load(Path(module).with_suffix(".yaml").read_bytes(), Loader=yaml.CSafeLoader)
