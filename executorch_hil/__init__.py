"""The public names of the test harness for ExecuTorch on Arm.

``harness`` is the package they come from. That name is no distribution's alone, so what users
import is here; it means nothing until it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.config.case import Case as Case
    from harness.config.target import Target as Target
    from harness.core.verdict import Verdict as Verdict
    from harness.plugin.verdicts import require_pass as require_pass
    from harness.run.record import RunRecord as RunRecord

_WHERE = {
    "Case": "harness.config.case",
    "RunRecord": "harness.run.record",
    "Target": "harness.config.target",
    "Verdict": "harness.core.verdict",
    "require_pass": "harness.plugin.verdicts",
}
__all__ = ["Case", "RunRecord", "Target", "Verdict", "require_pass"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return __all__
