"""What pytest loads: the plugin, unless another package is called ``harness`` here.

``python -m pytest`` puts the current directory first in ``sys.path``, where a user's own package of
that name may be. Such a session goes on without us, and says so if it asks for a case.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

_spec = find_spec("harness")
_found = Path(_spec.origin).resolve().parent if _spec is not None and _spec.origin else None
_ours = Path(__file__).resolve().parents[1] / "harness"

if _found == _ours:
    _PARTS = ("verdicts", "options", "selection", "fixtures")  # none imports a later one
    pytest_plugins = [f"harness.plugin.{part}" for part in _PARTS]
else:
    import pytest

    @pytest.fixture(scope="session")
    def hil_case() -> None:
        """Not there: another package is called ``harness``."""
        pytest.fail(
            f"the hil plugin is not active: `harness` is {_found}, not {_ours}; "
            "start `pytest` instead of `python -m pytest`, or from another directory",
            pytrace=False,
        )
