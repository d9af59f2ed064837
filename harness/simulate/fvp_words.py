"""What the command lines of all FVPs have in common."""

from __future__ import annotations

from collections.abc import Mapping

from harness.target.model import Limits


def options(parameters: Mapping[str, bool | int | str]) -> tuple[str, ...]:
    return tuple(
        word for name, value in parameters.items() for word in ("-C", f"{name}={_text(value)}")
    )


def bounds(limits: Limits) -> tuple[str, ...]:
    """The model's own limits."""
    return (
        *(("--timelimit", _seconds(limits.model)) if limits.model else ()),
        *(("--simlimit", _seconds(limits.simulated)) if limits.simulated else ()),
        *(("--cyclelimit", str(limits.cycles)) if limits.cycles else ()),
    )


def _text(value: bool | int | str) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _seconds(value: float) -> str:
    return f"{value:g}"
