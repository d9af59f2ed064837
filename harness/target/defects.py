"""What Vela is known to compile wrongly: ``targets/npu/defects.yaml``, checked."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, model_validator

from harness.system import paths
from harness.system.strict_yaml import read
from harness.target.npu import Product
from harness.target.strict_model import StrictModel, Text

Operators = Annotated[tuple[Text, ...], Field(min_length=1, strict=False)]


class Defect(StrictModel):
    """The fields are told in the file. ``sources`` is its ``from``."""

    products: Annotated[tuple[Product, ...], Field(min_length=1, strict=False)]
    macs: Annotated[tuple[int, ...], Field(strict=False)] = ()
    trouble: Text | None = None
    sources: Operators | None = Field(default=None, alias="from")
    to: Operators | None = None
    beside: Operators | None = None
    dilation: int = 0
    fill: Literal["other"] | None = None
    what: Text
    instead: Text | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Defect:
        if self.trouble is None and (
            self.to is None or (self.sources, self.beside) == (None, None)
        ):
            raise ValueError("a defect needs its trouble, or operators: from and to, to and beside")
        return self


class Defects(StrictModel):
    seen_in: Annotated[tuple[Text, ...], Field(min_length=1, strict=False)]
    defects: dict[Text, Defect]


def defects_path() -> Path:
    return paths.data_root() / "targets" / "npu" / "defects.yaml"


@cache
def defects() -> Defects:
    """TargetError when the file is wrong."""
    document = read(defects_path())
    try:
        return Defects.model_validate(document.data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise document.place(tuple(first["loc"])).error(str(first["msg"])) from error
