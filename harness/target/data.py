"""What the classes behind the YAML files of targets have in common.

They are plain frozen dataclasses: whoever runs a target needs them, and not what checks a file.
What a value has to be stands in the annotation of its field, as a Rule; ``harness.target.checking``
holds them against the content of a file, and only it imports pydantic (0.1 s).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema


class Rule:
    """In an Annotated, what a value has to be: what pydantic's Field takes (``gt``, ``pattern``,
    ``min_length``), or ``after``, which takes the value and gives it back, or raises ValueError."""

    def __init__(self, after: Callable[[Any], Any] | None = None, **said: Any) -> None:
        self._after = after
        self._said = said

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        from pydantic import AfterValidator, Field

        rules: list[Any] = [Field(**self._said)] if self._said else []
        rules += [AfterValidator(self._after)] if self._after is not None else []
        for rule in rules:
            source = Annotated[source, rule]
        return handler.generate_schema(source)


Text = Annotated[str, Rule(min_length=1, pattern=r"^[^\x00-\x1f]+$")]


class Data:
    """The base of these dataclasses: no key that is not a field, no value of another type.

    Methods ``_check_…`` raise a ValueError for what does not fit together, however it is made.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "strict": True}

    _checks: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        own = (name for name in vars(cls) if name.startswith("_check_"))
        cls._checks = (*cls._checks, *own)

    def __post_init__(self) -> None:
        for name in self._checks:
            getattr(self, name)()


def plain(value: Any) -> Any:
    """As JSON has it: a mapping for an object, lists for tuples."""
    if is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, PurePath) else value
